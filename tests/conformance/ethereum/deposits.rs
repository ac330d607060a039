//! Deposits of `ethereum-vm`, and what looks like them.

use alloy::primitives::{B256, U256};
use serde_json::{Value, json};

use super::{
    DEPOSITORY, NATIVE_DEPOSIT, OTHER, Outer, SECOND, STRANGER, TOKEN, TRANSFER, USER, WORTHLESS,
    ZERO, body, digits, hash, log, native, small, topic, transfer, transfer_input, word,
};
use crate::family::{AMOUNT, Case, DepositKind, Expected, Minted, UNREADABLE, case};

const ERC20_DEPOSIT: &str = "RelayErc20Deposit(address,address,uint256,bytes32)";
pub const EXECUTED: &str = "RelayCallExecuted(bytes32,(address,bytes,uint256,bool))";
/// One more deposit than an execution carries.
const TOO_MANY: usize = vm::protocol::limits::ACTIONS + 1;
/// Logs around a deposit.
const CROWD: usize = 4_000;

fn erc20(depositor: &str, token: &str, amount: u64, id: B256) -> Value {
    let words = [word(depositor), word(token), small(amount), digits(id)];
    log(DEPOSITORY, &[hash(ERC20_DEPOSIT)], &words)
}

/// The depository has executed the call of the withdrawal `id`, which is to this account.
pub fn executed(id: &str, to: &str) -> Value {
    let numbers = |all: &[u64]| all.iter().map(|n| small(*n)).collect::<Vec<_>>();
    let mut words = vec![word(id)];
    words.extend(numbers(&[0x40]));
    words.push(word(to));
    words.extend(numbers(&[0x80, 0, 0, 0]));
    log(DEPOSITORY, &[hash(EXECUTED)], &words)
}

/// By another contract than the depository.
pub fn emitted_by(emitter: &str, mut log: Value) -> Value {
    log["address"] = json!(emitter);
    log
}

/// What the user sends to the depository.
fn sent(logs: &[Value], input: String) -> Value {
    let outer = Outer {
        from: USER,
        to: DEPOSITORY,
        value: AMOUNT,
        input,
    };
    body(&outer, logs)
}

/// `depositNative`, as its calldata.
fn deposit_native(id: B256) -> String {
    format!("49290c1c{}{}", word(USER), digits(id))
}

fn minted(depositor: &str, order: Option<B256>, currency: &str, amount: U256) -> Minted {
    Minted {
        depositor: depositor.into(),
        order,
        currency: currency.into(),
        amount,
    }
}

fn mints(all: impl Into<Vec<Minted>>) -> Expected {
    Expected::Minted(all.into())
}

fn by_log(what: &'static str, log: Value, expected: Expected) -> Case {
    case(what, sent(&[log], String::new()), expected)
}

/// Deposits that are what they look like.
pub fn sound(kind: DepositKind, [id, second]: [B256; 2]) -> Vec<Case> {
    let one = |amount: U256| {
        let logs = [native(USER, amount, id)];
        (
            sent(&logs, deposit_native(id)),
            mints([minted(USER, Some(id), ZERO, amount)]),
        )
    };
    let exact = |what, amount| {
        let (body, expected) = one(amount);
        case(what, body, expected)
    };
    match kind {
        DepositKind::Units => vec![
            exact("one unit", U256::ONE),
            exact("one less", U256::from(AMOUNT - 1)),
            exact("one more", U256::from(AMOUNT + 1)),
        ],
        DepositKind::Edges => vec![
            exact("2^53 - 1", U256::from((1_u64 << 53) - 1)),
            exact("2^53 + 1", U256::from((1_u64 << 53) + 1)),
            exact("2^128", U256::ONE << 128),
            exact("2^256 - 1", U256::MAX),
        ],
        DepositKind::Several => several([id, second]),
        DepositKind::InnerCall => {
            let (_, expected) = one(U256::from(AMOUNT));
            bundled(native(USER, U256::from(AMOUNT), id), &expected)
        }
        DepositKind::Crowded => {
            let amount = U256::from(AMOUNT);
            let mut logs = vec![transfer(WORTHLESS, OTHER, STRANGER, 1); CROWD];
            logs.insert(CROWD / 2, native(USER, amount, id));
            let (_, expected) = one(amount);
            vec![case(
                "among 4000 logs",
                sent(&logs, deposit_native(id)),
                expected,
            )]
        }
        _ => vec![exact("to the depository", U256::from(AMOUNT))],
    }
}

/// A deposit in a call of somebody's contract, or of the user's own account that has code.
fn bundled(deposit: Value, expected: &Expected) -> Vec<Case> {
    let outer = |from, to| Outer {
        from,
        to,
        value: 0,
        input: "1fad948c".into(),
    };
    let logs = [transfer(WORTHLESS, OTHER, OTHER, 3), deposit];
    let within = |what, from, to| case(what, body(&outer(from, to), &logs), expected.clone());
    vec![
        within("in a bundle of somebody else's", STRANGER, OTHER),
        within("among several calls of the user's", USER, OTHER),
        within("by the user's account, which has code", STRANGER, USER),
    ]
}

/// Deposits of a token, named by an event or by calldata, or by nobody.
pub fn transferred(kind: DepositKind, id: B256) -> Vec<Case> {
    let pull = || transfer(TOKEN, USER, DEPOSITORY, AMOUNT);
    let of_token = |order| mints([minted(USER, order, TOKEN, U256::from(AMOUNT))]);
    match kind {
        DepositKind::Token => vec![
            case(
                "by the depository",
                sent(&[pull(), erc20(USER, TOKEN, AMOUNT, id)], String::new()),
                of_token(Some(id)),
            ),
            case(
                "by the calldata",
                sent(&[pull()], transfer_input(AMOUNT, &digits(id))),
                of_token(Some(id)),
            ),
        ],
        DepositKind::NoId => vec![
            case(
                "a bare transfer",
                sent(&[pull()], transfer_input(AMOUNT, "")),
                of_token(None),
            ),
            by_log(
                "an id of zero",
                native(USER, U256::from(AMOUNT), B256::ZERO),
                mints([minted(USER, None, ZERO, U256::from(AMOUNT))]),
            ),
            case(
                "an id that begins with zeros",
                sent(&[pull()], transfer_input(AMOUNT, &word("0x11"))),
                of_token(None),
            ),
        ],
        _ => vec![case(
            "bytes behind the id",
            sent(
                &[pull()],
                transfer_input(AMOUNT, &format!("{}deadbeef", digits(id))),
            ),
            of_token(Some(id)),
        )],
    }
}

/// Several deposits in one transaction.
fn several([id, second]: [B256; 2]) -> Vec<Case> {
    let pull = || transfer(TOKEN, USER, DEPOSITORY, AMOUNT);
    let both = [(id, AMOUNT), (second, AMOUNT + 7)];
    let logs = both.map(|(id, amount)| native(USER, U256::from(amount), id));
    let all = both.map(|(id, amount)| minted(USER, Some(id), ZERO, U256::from(amount)));
    let mixed = [logs[0].clone(), pull(), erc20(USER, TOKEN, AMOUNT, second)];
    let both = [
        all[0].clone(),
        minted(USER, Some(second), TOKEN, U256::from(AMOUNT)),
    ];
    vec![
        case("of one currency", sent(&logs, String::new()), mints(all)),
        case(
            "of two currencies",
            sent(&mixed, String::new()),
            mints(both),
        ),
    ]
}

/// One unit, or nothing, beside a deposit in one transaction: each is a deposit of its own, and nothing is none.
pub fn beside(id: B256) -> Vec<Case> {
    let of = |depositor: &str, amount: u64| native(depositor, U256::from(amount), id);
    let by = |depositor: &str, amount: u64| minted(depositor, Some(id), ZERO, U256::from(amount));
    let both = |what, logs: [Value; 2], all: Vec<Minted>| {
        let body = sent(&logs, String::new());
        case(what, body, mints(all))
    };
    vec![
        both(
            "one unit before it",
            [of(USER, 1), of(USER, AMOUNT)],
            vec![by(USER, 1), by(USER, AMOUNT)],
        ),
        both(
            "one unit behind it",
            [of(USER, AMOUNT), of(USER, 1)],
            vec![by(USER, AMOUNT), by(USER, 1)],
        ),
        both(
            "one unit of a stranger's",
            [of(STRANGER, 1), of(USER, AMOUNT)],
            vec![by(STRANGER, 1), by(USER, AMOUNT)],
        ),
        both(
            "nothing before it",
            [of(USER, 0), of(USER, AMOUNT)],
            vec![by(USER, AMOUNT)],
        ),
    ]
}

/// Deposits of which only a part is sure.
pub fn doubtful(kind: DepositKind, [id, second]: [B256; 2]) -> Vec<Case> {
    let pull = || transfer(TOKEN, USER, DEPOSITORY, AMOUNT);
    let claimed = |by: &str, id: B256| erc20(by, TOKEN, AMOUNT, id);
    let payers = || mints([minted(USER, None, TOKEN, U256::from(AMOUNT))]);
    let plain = |logs: &[Value]| sent(logs, String::new());
    match kind {
        DepositKind::TwoIds => {
            let both = [pull(), claimed(USER, id), claimed(USER, second)];
            let calls = format!(
                "{}{}",
                transfer_input(AMOUNT, &digits(id)),
                transfer_input(AMOUNT, &digits(second))
            );
            vec![
                case("by the depository", plain(&both), payers()),
                case("by the calldata", sent(&[pull()], calls), payers()),
            ]
        }
        DepositKind::TwoDepositors => {
            let both = [pull(), claimed(USER, id), claimed(STRANGER, id)];
            vec![case("one transfer, two claims", plain(&both), payers())]
        }
        DepositKind::TwoDepositories => {
            let of_old = emitted_by(SECOND, native(USER, U256::from(AMOUNT), second));
            let logs = [native(USER, U256::from(AMOUNT), id), of_old];
            let first = mints([minted(USER, Some(id), ZERO, U256::from(AMOUNT))]);
            vec![case("this one and one of before", plain(&logs), first)]
        }
        DepositKind::FeeOnTransfer => {
            let taken = transfer(TOKEN, USER, OTHER, 5);
            let logs = [
                taken,
                transfer(TOKEN, USER, DEPOSITORY, AMOUNT - 5),
                claimed(USER, id),
            ];
            let rest = mints([minted(USER, None, TOKEN, U256::from(AMOUNT - 5))]);
            vec![case("5 units less", plain(&logs), rest)]
        }
        DepositKind::Calling => calling(id),
        DepositKind::Worthless => {
            let log = transfer(WORTHLESS, USER, DEPOSITORY, AMOUNT);
            let own = mints([minted(USER, None, WORTHLESS, U256::from(AMOUNT))]);
            vec![by_log("a token of somebody's own", log, own)]
        }
        _ => {
            let logs = vec![native(USER, U256::ONE, id); TOO_MANY];
            let large = Expected::Refused("EXECUTION_TOO_LARGE");
            vec![case("151 deposits", plain(&logs), large)]
        }
    }
}

/// Deposits of a token that calls its maker's contract as it moves.
fn calling(id: B256) -> Vec<Case> {
    let pull = || transfer(TOKEN, USER, DEPOSITORY, AMOUNT);
    let claimed = || erc20(USER, TOKEN, AMOUNT, id);
    let beside = [pull(), transfer(OTHER, OTHER, OTHER, 1), claimed()];
    let more = [pull(), transfer(WORTHLESS, OTHER, DEPOSITORY, 1), claimed()];
    let users = |order| minted(USER, order, TOKEN, U256::from(AMOUNT));
    // What the maker deposits behind the transfer hides which one the event is of.
    let both = mints([users(None), minted(OTHER, None, WORTHLESS, U256::ONE)]);
    vec![
        case(
            "which deposits nothing",
            sent(&beside, String::new()),
            mints([users(Some(id))]),
        ),
        case("which deposits, too", sent(&more, String::new()), both),
    ]
}

/// What is no deposit.
pub fn unsound(kind: DepositKind, [id, _]: [B256; 2]) -> Vec<Case> {
    let good = || native(USER, U256::from(AMOUNT), id);
    match kind {
        DepositKind::LookAlike => look_alikes(id),
        DepositKind::EventAlone => unmoved(id),
        DepositKind::OwnVault => {
            let elsewhere = transfer(TOKEN, USER, STRANGER, AMOUNT);
            let logs = [elsewhere, erc20(USER, TOKEN, AMOUNT, id)];
            let body = sent(&logs, String::new());
            vec![case("a transfer to somebody else", body, Expected::Nothing)]
        }
        DepositKind::Failed => {
            let mut body = sent(&[good()], deposit_native(id));
            body["status"] = json!("0x0");
            let reverted = Expected::Refused("TRANSACTION_REVERTED");
            vec![case("reverted, with its logs", body, reverted)]
        }
        DepositKind::Nothing => vec![
            by_log("native", native(USER, U256::ZERO, id), Expected::Nothing),
            by_log(
                "token",
                transfer(TOKEN, USER, DEPOSITORY, 0),
                Expected::Nothing,
            ),
        ],
        DepositKind::FromDepository => {
            let itself = transfer(TOKEN, DEPOSITORY, DEPOSITORY, AMOUNT);
            vec![by_log("to itself", itself, Expected::Nothing)]
        }
        DepositKind::SelfCall => {
            let body = sent(&[good(), executed("0x07", DEPOSITORY)], String::new());
            vec![case("an execution that calls it", body, UNREADABLE)]
        }
        DepositKind::ElsewhereNamed => vec![case(
            "calldata without a transfer",
            sent(&[], transfer_input(AMOUNT, &digits(id))),
            Expected::Nothing,
        )],
        _ => odd_shapes(id),
    }
}

/// The depository's event by others, one of which runs the depository's code as its own.
fn look_alikes(id: B256) -> Vec<Case> {
    let by = |emitter| emitted_by(emitter, native(USER, U256::from(AMOUNT), id));
    let of = |emitter| by_log("by another contract", by(emitter), Expected::Nothing);
    let mut cases: Vec<_> = [OTHER, SECOND, TOKEN].map(of).into();
    let called = through(OTHER, deposit_native(id), &[by(OTHER)]);
    let proxied = case("by a proxy of the depository", called, Expected::Nothing);
    cases.push(proxied);
    cases
}

/// Deposits of which there is the event, or the call, and nothing that moved.
fn unmoved(id: B256) -> Vec<Case> {
    let claimed = |token| erc20(USER, token, AMOUNT, id);
    let zero = transfer(ZERO, USER, DEPOSITORY, AMOUNT);
    let nothing = |what, log| by_log(what, log, Expected::Nothing);
    // The call's logs are gone with it, and its value is back where it came from.
    let undone = |input: String| through(OTHER, format!("1fad948c{input}"), &[]);
    let undone = |what, input| case(what, undone(input), Expected::Nothing);
    let transferred = transfer_input(AMOUNT, &digits(id));
    vec![
        nothing("no transfer", claimed(TOKEN)),
        nothing("no token", claimed(ZERO)),
        nothing("a transfer of the zero address", zero),
        undone("an inner call that was undone", deposit_native(id)),
        undone("an inner transfer that was undone", transferred),
    ]
}

/// What the user sends to another contract than the depository.
fn through(to: &str, input: String, logs: &[Value]) -> Value {
    let outer = Outer {
        from: USER,
        to,
        value: AMOUNT,
        input,
    };
    body(&outer, logs)
}

fn odd_shapes(id: B256) -> Vec<Case> {
    let of_depository = |topics: &[String], words: &[String]| {
        let mut topics = topics.to_vec();
        topics.insert(0, hash(NATIVE_DEPOSIT));
        log(DEPOSITORY, &topics, words)
    };
    let (user, amount, id) = (word(USER), small(AMOUNT), digits(id));
    let indexed = of_depository(&[topic(USER)], &[amount.clone(), id.clone()]);
    let short = of_depository(&[], &[user.clone(), amount.clone()]);
    let more = of_depository(
        &[topic("0x05")],
        &[user.clone(), amount.clone(), id.clone()],
    );
    let dirty = of_depository(&[], &["f".repeat(64), amount.clone(), id]);
    let of_token = |topics: &[String], words: &[String]| {
        let mut topics = topics.to_vec();
        topics.insert(0, hash(TRANSFER));
        log(TOKEN, &topics, words)
    };
    let (from, to) = (topic(USER), topic(DEPOSITORY));
    let numbered = of_token(&[from.clone(), to.clone(), topic("0x05")], &[]);
    let plain = of_token(&[], &[user, word(DEPOSITORY), amount.clone()]);
    let long = of_token(&[from, to], &[amount.clone(), amount]);
    vec![
        by_log("an indexed field", indexed, UNREADABLE),
        by_log("a topic more", more, UNREADABLE),
        by_log("a missing field", short, UNREADABLE),
        by_log("an account of 32 bytes", dirty, UNREADABLE),
        by_log("a token that is one of a kind", numbered, Expected::Nothing),
        by_log("a transfer without indexes", plain, Expected::Nothing),
        by_log("a transfer with more data", long, Expected::Nothing),
    ]
}
