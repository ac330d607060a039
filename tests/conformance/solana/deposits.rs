//! Deposits of `solana-vm`, and what looks like them.

use alloy::primitives::{B256, U256};
use serde_json::json;

use super::{
    BUDGET, MINT, OTHER, PROGRAM, RELAY, SECOND, STRANGER, SYSTEM, Said, TOKENS, TOKENS_2022, USER,
    VAULT, VAULT_TOKENS, VAULT_TOKENS_2022, WORTHLESS, WRAPPED,
    build::{Builder, Instruction, instruction},
    lamports, plain, said, tokens, wallet,
};
use crate::family::{AMOUNT, Case, DepositKind, Expected, Minted, UNREADABLE, case};

fn minted(depositor: &str, order: Option<B256>, currency: &str, amount: u64) -> Minted {
    Minted {
        depositor: depositor.into(),
        order,
        currency: currency.into(),
        amount: U256::from(amount),
    }
}

fn one(minted: Minted) -> Expected {
    Expected::Minted(vec![minted])
}

/// Deposits that are what they look like.
pub fn sound(kind: DepositKind, [id, second]: [B256; 2]) -> Vec<Case> {
    let exact = |what, amount: u64| {
        let expected = one(minted(USER, Some(id), SYSTEM, amount));
        case(what, plain(amount, id).body(id), expected)
    };
    let good = || one(minted(USER, Some(id), SYSTEM, AMOUNT));
    let of_token = |what, account: &str, program: &str| {
        let deposit = said(AMOUNT, id).token(MINT, (account, program));
        let it = Builder::by(&[USER]).with(deposit);
        let it = it.gains_tokens((account, VAULT), MINT, AMOUNT);
        case(what, it.body(id), one(minted(USER, Some(id), MINT, AMOUNT)))
    };
    match kind {
        DepositKind::Token => vec![
            of_token("of the token program", VAULT_TOKENS, TOKENS),
            of_token("of Token-2022", VAULT_TOKENS_2022, TOKENS_2022),
        ],
        DepositKind::LongText => {
            let mut it = plain(AMOUNT, id);
            it.signed[0].data.extend([7; 9]);
            vec![case("bytes behind the id", it.body(id), good())]
        }
        DepositKind::Units => vec![
            exact("one lamport", 1),
            exact("one less", AMOUNT - 1),
            exact("one more", AMOUNT + 1),
        ],
        DepositKind::Edges => vec![
            exact("2^53 - 1", (1 << 53) - 1),
            exact("2^53 + 1", (1 << 53) + 1),
            exact("2^64 - 1", u64::MAX),
        ],
        DepositKind::Several => vec![several([id, second])],
        DepositKind::InnerCall => {
            let it = Builder::by(&[STRANGER]).with(instruction(OTHER, &[USER], vec![1]));
            let it = it.inner(said(AMOUNT, id).native()).gains(VAULT, AMOUNT);
            vec![case("by somebody's program", it.body(id), good())]
        }
        DepositKind::Tables => {
            let mut it = plain(AMOUNT, id);
            it.loaded = vec![VAULT.into(), RELAY.into()];
            vec![case("the vault by a table", it.body(id), good())]
        }
        DepositKind::Crowded => {
            let mut it = plain(AMOUNT, id);
            for number in 0..60 {
                it = it.memo(&format!("note {number}"));
                it = it.inner(instruction(OTHER, &[STRANGER], vec![1]));
            }
            vec![case("among 120 instructions", it.body(id), good())]
        }
        DepositKind::ClosedPayer => vec![closed_payer(id)],
        _ => vec![exact("by the program", AMOUNT)],
    }
}

/// Deposits of two orders, in two currencies.
fn several([id, second]: [B256; 2]) -> Case {
    let token = said(AMOUNT, second).token(MINT, (VAULT_TOKENS, TOKENS));
    let more = said(7, second).native();
    let it = Builder::by(&[USER]).with(said(AMOUNT, id).native());
    let it = it.with(token).with(more).gains(VAULT, AMOUNT + 7);
    let it = it.gains_tokens((VAULT_TOKENS, VAULT), MINT, AMOUNT);
    let all = vec![
        minted(USER, Some(id), SYSTEM, AMOUNT),
        minted(USER, Some(second), MINT, AMOUNT),
        minted(USER, Some(second), SYSTEM, 7),
    ];
    case("of two currencies", it.body(id), Expected::Minted(all))
}

/// One unit, or nothing, beside a deposit in one transaction: each is a deposit of its own, and nothing is none.
pub fn beside(id: B256) -> Vec<Case> {
    let by = |depositor: &'static str, amount| Said {
        depositor,
        ..said(amount, id)
    };
    let of = |depositor: &str, amount: u64| minted(depositor, Some(id), SYSTEM, amount);
    let both = |what, all: [Said<'static>; 2], expected: Vec<Minted>| {
        let mut signers = all.map(|one| one.depositor).to_vec();
        signers.dedup();
        let [one, two] = all;
        let it = Builder::by(&signers).with(one.native()).with(two.native());
        let it = it.gains(VAULT, one.amount + two.amount);
        case(what, it.body(id), Expected::Minted(expected))
    };
    vec![
        both(
            "one unit before it",
            [by(USER, 1), by(USER, AMOUNT)],
            vec![of(USER, 1), of(USER, AMOUNT)],
        ),
        both(
            "one unit behind it",
            [by(USER, AMOUNT), by(USER, 1)],
            vec![of(USER, AMOUNT), of(USER, 1)],
        ),
        both(
            "one unit of a stranger's",
            [by(STRANGER, 1), by(USER, AMOUNT)],
            vec![of(STRANGER, 1), of(USER, AMOUNT)],
        ),
        both(
            "nothing before it",
            [by(USER, 0), by(USER, AMOUNT)],
            vec![of(USER, AMOUNT)],
        ),
    ]
}

/// The user deposits the last tokens of an account, and closes it.
fn closed_payer(id: B256) -> Case {
    let from = wallet(USER, MINT);
    let close = instruction(TOKENS, &[&from, USER, USER], vec![9]);
    let deposit = said(AMOUNT, id).token(MINT, (VAULT_TOKENS, TOKENS));
    let it = Builder::by(&[USER]).with(deposit).with(close);
    let it = it.gains_tokens((VAULT_TOKENS, VAULT), MINT, AMOUNT);
    let it = it.closes((&from, USER), MINT);
    let expected = one(minted(USER, Some(id), MINT, AMOUNT));
    case("of tokens", it.body(id), expected)
}

/// Deposits of a token that has its maker's program called by every transfer.
fn calling([id, second]: [B256; 2]) -> Vec<Case> {
    let account = (VAULT_TOKENS_2022, TOKENS_2022);
    let hook = || instruction(OTHER, &[USER, VAULT_TOKENS_2022], vec![105, 37, 101, 197]);
    let deposit = || Builder::by(&[USER]).with(said(AMOUNT, id).token(MINT, account));
    let arrives = |it: Builder, amount| it.gains_tokens((account.0, VAULT), MINT, amount);
    let users = |amount| one(minted(USER, Some(id), MINT, amount));
    let own = |program| Said {
        program,
        depositor: STRANGER,
        ..said(AMOUNT, second)
    };
    let saying = deposit()
        .inner(hook())
        .inner(own(OTHER).token(MINT, account));
    let deposits = deposit()
        .inner(hook())
        .inner(own(PROGRAM).token(MINT, account));
    let from = wallet(USER, MINT);
    let sent = instruction(
        TOKENS_2022,
        &[&from, MINT, account.0, USER],
        [&[12][..], &AMOUNT.to_le_bytes(), &[6]].concat(),
    );
    let bare = Builder::by(&[USER]).with(sent).inner(hook());
    vec![
        case(
            "which does nothing here",
            arrives(deposit().inner(hook()), AMOUNT).body(id),
            users(AMOUNT),
        ),
        case(
            "and a fee of 5 units",
            arrives(deposit().inner(hook()), AMOUNT - 5).body(id),
            users(AMOUNT - 5),
        ),
        case(
            "which says that it deposited, too",
            arrives(saying, AMOUNT).body(id),
            users(AMOUNT),
        ),
        case(
            "which claims what arrived",
            arrives(deposits, AMOUNT).body(id),
            UNREADABLE,
        ),
        case(
            "in a bare transfer",
            arrives(bare, AMOUNT).body(id),
            Expected::Nothing,
        ),
    ]
}

/// What hides its amount, or is gone with its account.
fn vanished(kind: DepositKind, id: B256) -> Vec<Case> {
    let by_user = |deposit: Instruction| Builder::by(&[USER]).with(deposit);
    let good = said(AMOUNT, id);
    let of_token = |account, program| by_user(good.token(MINT, (account, program)));
    match kind {
        DepositKind::Hidden => {
            let from = wallet(USER, MINT);
            let accounts = [from.as_str(), MINT, VAULT_TOKENS_2022, USER];
            // The extension for confidential transfers, and its transfer.
            let hidden = instruction(TOKENS_2022, &accounts, vec![27, 7]);
            let said = of_token(VAULT_TOKENS_2022, TOKENS_2022).inner(hidden.clone());
            let nothing = |it: Builder| {
                let it = it.gains_tokens((VAULT_TOKENS_2022, VAULT), MINT, 0);
                it.body(id)
            };
            vec![
                case("said by the depository", nothing(said), UNREADABLE),
                case("bare", nothing(by_user(hidden)), Expected::Nothing),
            ]
        }
        _ => {
            let close = instruction(TOKENS, &[VAULT_TOKENS, STRANGER, VAULT], vec![9]);
            let tokens = of_token(VAULT_TOKENS, TOKENS).inner(close);
            let tokens = tokens.closes((VAULT_TOKENS, VAULT), MINT);
            let lamports = by_user(good.native()).empties(VAULT);
            vec![
                case("of tokens", tokens.body(id), UNREADABLE),
                case("of lamports", lamports.body(id), UNREADABLE),
            ]
        }
    }
}

/// Deposits of which not all is as it should be.
pub fn partial(kind: DepositKind, [id, second]: [B256; 2]) -> Vec<Case> {
    let users = |order, currency| one(minted(USER, order, currency, AMOUNT));
    match kind {
        DepositKind::TwoDepositories => {
            let old = Said {
                program: SECOND,
                ..said(AMOUNT, second)
            };
            let both = plain(AMOUNT, id).with(old.native());
            let first = users(Some(id), SYSTEM);
            vec![case("this one and one of before", both.body(id), first)]
        }
        DepositKind::FeeOnTransfer => {
            let arrives = |account: &str, program: &str| {
                let deposit = said(AMOUNT, id).token(MINT, (account, program));
                let it = Builder::by(&[USER]).with(deposit);
                it.gains_tokens((account, VAULT), MINT, AMOUNT - 5).body(id)
            };
            let less = one(minted(USER, Some(id), MINT, AMOUNT - 5));
            let taken = arrives(VAULT_TOKENS_2022, TOKENS_2022);
            vec![
                case("5 units less", taken, less),
                case(
                    "of a token that takes none",
                    arrives(VAULT_TOKENS, TOKENS),
                    UNREADABLE,
                ),
            ]
        }
        DepositKind::Calling => calling([id, second]),
        DepositKind::Worthless => {
            let of = |what, mint: &str| {
                let account = vault_tokens(mint);
                let deposit = said(AMOUNT, id).token(mint, (&account, TOKENS));
                let it = Builder::by(&[USER]).with(deposit);
                let it = it.gains_tokens((&account, VAULT), mint, AMOUNT);
                let expected = one(minted(USER, Some(id), mint, AMOUNT));
                case(what, it.body(id), expected)
            };
            vec![
                of("a token of somebody's own", WORTHLESS),
                of("the native currency as a token", WRAPPED),
            ]
        }
        _ => {
            let mut beside = plain(AMOUNT, id).body(id);
            let mut nowhere = beside.clone();
            beside["time"] = json!("beside");
            nowhere["time"] = json!("nowhere");
            let unknown = Expected::Refused("QUORUM_UNAVAILABLE");
            vec![
                case("a time beside the block", beside, users(Some(id), SYSTEM)),
                case("no time at all", nowhere, unknown),
            ]
        }
    }
}

/// The vault's account for a token.
fn vault_tokens(mint: &str) -> String {
    let [vault, mint, tokens] = [VAULT, mint, TOKENS];
    let account = vm::solana::programs::associated(
        &vault.parse().unwrap(),
        &mint.parse().unwrap(),
        &tokens.parse().unwrap(),
    );
    account.unwrap().to_string()
}

/// Deposits that name no order.
pub fn unnamed(kind: DepositKind, id: B256) -> Vec<Case> {
    let users = |currency| one(minted(USER, None, currency, AMOUNT));
    let sent = || {
        let it = Builder::by(&[USER]).with(lamports(USER, VAULT, AMOUNT));
        it.gains(VAULT, AMOUNT)
    };
    match kind {
        DepositKind::NoId => {
            let from = wallet(USER, MINT);
            let transfer = tokens((&from, VAULT_TOKENS), MINT, USER, AMOUNT);
            let budget = instruction(BUDGET, &[], vec![2, 1, 0, 0, 0]);
            let bare = Builder::by(&[USER]).with(budget).with(transfer);
            let bare = bare.gains_tokens((VAULT_TOKENS, VAULT), MINT, AMOUNT);
            let zero = plain(AMOUNT, B256::ZERO).body(id);
            vec![
                case("an id of zero", zero, users(SYSTEM)),
                case("a bare transfer", sent().body(id), users(SYSTEM)),
                case("a bare transfer of tokens", bare.body(id), users(MINT)),
            ]
        }
        _ => {
            let noted = sent().memo(&id.to_string());
            vec![case("in a memo", noted.body(id), Expected::Nothing)]
        }
    }
}

/// What is no deposit, or is not covered by what the vault gained.
pub fn unsound(kind: DepositKind, [id, second]: [B256; 2]) -> Vec<Case> {
    let good = said(AMOUNT, id);
    let by_user = |deposit: Instruction| Builder::by(&[USER]).with(deposit);
    match kind {
        DepositKind::LookAlike => {
            let by = |program| Said { program, ..good };
            let other = by_user(by(OTHER).native()).gains(VAULT, AMOUNT);
            let old = by_user(by(SECOND).native()).gains(VAULT, AMOUNT);
            vec![
                case("another program", other.body(id), Expected::Nothing),
                case("a depository of before", old.body(id), Expected::Nothing),
            ]
        }
        DepositKind::EventAlone => {
            let nothing = by_user(good.native()).gains(STRANGER, 1);
            let less = by_user(good.native()).gains(VAULT, AMOUNT - 1);
            let token = by_user(good.token(MINT, (VAULT_TOKENS, TOKENS)));
            let elsewhere = wallet(STRANGER, MINT);
            let token = token.gains_tokens((&elsewhere, STRANGER), MINT, AMOUNT);
            vec![
                case("nothing arrived", nothing.body(id), UNREADABLE),
                case("one lamport less", less.body(id), UNREADABLE),
                case("tokens went elsewhere", token.body(id), UNREADABLE),
            ]
        }
        DepositKind::OwnVault => {
            let own = Said {
                vault: STRANGER,
                ..good
            };
            let it = by_user(own.native()).gains(STRANGER, AMOUNT);
            vec![case("another vault", it.body(id), UNREADABLE)]
        }
        DepositKind::Failed => {
            let mut body = plain(AMOUNT, id).body(id);
            body["meta"]["err"] = json!({"InstructionError": [0, {"Custom": 1}]});
            let failed = Expected::Refused("TRANSACTION_REVERTED");
            vec![case("with all that it would have done", body, failed)]
        }
        DepositKind::Nothing => vec![case("nothing", plain(0, id).body(id), Expected::Nothing)],
        DepositKind::FromDepository => {
            let itself = Builder::by(&[USER]).with(lamports(VAULT, VAULT, AMOUNT));
            let body = itself.gains(STRANGER, 1).body(id);
            vec![case("to itself", body, UNREADABLE)]
        }
        DepositKind::OddShape => odd_shapes(id),
        DepositKind::Hidden | DepositKind::ClosedVault => vanished(kind, id),
        DepositKind::TwoIds => {
            let both = plain(AMOUNT, id).with(said(AMOUNT, second).native());
            vec![case("two for what arrived once", both.body(id), UNREADABLE)]
        }
        _ => {
            let theirs = Said {
                depositor: STRANGER,
                ..good
            };
            let both = plain(AMOUNT, id).with(theirs.native());
            vec![case("two for what arrived once", both.body(id), UNREADABLE)]
        }
    }
}

fn odd_shapes(id: B256) -> Vec<Case> {
    let cut = |length: usize| {
        let mut it = plain(AMOUNT, id);
        it.signed[0].data.truncate(length);
        it.body(id)
    };
    let mut few = plain(AMOUNT, id);
    few.signed[0].accounts.truncate(3);
    let mut other = plain(AMOUNT, id);
    other.signed[0].data[0] ^= 1;
    vec![
        case("half an id", cut(32), UNREADABLE),
        case("no amount", cut(8), UNREADABLE),
        case("no vault", few.body(id), UNREADABLE),
        case("another instruction", other.body(id), Expected::Nothing),
    ]
}
