//! The column of `bitcoin-vm`.

mod deposits;
mod index;
mod owners;
mod withdrawals;

use alloy::primitives::{B256, keccak256};
use serde_json::{Map, Value, json};
use vm::Family;

use crate::{
    family::{
        AMOUNT, Accounts, Answer, Case, DepositKind, ExecutionKind, Expected, Offered, Owner,
        OwnerForm, Paying, PaymentKind, Script, Twist, UNREADABLE, Withdrawing,
    },
    ledger::{self, Block, Ledger, Tx},
};

/// An address and the script that pays it.
type Account = (&'static str, &'static str);

const NATIVE: &str = "bc1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqmql8k8";
/// Of the key that is 32 times the byte 1.
const DEPOSITORY: Account = (
    "bc1q0xcqpzrky6eff2g52qdye53xkk9jxkvrh6yhyw",
    "001479b000887626b294a914501a4cd226b58b235983",
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
const LOOK_ALIKE: &str = "76a91479b000887626b294a914501a4cd226b58b23598388ac";
/// Satoshis of an output that an account can spend.
const FUNDS: u64 = 2_050_000_000_000_000;
/// Satoshis that a user's transaction gives back, and what a child of it passes on: the rest is for the inclusion of both.
const CHANGE: u64 = 7_777;
const PASSED: u64 = 5_000;
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
    outputs.push(to(USER, CHANGE));
    body(&[USER], outputs)
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
            "gettxout" => Ok(unspent(ledger, (text, &params[1]))),
            _ => Err((-32601, "Method not found")),
        }
    }

    fn page(&self, ledger: &Ledger, path: &str) -> Option<String> {
        index::page(ledger, path)
    }

    fn indexed(&self, entry: &mut Value, url: &str) -> Offered<()> {
        entry["additionalData"]["esploraCompatibleApiUrl"] = json!(url);
        Ok(())
    }

    fn once(&self) -> &'static [&'static str] {
        &["blockhash", "block_hash"]
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
            | DepositKind::Crowded
            | DepositKind::Payers => deposits::sound(kind, orders),
            DepositKind::Unrelayed => deposits::unrelayed(orders[0]),
            DepositKind::Beside => deposits::beside(orders[0]),
            DepositKind::NoId
            | DepositKind::NotAnId
            | DepositKind::OddShape
            | DepositKind::ElsewhereNamed => deposits::unnamed(kind, orders[0]),
            DepositKind::LookAlike
            | DepositKind::EventAlone
            | DepositKind::OwnVault
            | DepositKind::Nothing
            | DepositKind::TwoIds
            | DepositKind::TwoDepositors
            | DepositKind::TwoDepositories
            | DepositKind::FromDepository
            | DepositKind::Coinbase => deposits::unsound(kind, orders),
            DepositKind::Token | DepositKind::Worthless => return Err("there is one currency"),
            DepositKind::FeeOnTransfer => return Err("an output arrives as it is"),
            DepositKind::Failed => return Err("what is in a block has not failed"),
            DepositKind::SelfCall => return Err("a depository is a key, and calls nobody"),
            DepositKind::InnerCall => return Err("a transaction calls nobody"),
            DepositKind::TooMany => return Err("what one transaction deposits is one deposit"),
            DepositKind::Tables => return Err("transactions name accounts in full"),
            DepositKind::NoTime => return Err("a header has a time"),
            DepositKind::Calling => return Err("a transaction calls nobody"),
            DepositKind::Hidden => return Err("every output shows its amount"),
            DepositKind::ClosedVault | DepositKind::ClosedPayer => {
                return Err("an output is no account that closes");
            }
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
            PaymentKind::TwoWays => return Err("an output is the only way to pay"),
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

    fn child(&self, tx: &Tx, order: Option<B256>) -> Offered<(Tx, Expected)> {
        // The change stands last.
        let change = tx.body["vout"].as_array().unwrap().len() - 1;
        let (outputs, expected) = match order {
            Some(id) => (
                vec![to(DEPOSITORY, PASSED), note(&id.to_string())],
                deposits::minted(USER, order, PASSED),
            ),
            None => (vec![to(USER, PASSED)], UNREADABLE),
        };
        let mut body = body(&[USER], outputs);
        body["vin"][0]["txid"] = json!(tx.id);
        body["vin"][0]["vout"] = json!(change);
        let id = self.id(&format!("a child of {}", tx.id));
        Ok((Tx { id, body }, expected))
    }

    fn withdrawal(&self, asked: &Withdrawing<'_>) -> Vec<u8> {
        withdrawals::encoded(asked)
    }

    fn unsound_withdrawals(
        &self,
        asked: &Withdrawing<'_>,
    ) -> Offered<Vec<(&'static str, Vec<u8>)>> {
        Ok(withdrawals::unsound(asked))
    }

    fn foreign_withdrawal(&self, asked: &Withdrawing<'_>) -> Offered<Vec<u8>> {
        Ok(withdrawals::foreign(asked))
    }

    fn additional(&self) -> Option<Map<String, Value>> {
        withdrawals::additional()
    }

    fn expires(&self) -> Offered<()> {
        Err("no time ends a transaction")
    }

    fn names_withdrawals(&self) -> Offered<()> {
        Err("what a transaction executes has no name in it")
    }

    fn owners(&self, form: OwnerForm, key: u8) -> Offered<Vec<Owner>> {
        Ok(owners::owners(form, key))
    }

    fn execution(&self, kind: ExecutionKind, withdrawal: &[u8]) -> Offered<Tx> {
        withdrawals::execution(self, kind, withdrawal)
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

/// What stands at an output that no block's transaction spends; else null.
fn unspent(ledger: &Ledger, (id, place): (&str, &Value)) -> Value {
    let known = accounts().find(|(address, _)| funding(address) == id);
    let (Some((_, script)), true) = (known, *place == json!(0)) else {
        return Value::Null;
    };
    match spender(ledger, id, place) {
        Some(_) => Value::Null,
        None => output(script, FUNDS),
    }
}

/// The transaction in a block that spends an output.
fn spender<'a>(ledger: &'a Ledger, id: &str, place: &Value) -> Option<&'a Tx> {
    let spends = |tx: &&Tx| {
        let mut inputs = tx.body["vin"].as_array().into_iter().flatten();
        inputs.any(|input| input["txid"] == id && input["vout"] == *place)
    };
    ledger.blocks().flat_map(|block| &block.txs).find(spends)
}
