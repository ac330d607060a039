//! The column of `bitcoin-vm`.

use alloy::primitives::{B256, U256, keccak256};
use serde_json::{Value, json};
use vm::Family;

use crate::{
    family::{
        AMOUNT, Accounts, Answer, Case, DepositKind, Expected, Minted, Offered, Paying,
        PaymentKind, Script, Twist, UNREADABLE, case,
    },
    ledger::{self, Block, Ledger, Tx},
};

/// An address and the script that pays it.
type Account = (&'static str, &'static str);

const NATIVE: &str = "bc1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqmql8k8";
const DEPOSITORY: Account = (
    "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF",
    "76a914e58afa142f57509ee9a930810e33592581ad9b3188ac",
);
const SECOND: Account = (
    "bc1q82jn90vgkwvknrhxpla797tu050fj0jaaaznne",
    "00143aa532bd88b399698ee60ffbe2f97c7d1e993e5d",
);
const USER: Account = (
    "bc1qs34tc3mtzq4w9s2ea7klr2jmxm8p78rsdjzvl0",
    "0014846abc476b102ae2c159efadf1aa5b36ce1f1c70",
);
const SOLVER: Account = (
    "bc1qn04nzhfdhre3j24fpx9qgsl576egymwl5cpvd7",
    "00149beb315d2db8f3192aa9098a0443f4f6b2826ddf",
);
const RECIPIENT: Account = (
    "bc1qcuqg72jtj44f8j5m9vgt0dh2vzd5llef36zu46",
    "0014c7008f2a4b956a93ca9b2b10b7b6ea609b4fff29",
);
const STRANGER: Account = (
    "bc1qxxespk2attlzh24v3rf7qfxjy5pzs7wc2qpj8w",
    "001431b300d95d5afe2baaac88d3e024d225022879d8",
);
/// Payers of the other kinds.
const KINDS: [Account; 4] = [
    (
        "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
        "76a9147680adec8eabcabac676be9e83854ade0bd22cdb88ac",
    ),
    (
        "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
        "a914b472a266d0bd89c13706a4132ccfb16f7c3b9fcb87",
    ),
    (
        "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
        "00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262",
    ),
    (
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
        "512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    ),
];
/// The hash in the depository's script, as a script of another kind.
const LOOK_ALIKE: &str = "0014e58afa142f57509ee9a930810e33592581ad9b31";
/// Satoshis of an output that an account can spend.
const FUNDS: u64 = 2_050_000_000_000_000;
/// Below what there will ever be, and no sum of binary fractions.
const MOST: u64 = 1_999_999_999_999_999;
pub struct Bitcoin;

/// Digits of a hash of a text.
fn hashed(text: &str) -> String {
    alloy::hex::encode(keccak256(text))
}

fn digits(hash: &B256) -> String {
    alloy::hex::encode(hash)
}

/// The transaction that gave an account what it spends.
fn funding(account: &str) -> String {
    hashed(&format!("funding of {account}"))
}

fn accounts() -> impl Iterator<Item = Account> {
    let known = [DEPOSITORY, SECOND, USER, SOLVER, RECIPIENT, STRANGER];
    known.into_iter().chain(KINDS)
}

fn account(address: &str) -> Account {
    accounts().find(|(known, _)| *known == address).unwrap()
}

/// Satoshis as nodes write them: bitcoins with eight digits.
fn bitcoins(amount: u64) -> Value {
    let text = format!("{}.{:08}", amount / 100_000_000, amount % 100_000_000);
    serde_json::from_str(&text).unwrap()
}

fn output(script: &str, amount: u64) -> Value {
    json!({"value": bitcoins(amount), "scriptPubKey": {"hex": script}})
}

fn to(account: Account, amount: u64) -> Value {
    output(account.1, amount)
}

/// An `OP_RETURN` of one push.
fn note(text: &str) -> Value {
    let push = match text.len() {
        length @ 0..=75 => format!("{length:02x}"),
        length => format!("4c{length:02x}"),
    };
    output(&format!("6a{push}{}", alloy::hex::encode(text)), 0)
}

/// A signature of the whole transaction with the hash type `kind`, and a key.
fn witness(kind: &str) -> Value {
    json!([format!("3006020101020101{kind}"), "02".repeat(33)])
}

fn input(from: Account, kind: &str) -> Value {
    let signed = match from.1.starts_with("5120") {
        // Of Taproot, which covers the whole.
        true => json!(["07".repeat(64)]),
        false => witness(kind),
    };
    json!({
        "txid": funding(from.0), "vout": 0, "scriptSig": {"hex": ""}, "txinwitness": signed,
        "sequence": 0xffff_fffd_u32,
    })
}

fn body(from: &[Account], mut outputs: Vec<Value>) -> Value {
    for (n, output) in outputs.iter_mut().enumerate() {
        output["n"] = output.get("n").cloned().unwrap_or_else(|| json!(n));
    }
    let vin: Vec<Value> = from.iter().map(|from| input(*from, "01")).collect();
    json!({"vin": vin, "vout": outputs})
}

/// What the user sends, with change.
fn sent(mut outputs: Vec<Value>) -> Value {
    outputs.push(to(USER, 7_777));
    body(&[USER], outputs)
}

fn minted(depositor: Account, order: Option<B256>, amount: u64) -> Expected {
    Expected::Minted(vec![Minted {
        depositor: depositor.0.into(),
        order,
        currency: NATIVE.into(),
        amount: U256::from(amount),
    }])
}

fn plain(amount: u64, id: B256) -> Value {
    sent(vec![to(DEPOSITORY, amount), note(&id.to_string())])
}

impl Script for Bitcoin {
    fn column(&self) -> &'static str {
        "bitcoin"
    }

    fn family(&self) -> &'static Family {
        vm::family("bitcoin-vm").unwrap()
    }

    fn entry(&self, id: &str, identity: u8) -> Value {
        let genesis = digits(&ledger::genesis(identity));
        json!({
            "id": id, "vmType": "bitcoin-vm", "hubChainId": (7_000 + u32::from(identity)).to_string(),
            "depository": DEPOSITORY.0, "additionalDepositories": [SECOND.0],
            // The statement's own block counts.
            "additionalData": {"finalizationBlocks": self.depth() + 1, "genesisHash": genesis},
        })
    }

    fn pace(&self) -> u64 {
        600
    }

    fn depth(&self) -> u64 {
        3
    }

    fn tag(&self, _: &mut Value) -> Offered<()> {
        Err("the chain calls no block final")
    }

    fn skips(&self) -> Offered<()> {
        Err("every height has a block")
    }

    fn accounts(&self) -> Accounts {
        Accounts {
            user: USER.0,
            solver: SOLVER.0.into(),
            recipient: RECIPIENT.0,
            stranger: STRANGER.0,
        }
    }

    fn currencies(&self) -> Vec<&'static str> {
        vec![NATIVE]
    }

    fn extra_data(&self) -> String {
        "0x".into()
    }

    fn other_extra_data(&self) -> Offered<String> {
        Err("no contract pays")
    }

    fn id(&self, name: &str) -> String {
        hashed(name)
    }

    fn answer(&self, ledger: &Ledger, method: &str, params: &Value) -> Answer {
        let text = params[0].as_str().unwrap_or_default();
        let hash = || {
            text.parse::<B256>()
                .ok()
                .and_then(|hash| by_hash(ledger, &hash))
        };
        let unknown = || (-5, "no such thing");
        match method {
            "getblockcount" => Ok(json!(ledger.tip().number)),
            "getbestblockhash" => Ok(json!(hash_of(ledger, ledger.tip()))),
            "getblockhash" => {
                let number = params[0].as_u64().unwrap_or(u64::MAX);
                let block = ledger.at(number).ok_or((-8, "Block height out of range"))?;
                Ok(json!(hash_of(ledger, block)))
            }
            "getblockheader" => Ok(header(ledger, hash().ok_or_else(unknown)?)),
            "getblock" => {
                let block = hash().ok_or_else(unknown)?;
                let mut found = header(ledger, block);
                found["tx"] = block.txs.iter().map(|tx| tx.id.as_str()).collect();
                Ok(found)
            }
            "getblockchaininfo" => Ok(json!({
                "chain": "main", "blocks": ledger.tip().number, "headers": ledger.tip().number,
                "bestblockhash": hash_of(ledger, ledger.tip()), "initialblockdownload": false,
            })),
            "getrawtransaction" => transaction(ledger, text).ok_or_else(unknown),
            _ => Err((-32601, "Method not found")),
        }
    }

    fn once(&self) -> &'static str {
        "blockhash"
    }

    fn twist(&self, twist: Twist, tx: &Tx) -> Offered<Tx> {
        let mut tx = tx.clone();
        let outputs = &mut tx.body["vout"];
        match twist {
            Twist::Amount => outputs[0]["value"] = bitcoins(AMOUNT + 1),
            Twist::Added => {
                let mut more = to(DEPOSITORY, AMOUNT);
                more["n"] = json!(3);
                outputs.as_array_mut().unwrap().push(more);
            }
            Twist::Dropped => outputs[0]["scriptPubKey"]["hex"] = json!(STRANGER.1),
            Twist::Order => {
                let mut other = note(&B256::repeat_byte(0x5a).to_string());
                other["n"] = json!(1);
                outputs[1] = other;
            }
            Twist::Status => return Err("what is in a block has not failed"),
            Twist::Other => tx.body["id"] = json!(hashed("another transaction")),
            Twist::OddHex => outputs[0]["scriptPubKey"]["hex"] = json!("00149"),
            Twist::Indexes => outputs[1]["n"] = json!(0),
        }
        Ok(tx)
    }

    fn deposits(&self, kind: DepositKind, orders: [B256; 2]) -> Offered<Vec<Case>> {
        Ok(match kind {
            DepositKind::Plain
            | DepositKind::Units
            | DepositKind::Edges
            | DepositKind::Several
            | DepositKind::LongText
            | DepositKind::Payers => sound(kind, orders),
            DepositKind::NoId
            | DepositKind::NotAnId
            | DepositKind::OddShape
            | DepositKind::ElsewhereNamed => unnamed(kind, orders[0]),
            DepositKind::LookAlike
            | DepositKind::EventAlone
            | DepositKind::OwnVault
            | DepositKind::Nothing
            | DepositKind::TwoIds
            | DepositKind::TwoDepositors
            | DepositKind::TwoDepositories
            | DepositKind::FromDepository
            | DepositKind::Coinbase => unsound(kind, orders),
            DepositKind::Token | DepositKind::Worthless => return Err("there is one currency"),
            DepositKind::FeeOnTransfer => return Err("an output arrives as it is"),
            DepositKind::Failed => return Err("what is in a block has not failed"),
            DepositKind::SelfCall => return Err("a depository is a key, and calls nobody"),
            DepositKind::InnerCall => return Err("a transaction calls nobody"),
            DepositKind::TooMany => return Err("what one transaction deposits is one deposit"),
            DepositKind::Tables => return Err("transactions name accounts in full"),
            DepositKind::NoTime => return Err("a header has a time"),
        })
    }

    fn named_by_other(&self, _: B256) -> Offered<Value> {
        Err("who pays signs the note")
    }

    fn payment(&self, kind: PaymentKind, paying: &Paying<'_>) -> Offered<Value> {
        let (from, recipient) = (account(paying.from), account(paying.to));
        let [id, other] = paying.orders.map(|id| id.to_string());
        let paid = |from: Account, notes: &[&str]| {
            let mut outputs = vec![to(recipient, paying.amount), to(from, 4_321)];
            outputs.extend(notes.iter().map(|text| note(text)));
            body(&[from], outputs)
        };
        Ok(match kind {
            PaymentKind::Good => paid(from, &[&id]),
            PaymentKind::NamesOther => paid(from, &[&other]),
            PaymentKind::NamesNone => paid(from, &[]),
            PaymentKind::NamesLoosely => paid(from, &[&format!("{id}|")]),
            PaymentKind::NamesBoth => paid(from, &[&id, &other]),
            PaymentKind::OutOfDepository => paid(DEPOSITORY, &[&id]),
            PaymentKind::Split => {
                let half = paying.amount / 2;
                let parts = [half, paying.amount - half].map(|part| to(recipient, part));
                let [one, two] = parts;
                body(&[from], vec![one, to(from, 4_321), two, note(&id)])
            }
            PaymentKind::OfAnother => {
                let mut paid = paid(from, &[&id]);
                // Its owner signed for any transaction that has this output.
                paid["vin"][0] = input(STRANGER, "83");
                paid
            }
            PaymentKind::OtherCurrency => return Err("there is one currency"),
            PaymentKind::Failed => return Err("what is in a block has not failed"),
            PaymentKind::NamedByAnother => return Err("who pays signs the note"),
            PaymentKind::OtherRouter => return Err("no contract pays"),
        })
    }

    fn calls(&self) -> Offered<[String; 2]> {
        Err("orders have no calls")
    }

    fn called(&self, _: &Paying<'_>, _: &[usize]) -> Offered<Value> {
        Err("orders have no calls")
    }

    /// Spends the same with a higher fee.
    fn rival(&self, tx: &Tx) -> Offered<Tx> {
        let mut rival = Tx {
            id: self.id("a replacement"),
            ..tx.clone()
        };
        let change = rival.body["vout"].as_array_mut().unwrap().last_mut();
        change.unwrap()["value"] = bitcoins(5_555);
        Ok(rival)
    }
}

/// Deposits that are what they look like.
fn sound(kind: DepositKind, [id, _]: [B256; 2]) -> Vec<Case> {
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
        _ => vec![exact("with a note", AMOUNT)],
    }
}

/// Deposits that name no order.
fn unnamed(kind: DepositKind, id: B256) -> Vec<Case> {
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
fn unsound(kind: DepositKind, [id, second]: [B256; 2]) -> Vec<Case> {
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
            let both = vec![to_depository(), to(SECOND, AMOUNT), named()];
            vec![refused("this one and one of before", both)]
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

/// The hash of a block; the first one's says which chain it is.
fn hash_of(ledger: &Ledger, block: &Block) -> String {
    match block.number {
        0 => digits(&ledger::genesis(ledger.identity)),
        _ => digits(&block.hash),
    }
}

fn by_hash<'a>(ledger: &'a Ledger, hash: &B256) -> Option<&'a Block> {
    match *hash == ledger::genesis(ledger.identity) {
        true => ledger.at(0),
        false => ledger.by_hash(hash),
    }
}

fn header(ledger: &Ledger, block: &Block) -> Value {
    let mut header = json!({
        "hash": hash_of(ledger, block), "height": block.number, "time": block.time,
        "mediantime": block.time, "confirmations": ledger.tip().number - block.number + 1,
    });
    if block.number > 0 {
        header["previousblockhash"] = json!(digits(&block.parent));
    }
    header
}

/// A transaction of the ledger, or the one that gave an account what it spends.
fn transaction(ledger: &Ledger, id: &str) -> Option<Value> {
    let found = ledger.find(id);
    let known = found.map(|(.., tx)| tx).or_else(|| ledger.pending(id));
    let (mut shown, block) = match known {
        Some(tx) => (tx.body.clone(), found.map(|(block, ..)| block)),
        None => {
            let (_, script) = accounts().find(|(address, _)| funding(address) == id)?;
            (body(&[], vec![output(script, FUNDS)]), ledger.at(1))
        }
    };
    let txid = shown.get("id").cloned().unwrap_or_else(|| json!(id));
    for field in ["txid", "hash"] {
        shown[field] = txid.clone();
    }
    if let Some(block) = block {
        let hash = hash_of(ledger, block);
        shown["blockhash"] = json!(hash);
        shown["blocktime"] = json!(block.time);
        shown["time"] = json!(block.time);
        shown["confirmations"] = json!(ledger.tip().number - block.number + 1);
    }
    Some(shown)
}
