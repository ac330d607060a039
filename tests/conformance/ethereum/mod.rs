//! The column of `ethereum-vm`.

mod deposits;
mod owners;
mod withdrawals;

use alloy::primitives::{Address as EvmAddress, B256, U256, keccak256};
use serde_json::{Value, json};
use vm::Family;

use crate::{
    deal,
    family::{
        AMOUNT, Accounts, Answer, Case, DepositKind, ExecutionKind, Expected, Offered, Owner,
        OwnerForm, Paying, PaymentKind, Script, Twist, Withdrawing,
    },
    ledger::{Block, Ledger, Tx},
};

const USER: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
const STRANGER: &str = "0x00000000000000000000000000000000000000a1";
const RECIPIENT: &str = "0x1111111111111111111111111111111111111111";
const DEPOSITORY: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
/// A depository of before.
const SECOND: &str = "0x00000000000000000000000000000000000000dd";
const TOKEN: &str = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512";
const WORTHLESS: &str = "0x00000000000000000000000000000000000000bb";
const ROUTER: &str = "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0";
/// A contract of nobody's.
const OTHER: &str = "0x00000000000000000000000000000000000000ee";
const ZERO: &str = "0x0000000000000000000000000000000000000000";

/// The events of the guide's protocol 4.1.
const NATIVE_DEPOSIT: &str = "RelayNativeDeposit(address,uint256,bytes32)";
const TRANSFER: &str = "Transfer(address,address,uint256)";
const ROUTER_PAID: &str = "SolverNativeTransfer(address,uint256)";
const ROUTER_CALLED: &str = "SolverCallExecuted(address,bytes,uint256)";

pub struct Ethereum;

fn word(text: &str) -> String {
    format!("{:0>64}", text.trim_start_matches("0x"))
}

fn number(amount: U256) -> String {
    format!("{amount:064x}")
}

fn small(amount: u64) -> String {
    number(U256::from(amount))
}

fn digits(id: B256) -> String {
    alloy::hex::encode(id)
}

fn topic(text: &str) -> String {
    format!("0x{}", word(text))
}

fn hash(event: &str) -> String {
    keccak256(event).to_string()
}

fn log(emitter: &str, topics: &[String], words: &[String]) -> Value {
    json!({"address": emitter, "topics": topics, "data": format!("0x{}", words.concat())})
}

fn native(depositor: &str, amount: U256, id: B256) -> Value {
    let words = [word(depositor), number(amount), digits(id)];
    log(DEPOSITORY, &[hash(NATIVE_DEPOSIT)], &words)
}

fn transfer(token: &str, from: &str, to: &str, amount: u64) -> Value {
    let topics = [hash(TRANSFER), topic(from), topic(to)];
    log(token, &topics, &[small(amount)])
}

fn router_paid(router: &str, to: &str, amount: u64) -> Value {
    let words = [word(to), small(amount)];
    log(router, &[hash(ROUTER_PAID)], &words)
}

/// A transaction's sender, target, value and calldata.
struct Outer<'a> {
    from: &'a str,
    to: &'a str,
    value: u64,
    input: String,
}

fn body(outer: &Outer<'_>, logs: &[Value]) -> Value {
    json!({
        "from": outer.from, "to": outer.to, "value": format!("{:#x}", outer.value),
        "input": format!("0x{}", outer.input), "status": "0x1", "logs": logs,
    })
}

/// `transfer` to the depository with an id and more behind it.
fn transfer_input(amount: u64, behind: &str) -> String {
    format!("a9059cbb{}{}{behind}", word(DEPOSITORY), small(amount))
}

impl Script for Ethereum {
    fn column(&self) -> &'static str {
        "ethereum"
    }

    fn family(&self) -> &'static Family {
        vm::family("ethereum-vm").unwrap()
    }

    fn entry(&self, id: &str, identity: u8) -> Value {
        json!({
            "id": id, "vmType": "ethereum-vm", "hubChainId": (31_000 + u32::from(identity)).to_string(),
            "depository": DEPOSITORY, "additionalDepositories": [SECOND], "fillRouters": [ROUTER],
            "additionalData": {"finalizationBlocks": self.depth(), "finalizationTime": 0},
        })
    }

    fn pace(&self) -> u64 {
        1
    }

    fn depth(&self) -> u64 {
        3
    }

    fn tag(&self, entry: &mut Value) -> Offered<()> {
        entry["additionalData"]["finalityTag"] = json!("finalized");
        Ok(())
    }

    fn skips(&self) -> Offered<()> {
        Err("every height has a block")
    }

    fn accounts(&self) -> Accounts {
        Accounts {
            user: USER,
            solver: format!("{:#x}", deal::solver().address()),
            recipient: RECIPIENT,
            stranger: STRANGER,
        }
    }

    fn currencies(&self) -> Vec<&'static str> {
        vec![ZERO, TOKEN]
    }

    fn extra_data(&self) -> String {
        router_data(ROUTER)
    }

    fn other_extra_data(&self) -> Offered<String> {
        Ok(router_data(OTHER))
    }

    fn id(&self, name: &str) -> String {
        keccak256(name).to_string()
    }

    fn answer(&self, ledger: &Ledger, method: &str, params: &Value) -> Answer {
        let id = params[0].as_str().unwrap_or_default();
        Ok(match method {
            "eth_chainId" => json!(format!("{:#x}", 31_000 + u32::from(ledger.identity))),
            "eth_blockNumber" => json!(format!("{:#x}", ledger.tip().number)),
            "eth_getBlockByNumber" => at(ledger, id).map(header).unwrap_or_default(),
            "eth_getTransactionReceipt" => receipt(ledger, id),
            "eth_getTransactionByHash" => transaction(ledger, id),
            "eth_call" => {
                withdrawals::called(ledger, params).ok_or((-32000, "header not found"))?
            }
            _ => return Err((-32601, "the method does not exist")),
        })
    }

    fn indexed(&self, _: &mut Value, _: &str) -> Offered<()> {
        Err("the chain has no index that is a provider")
    }

    fn once(&self) -> &'static [&'static str] {
        &["status"]
    }

    fn twist(&self, twist: Twist, tx: &Tx) -> Offered<Tx> {
        let mut tx = tx.clone();
        let body = &mut tx.body;
        let data = body["logs"][0]["data"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let id: B256 = data[data.len() - 64..].parse().unwrap();
        match twist {
            Twist::Amount => body["logs"][0] = native(USER, U256::from(AMOUNT + 1), id),
            Twist::Order => body["logs"][0] = native(USER, U256::from(AMOUNT), !id),
            Twist::Added => {
                body["logs"] = json!([
                    native(USER, U256::from(AMOUNT), id),
                    native(USER, U256::from(AMOUNT), id)
                ]);
            }
            Twist::Dropped => body["logs"] = json!([]),
            Twist::Status => body["status"] = json!("0x0"),
            Twist::Other => body["id"] = json!(self.id("another transaction")),
            Twist::OddHex => body["logs"][0]["data"] = json!(data[..data.len() - 1]),
            Twist::Indexes => {
                let mut logs = vec![body["logs"][0].clone(), transfer(OTHER, OTHER, OTHER, 1)];
                for log in &mut logs {
                    log["logIndex"] = json!("0x5");
                }
                body["logs"] = json!(logs);
            }
        }
        Ok(tx)
    }

    fn deposits(&self, kind: DepositKind, orders: [B256; 2]) -> Offered<Vec<Case>> {
        match kind {
            DepositKind::Token | DepositKind::NoId | DepositKind::LongText => {
                Ok(deposits::transferred(kind, orders[0]))
            }
            DepositKind::Plain
            | DepositKind::Units
            | DepositKind::Edges
            | DepositKind::Several
            | DepositKind::Crowded
            | DepositKind::InnerCall => Ok(deposits::sound(kind, orders)),
            DepositKind::TwoIds
            | DepositKind::TwoDepositors
            | DepositKind::TwoDepositories
            | DepositKind::FeeOnTransfer
            | DepositKind::Worthless
            | DepositKind::Calling
            | DepositKind::TooMany => Ok(deposits::doubtful(kind, orders)),
            DepositKind::Beside => Ok(deposits::beside(orders[0])),
            DepositKind::Unrelayed => Err("nodes pass on any amount"),
            DepositKind::NotAnId => Err("an id is 32 bytes of any value"),
            DepositKind::Coinbase => Err("what a block makes is in no transaction"),
            DepositKind::Payers => Err("an account is a key or a contract, and both are 20 bytes"),
            DepositKind::Tables => Err("transactions name accounts in full"),
            DepositKind::NoTime => Err("a header has a time"),
            DepositKind::Hidden => Err("what a token moves is in its log"),
            DepositKind::ClosedVault => Err("what a depository has is in no account that closes"),
            DepositKind::ClosedPayer => Err("what a payer has is in no account that closes"),
            _ => Ok(deposits::unsound(kind, orders)),
        }
    }

    fn named_by_other(&self, order: B256) -> Offered<Value> {
        let outer = Outer {
            from: STRANGER,
            to: OTHER,
            value: 0,
            input: transfer_input(AMOUNT, &digits(order)),
        };
        Ok(body(&outer, &[transfer(TOKEN, USER, DEPOSITORY, AMOUNT)]))
    }

    fn payment(&self, kind: PaymentKind, paying: &Paying<'_>) -> Offered<Value> {
        let [id, other] = paying.orders.map(digits);
        let mut paid = pays(paying, &id);
        let by_token = |from: &str| transfer(TOKEN, from, paying.to, paying.amount);
        match kind {
            PaymentKind::Good => {}
            PaymentKind::NamesOther => paid = pays(paying, &other),
            PaymentKind::NamesNone => paid["input"] = json!("0x"),
            PaymentKind::NamesLoosely => {
                let input = paid["input"].as_str().unwrap_or_default();
                paid["input"] = json!(format!("{input}00"));
            }
            PaymentKind::Failed => paid["status"] = json!("0x0"),
            PaymentKind::OfAnother => paid["logs"] = json!([by_token(STRANGER)]),
            PaymentKind::OutOfDepository => paid["logs"] = json!([by_token(DEPOSITORY)]),
            PaymentKind::OtherCurrency => {
                let token = Paying {
                    currency: TOKEN,
                    ..paying.clone()
                };
                paid = pays(&token, &id);
            }
            PaymentKind::Split => paid = split(paying, &id),
            PaymentKind::TwoWays => paid = two_ways(paying, &id),
            PaymentKind::OtherRouter => {
                paid = routed(paying, [router_paid(OTHER, paying.to, paying.amount)]);
            }
            PaymentKind::NamedByAnother => return Err("who pays writes the calldata"),
            PaymentKind::NamesBoth => return Err("the end of the calldata names one order"),
        }
        Ok(paid)
    }

    fn calls(&self) -> Offered<[String; 2]> {
        let codec = self.family().orders.unwrap();
        Ok([1_u8, 2].map(|which| {
            let call = vm::OrderCall {
                to: self.family().account(OTHER).unwrap(),
                data: vec![which; 36].into(),
                value: U256::from(which),
            };
            alloy::hex::encode_prefixed(codec.encode_call(&call).unwrap())
        }))
    }

    fn called(&self, paying: &Paying<'_>, calls: &[usize]) -> Offered<Value> {
        let mut paid = pays(paying, &digits(paying.orders[0]));
        let made = calls.iter().map(|at| {
            let which = u8::try_from(at + 1).unwrap();
            // The data is 36 bytes in two words.
            let data = format!("{:0<128}", alloy::hex::encode([which; 36]));
            let numbers = [0x60, u64::from(which), 36].map(small);
            let [offset, value, length] = numbers;
            let words = [word(OTHER), offset, value, length, data];
            log(ROUTER, &[hash(ROUTER_CALLED)], &words)
        });
        paid["logs"] = made.collect();
        Ok(paid)
    }

    fn rival(&self, tx: &Tx) -> Offered<Tx> {
        Ok(Tx {
            id: self.id("the same number of the user's"),
            ..tx.clone()
        })
    }

    fn child(&self, _: &Tx, _: Option<B256>) -> Offered<(Tx, Expected)> {
        Err("a transaction spends no output of another")
    }

    fn withdrawal(&self, asked: &Withdrawing<'_>) -> Vec<u8> {
        withdrawals::encoded(asked, &[withdrawals::call(asked)])
    }

    fn unsound_withdrawals(
        &self,
        asked: &Withdrawing<'_>,
    ) -> Offered<Vec<(&'static str, Vec<u8>)>> {
        Ok(withdrawals::unsound(asked))
    }

    fn foreign_withdrawal(&self, _: &Withdrawing<'_>) -> Offered<Vec<u8>> {
        Err("a call request names no depository")
    }

    fn expires(&self) -> Offered<()> {
        Ok(())
    }

    fn names_withdrawals(&self) -> Offered<()> {
        Ok(())
    }

    fn owners(&self, form: OwnerForm, key: u8) -> Offered<Vec<Owner>> {
        owners::owners(form, key)
    }

    fn execution(&self, kind: ExecutionKind, withdrawal: &[u8]) -> Offered<Tx> {
        withdrawals::execution(self, kind, withdrawal)
    }
}

fn router_data(router: &str) -> String {
    format!("0x{}", word(router))
}

/// A payment whose calldata ends with the id.
fn pays(paying: &Paying<'_>, id: &str) -> Value {
    if paying.currency == ZERO {
        let outer = Outer {
            from: paying.from,
            to: paying.to,
            value: paying.amount,
            input: id.to_owned(),
        };
        return body(&outer, &[]);
    }
    let amount = small(paying.amount);
    let outer = Outer {
        from: paying.from,
        to: paying.currency,
        value: 0,
        input: format!("a9059cbb{}{amount}{id}", word(paying.to)),
    };
    let moved = transfer(paying.currency, paying.from, paying.to, paying.amount);
    body(&outer, &[moved])
}

/// A payment in two parts, each of which has a log.
fn split(paying: &Paying<'_>, id: &str) -> Value {
    let half = paying.amount / 2;
    let halves = [half, paying.amount - half];
    if paying.currency == ZERO {
        let logs = halves.map(|part| router_paid(ROUTER, paying.to, part));
        return routed(paying, logs);
    }
    let logs = halves.map(|part| transfer(paying.currency, paying.from, paying.to, part));
    let mut paid = pays(paying, id);
    paid["logs"] = json!(logs);
    paid
}

/// A half is the transaction's own value, the other is what a contract says that it paid.
fn two_ways(paying: &Paying<'_>, id: &str) -> Value {
    let half = paying.amount / 2;
    let own = Paying {
        amount: half,
        ..paying.clone()
    };
    let mut paid = pays(&own, id);
    paid["logs"] = json!([router_paid(ROUTER, paying.to, paying.amount - half)]);
    paid
}

/// A payment through a contract that says so in these logs.
fn routed<const N: usize>(paying: &Paying<'_>, logs: [Value; N]) -> Value {
    let outer = Outer {
        from: paying.from,
        to: ROUTER,
        value: paying.amount,
        input: format!("12345678{}", digits(paying.orders[0])),
    };
    body(&outer, &logs)
}

fn at<'a>(ledger: &'a Ledger, text: &str) -> Option<&'a Block> {
    match text {
        "latest" => Some(ledger.tip()),
        "safe" | "finalized" => Some(ledger.finalized()),
        hex => ledger.at(u64::from_str_radix(hex.strip_prefix("0x")?, 16).ok()?),
    }
}

fn header(block: &Block) -> Value {
    json!({
        "number": format!("{:#x}", block.number), "hash": block.hash, "parentHash": block.parent,
        "timestamp": format!("{:#x}", block.time),
    })
}

/// The id that a node shows of a transaction: liars show another.
fn shown(tx: &Tx) -> Value {
    tx.body.get("id").cloned().unwrap_or_else(|| json!(tx.id))
}

fn receipt(ledger: &Ledger, id: &str) -> Value {
    let Some((block, at, tx)) = ledger.find(id) else {
        return Value::Null;
    };
    let mut logs = tx.body["logs"].as_array().cloned().unwrap_or_default();
    for (index, log) in logs.iter_mut().enumerate() {
        let index = json!(format!("{:#x}", at * 1_000 + index));
        let fields = log.as_object_mut().unwrap();
        fields.entry("logIndex").or_insert(index);
        fields.insert("blockHash".into(), json!(block.hash));
        fields.insert("transactionHash".into(), shown(tx));
        fields.insert("removed".into(), json!(false));
    }
    json!({
        "transactionHash": shown(tx), "blockHash": block.hash, "status": tx.body["status"],
        "blockNumber": format!("{:#x}", block.number), "logs": logs,
    })
}

fn transaction(ledger: &Ledger, id: &str) -> Value {
    let found = ledger.find(id);
    let block = found.map(|(block, ..)| block);
    let Some(tx) = found.map(|(.., tx)| tx).or_else(|| ledger.pending(id)) else {
        return Value::Null;
    };
    let body = &tx.body;
    json!({
        "hash": shown(tx), "blockHash": block.map(|block| block.hash),
        "blockNumber": block.map(|block| format!("{:#x}", block.number)),
        "from": body["from"], "to": body["to"], "value": body["value"], "input": body["input"],
    })
}

#[test]
fn addresses_are_of_20_bytes() {
    for text in [
        USER, STRANGER, RECIPIENT, DEPOSITORY, SECOND, TOKEN, WORTHLESS, ROUTER, OTHER,
    ] {
        assert!(text.parse::<EvmAddress>().is_ok(), "{text}");
    }
}
