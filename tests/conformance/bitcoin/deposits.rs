//! Deposits of `bitcoin-vm`, and what looks like them.

use alloy::primitives::{B256, U256};
use serde_json::{Value, json};

use super::{
    Account, DEPOSITORY, KINDS, LOOK_ALIKE, MOST, NATIVE, RECIPIENT, SECOND, STRANGER, USER,
    bitcoins, body, note, output, plain, sent, to,
};
use crate::family::{AMOUNT, Case, DepositKind, Expected, Minted, UNREADABLE, case};

/// Outputs around a deposit.
const CROWD: usize = 4_000;
/// The least that nodes pass on in an output: to an address like the depository's, and to any address.
const PASSED_ON: u64 = 294;
const PASSED_ON_TO_ANY: u64 = 546;

pub fn minted(depositor: Account, order: Option<B256>, amount: u64) -> Expected {
    Expected::Minted(vec![Minted {
        depositor: depositor.0.into(),
        order,
        currency: NATIVE.into(),
        amount: U256::from(amount),
    }])
}

/// Deposits that are what they look like.
pub fn sound(kind: DepositKind, [id, _]: [B256; 2]) -> Vec<Case> {
    let exact = |what, amount| case(what, plain(amount, id), minted(USER, Some(id), amount));
    let noted = |text: String| sent(vec![to(DEPOSITORY, AMOUNT), note(&text)]);
    let named = |depositor| minted(depositor, Some(id), AMOUNT);
    match kind {
        DepositKind::Units => vec![
            exact("one satoshi", 1),
            exact("one less", AMOUNT - 1),
            exact("one more", AMOUNT + 1),
        ],
        DepositKind::Edges => vec![
            exact("0.29", 29_000_000),
            exact("0.1 and 0.2", 30_000_000),
            exact("nearly all that there is", MOST),
        ],
        DepositKind::Several => {
            let outputs = vec![
                to(DEPOSITORY, AMOUNT),
                to(STRANGER, 1_000),
                note(&id.to_string()),
                to(DEPOSITORY, 7),
            ];
            vec![case(
                "two outputs",
                sent(outputs),
                minted(USER, Some(id), AMOUNT + 7),
            )]
        }
        DepositKind::LongText => vec![
            case(
                "text behind the id",
                noted(format!("{id}|x=y|")),
                named(USER),
            ),
            case(
                "a depositor behind the id",
                noted(format!("{id}|depositor={}|", STRANGER.0)),
                named(STRANGER),
            ),
            case(
                "a depositor behind what is none",
                noted(format!("{id}|depositor=x|depositor={}|", STRANGER.0)),
                named(STRANGER),
            ),
        ],
        DepositKind::Payers => {
            let whats = ["P2PKH", "P2SH", "P2WSH", "P2TR"].into_iter();
            let cases = whats.zip(KINDS).map(|(what, payer)| {
                let outputs = vec![to(DEPOSITORY, AMOUNT), note(&id.to_string())];
                case(what, body(&[payer, USER], outputs), named(payer))
            });
            cases.collect()
        }
        DepositKind::Crowded => {
            let mut outputs = vec![to(STRANGER, 1); CROWD];
            outputs.insert(CROWD / 2, to(DEPOSITORY, AMOUNT));
            outputs.push(note(&id.to_string()));
            vec![case("among 4000 outputs", sent(outputs), named(USER))]
        }
        _ => vec![exact("with a note", AMOUNT)],
    }
}

/// Deposits of less than nodes pass on, which a block may have.
pub fn unrelayed(id: B256) -> Vec<Case> {
    let exact = |what, amount| case(what, plain(amount, id), minted(USER, Some(id), amount));
    vec![
        exact("too little to be passed on", PASSED_ON - 1),
        exact("just enough", PASSED_ON),
        exact("too little for other addresses", PASSED_ON_TO_ANY - 1),
        exact("just enough for them", PASSED_ON_TO_ANY),
    ]
}

/// Next to nothing beside a deposit: what reaches the depository is one deposit.
pub fn beside(id: B256) -> Vec<Case> {
    let (real, noted) = (|| to(DEPOSITORY, AMOUNT), || note(&id.to_string()));
    let arrives = |what, outputs, amount| case(what, sent(outputs), minted(USER, Some(id), amount));
    let mut burned = noted();
    burned["value"] = bitcoins(1);
    let elsewhere = output(LOOK_ALIKE, 1);
    vec![
        arrives(
            "one satoshi before it",
            vec![to(DEPOSITORY, 1), real(), noted()],
            AMOUNT + 1,
        ),
        arrives(
            "one satoshi behind it",
            vec![real(), noted(), to(DEPOSITORY, 1)],
            AMOUNT + 1,
        ),
        arrives(
            "nothing before it",
            vec![to(DEPOSITORY, 0), real(), noted()],
            AMOUNT,
        ),
        arrives("one satoshi in the note", vec![real(), burned], AMOUNT),
        arrives(
            "one satoshi for the same key's other address",
            vec![elsewhere, real(), noted()],
            AMOUNT,
        ),
    ]
}

/// Deposits that name no order.
pub fn unnamed(kind: DepositKind, id: B256) -> Vec<Case> {
    let text = id.to_string();
    let whose = || minted(USER, None, AMOUNT);
    let with = |outputs: Vec<Value>| {
        let mut all = vec![to(DEPOSITORY, AMOUNT)];
        all.extend(outputs);
        sent(all)
    };
    let noted = |what, text: &str| case(what, with(vec![note(text)]), whose());
    let scripted = |what, script: String| case(what, with(vec![output(&script, 0)]), whose());
    let push = format!("42{}", alloy::hex::encode(&text));
    match kind {
        DepositKind::NoId => vec![
            case("no note", with(Vec::new()), whose()),
            noted("an id of zero", &B256::ZERO.to_string()),
        ],
        DepositKind::NotAnId => vec![
            noted("no 0x", &text[2..]),
            noted("not hex", &text.replacen(&text[2..4], "zz", 1)),
            noted("too short", &text[..65]),
            noted("text before the id", &format!(" {text}")),
        ],
        DepositKind::OddShape => vec![
            scripted("two pushes", format!("6a{push}0101")),
            scripted("a push that is cut", "6a423078".into()),
            scripted("no push", "6a".into()),
            scripted("no OP_RETURN", push),
            scripted(
                "too long",
                format!("6a4d3c01{}{}", alloy::hex::encode(&text), "20".repeat(250)),
            ),
        ],
        _ => {
            let mut body = with(Vec::new());
            let shown = json!(alloy::hex::encode(&text));
            body["vin"][0]["txinwitness"]
                .as_array_mut()
                .unwrap()
                .push(shown);
            vec![case("in the witness", body, whose())]
        }
    }
}

/// What is no deposit, or whose is not known.
pub fn unsound(kind: DepositKind, [id, second]: [B256; 2]) -> Vec<Case> {
    let named = || note(&id.to_string());
    let to_depository = || to(DEPOSITORY, AMOUNT);
    let refused = |what, outputs| case(what, sent(outputs), UNREADABLE);
    match kind {
        DepositKind::LookAlike => {
            let other_kind = output(LOOK_ALIKE, AMOUNT);
            vec![refused(
                "the same key's other address",
                vec![other_kind, named()],
            )]
        }
        DepositKind::EventAlone => vec![refused("a note alone", vec![named()])],
        DepositKind::OwnVault => {
            let own = to(STRANGER, AMOUNT);
            vec![refused("paid to somebody else", vec![own, named()])]
        }
        DepositKind::Nothing => vec![refused("nothing", vec![to(DEPOSITORY, 0), named()])],
        DepositKind::TwoIds => {
            let both = vec![to_depository(), named(), note(&second.to_string())];
            vec![refused("two notes", both)]
        }
        DepositKind::TwoDepositors => {
            let by = |who: Account| note(&format!("{id}|depositor={}|", who.0));
            let both = vec![to_depository(), by(USER), by(STRANGER)];
            vec![refused("two notes", both)]
        }
        DepositKind::TwoDepositories => {
            let both = |amount| vec![to_depository(), to(SECOND, amount), named()];
            vec![
                refused("this one and one of before", both(AMOUNT)),
                refused("one satoshi for one of before", both(1)),
            ]
        }
        DepositKind::FromDepository => {
            let spent = |from: &[Account]| {
                let outputs = vec![to(RECIPIENT, 5_000), to_depository(), named()];
                body(from, outputs)
            };
            vec![
                case("change", spent(&[DEPOSITORY]), Expected::Nothing),
                case(
                    "beside somebody's",
                    spent(&[USER, DEPOSITORY]),
                    Expected::Nothing,
                ),
                case("of another", spent(&[SECOND]), Expected::Nothing),
            ]
        }
        _ => {
            let mut body = sent(vec![to_depository(), named()]);
            body["vin"] = json!([{"coinbase": "0101", "sequence": 0xffff_ffff_u32}]);
            vec![case("what a block made", body, UNREADABLE)]
        }
    }
}
