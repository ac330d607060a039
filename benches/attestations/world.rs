//! Two chains with a transaction for each request, and the requests: all made before anything is
//! measured, and the same in every run.

use std::{
    collections::HashMap,
    time::{SystemTime, UNIX_EPOCH},
};

use alloy::primitives::{Address, B256, U256, hex, keccak256};
use anyhow::Result;
use bytes::Bytes;
use devnet::account::Account;
use serde_json::{Value, json};
use vm::protocol::{
    id::deterministic,
    order::{Fee, Input, InputPayment, Order, Output, OutputPayment, Refund, VERSION},
};

/// What a node is asked to see how long a round trip takes.
pub const PROBE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",false]}"#;

/// Where users deposit.
const ORIGIN: &str = "origin";
/// Where solvers pay.
const DESTINATION: &str = "destination";
/// Blocks above a transaction that make it final.
const FINALITY: u64 = 8;
/// The depository on both chains.
const DEPOSITORY: Address = Address::repeat_byte(0xd0);

const TIP: u64 = 1_000_000;
/// Deposits that one claim may name.
pub const WIDEST: usize = 64;
/// The newest final transactions lie in this many blocks.
const RECENT: u64 = 16;
/// Where the blocks of one old transaction each begin.
const OLD: u64 = 100_000;
const SPACING: u64 = 12;
const TOKEN: Address = Address::repeat_byte(0x70);
const USER: Address = Address::repeat_byte(0x05);
const AMOUNT: u64 = 1_000_000_000_000_000;

/// The chains and the bodies of the requests.
pub struct World {
    pub origin: Chain,
    pub destination: Chain,
    /// Bodies about deposits in the newest final blocks.
    pub deposits: Vec<Bytes>,
    /// Bodies about deposits that each lie in an old block of their own.
    pub old_deposits: Vec<Bytes>,
    /// Bodies about fills of orders, paid for by [`World::deposits`].
    pub fills: Vec<Bytes>,
    /// A body about a deposit beside many transfers of a token.
    pub huge: Bytes,
    /// A body about a fill beside as many, for as many deposits as one claim may name, which share
    /// as many again.
    pub widest: Bytes,
    /// How many transfers.
    pub events: u32,
}

/// One chain as its node tells it. Answers are JSON texts.
pub struct Chain {
    name: &'static str,
    pub id: u64,
    tip_time: u64,
    mined: HashMap<B256, Mined>,
}

/// The answers about one transaction.
pub struct Mined {
    pub receipt: String,
    pub transaction: String,
}

/// A transaction with one log.
struct Draft {
    block: u64,
    from: Address,
    to: Address,
    value: u64,
    input: Vec<u8>,
    topics: Vec<B256>,
    data: Vec<u8>,
}

/// The chains' entries in the chains file, the origin first.
pub fn chains() -> Value {
    let chain = |id: &str, number: &str| {
        json!({
            "id": id,
            "vmType": "ethereum-vm",
            "httpRpcUrl": format!("${}_RPC_URL", id.to_uppercase()),
            "hubChainId": number,
            "depository": DEPOSITORY,
            "additionalData": { "finalizationBlocks": FINALITY, "finalizationTime": 0 },
        })
    };
    json!([chain(ORIGIN, "900001"), chain(DESTINATION, "900002")])
}

impl World {
    /// `count` deposits, old deposits and fills.
    pub fn new(count: u32) -> Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "the chains' tips are of now")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let solver = Account::named("benchmark solver")?;
        let mut world = Self {
            origin: Chain::new(ORIGIN, 900_001, now),
            destination: Chain::new(DESTINATION, 900_002, now),
            deposits: Vec::new(),
            old_deposits: Vec::new(),
            fills: Vec::new(),
            huge: Bytes::new(),
            widest: Bytes::new(),
            events: 0,
        };
        for number in 0..count {
            let recent = TIP - FINALITY - 1 - u64::from(number) % RECENT;
            let order = order(number, now, &solver, 1);
            let id = order.id(|_| Some(vm::SETTLEMENT))?;
            let deposit = world.origin.mine(deposit(recent, id));
            let fill = world.destination.mine(fill(recent, id, &solver));
            let old = deposit_of_nobody(number);
            let old = world.origin.mine(old);
            world.deposits.push(ask(deposit));
            world.old_deposits.push(ask(old));
            let claim = claim(&order, &solver, &[deposit], fill)?;
            world.fills.push(claim);
        }
        Ok(world)
    }

    /// With a deposit beside so many transfers, and the claim that names the most beside as many.
    pub fn with_huge(mut self, events: u32) -> Result<Self> {
        let block = TIP - FINALITY - 2;
        let huge = deposit(block, keccak256("huge"));
        let huge = self.origin.mine_beside(huge, events);
        let solver = Account::named("benchmark solver")?;
        let order = order(u32::MAX, self.origin.tip_time, &solver, WIDEST);
        let id = order.id(|_| Some(vm::SETTLEMENT))?;
        let each = events / u32::try_from(WIDEST)?;
        let deposits = (0..WIDEST).map(|_| self.origin.mine_beside(deposit(block, id), each));
        let deposits = deposits.collect::<Vec<_>>();
        let fill = fill(block, id, &solver);
        let fill = self.destination.mine_beside(fill, events);
        self.widest = claim(&order, &solver, &deposits, fill)?;
        (self.huge, self.events) = (ask(huge), events);
        Ok(self)
    }

    pub fn chain(&self, name: &str) -> Option<&Chain> {
        [&self.origin, &self.destination]
            .into_iter()
            .find(|chain| chain.name == name)
    }
}

impl Chain {
    fn new(name: &'static str, id: u64, tip_time: u64) -> Self {
        Self {
            name,
            id,
            tip_time,
            mined: HashMap::new(),
        }
    }

    pub fn mined(&self, hash: &B256) -> Option<&Mined> {
        self.mined.get(hash)
    }

    /// The header at `number`, or at the tip.
    pub fn header(&self, number: Option<u64>) -> String {
        let number = number.unwrap_or(TIP);
        let (hash, parent) = (self.block(number), self.block(number - 1));
        let time = self.tip_time.saturating_sub((TIP - number) * SPACING);
        let zeros = "0".repeat(512);
        format!(
            r#"{{"number":"{number:#x}","hash":"{hash}","parentHash":"{parent}","timestamp":"{time:#x}","logsBloom":"0x{zeros}","gasLimit":"0x1c9c380","gasUsed":"0x5208","miner":"{USER:#x}","stateRoot":"{hash}","receiptsRoot":"{hash}","transactionsRoot":"{hash}","extraData":"0x","size":"0x3e8","transactions":[]}}"#
        )
    }

    fn block(&self, number: u64) -> B256 {
        keccak256(format!("{} {number}", self.name))
    }

    fn mine(&mut self, draft: Draft) -> B256 {
        self.mine_beside(draft, 0)
    }

    /// A transaction that transfers a token `transfers` times besides.
    fn mine_beside(&mut self, draft: Draft, transfers: u32) -> B256 {
        let seed = format!("{} transaction {}", self.name, self.mined.len());
        let (hash, block) = (keccak256(seed), self.block(draft.block));
        let (from, to) = (draft.from, draft.to);
        let place = format!(
            r#""transactionHash":"{hash}","transactionIndex":"0x0","blockHash":"{block}","blockNumber":"{:#x}""#,
            draft.block
        );
        let log = |index: u32, (at, topics, data): (Address, &[B256], &[u8])| {
            let topics: Vec<_> = topics.iter().map(|t| format!(r#""{t}""#)).collect();
            let (topics, data) = (topics.join(","), hex::encode_prefixed(data));
            format!(
                r#"{{"address":"{at:#x}","topics":[{topics}],"data":"{data}",{place},"logIndex":"{index:#x}","removed":false}}"#
            )
        };
        let user = USER.into_word();
        let moved = [keccak256("Transfer(address,address,uint256)"), user, user];
        let one = U256::ONE.to_be_bytes::<32>();
        let others = (1..=transfers).map(|index| {
            let mut moved = moved;
            moved[2] = B256::from(U256::from(index));
            log(index, (TOKEN, &moved, &one))
        });
        let first = log(0, (draft.to, &draft.topics, &draft.data));
        let log = std::iter::once(first).chain(others);
        let log = log.collect::<Vec<_>>().join(",");
        let zeros = "0".repeat(512);
        let receipt = format!(
            r#"{{{place},"from":"{from:#x}","to":"{to:#x}","status":"0x1","type":"0x2","contractAddress":null,"cumulativeGasUsed":"0x5208","gasUsed":"0x5208","effectiveGasPrice":"0x3b9aca00","logs":[{log}],"logsBloom":"0x{zeros}"}}"#
        );
        let transaction = format!(
            r#"{{"hash":"{hash}","blockHash":"{block}","blockNumber":"{:#x}","transactionIndex":"0x0","type":"0x2","nonce":"0x1","from":"{from:#x}","to":"{to:#x}","value":"{:#x}","input":"{}","gas":"0x5208","gasPrice":"0x3b9aca00","chainId":"{:#x}","accessList":[],"r":"{hash}","s":"{hash}","v":"0x0"}}"#,
            draft.block,
            draft.value,
            hex::encode_prefixed(&draft.input),
            self.id,
        );
        self.mined.insert(
            hash,
            Mined {
                receipt,
                transaction,
            },
        );
        hash
    }
}

/// A native deposit for an order.
fn deposit(block: u64, order: B256) -> Draft {
    let user = USER.into_word();
    let data = [
        user.as_slice(),
        &U256::from(AMOUNT).to_be_bytes::<32>(),
        order.as_slice(),
    ];
    Draft {
        block,
        from: USER,
        to: DEPOSITORY,
        value: AMOUNT,
        input: [&[0x12, 0x34, 0x56, 0x78], user.as_slice(), order.as_slice()].concat(),
        topics: vec![keccak256("RelayNativeDeposit(address,uint256,bytes32)")],
        data: data.concat(),
    }
}

fn deposit_of_nobody(number: u32) -> Draft {
    deposit(OLD + u64::from(number), keccak256(number.to_string()))
}

/// A token transfer by the solver whose calldata ends in the order's id.
fn fill(block: u64, order: B256, solver: &Account) -> Draft {
    let amount = U256::from(AMOUNT).to_be_bytes::<32>();
    let selector = &keccak256("transfer(address,uint256)")[..4];
    let recipient = USER.into_word();
    Draft {
        block,
        from: solver.address(),
        to: TOKEN,
        value: 0,
        input: [selector, recipient.as_slice(), &amount, order.as_slice()].concat(),
        topics: vec![
            keccak256("Transfer(address,address,uint256)"),
            solver.address().into_word(),
            recipient,
        ],
        data: amount.to_vec(),
    }
}

/// A fill of `order`, and the deposits that paid for its inputs, one each.
fn claim(order: &Order, solver: &Account, deposits: &[B256], fill: B256) -> Result<Bytes> {
    let id = order.id(|_| Some(vm::SETTLEMENT))?;
    let input = |(index, deposit): (usize, &B256)| {
        let onchain_id = deterministic(&[ORIGIN, &deposit.to_string(), "0"]);
        json!({ "transactionId": deposit, "onchainId": onchain_id, "inputIndex": index })
    };
    let inputs = deposits.iter().enumerate().map(input);
    let body = json!({
        "order": order,
        "orderSignature": solver.sign_message(id.as_slice())?,
        "inputs": inputs.collect::<Vec<_>>(),
        "fill": { "transactionId": fill },
    });
    Ok(body.to_string().into())
}

fn order(salt: u32, now: u64, solver: &Account, inputs: usize) -> Order {
    let text = |address: Address| format!("{address:#x}");
    let deadline = u32::try_from(now + 3600).unwrap_or(u32::MAX);
    let extra_data = hex::encode_prefixed(Address::repeat_byte(0xf0).into_word());
    let input = Input {
        payment: InputPayment {
            chain_id: ORIGIN.to_owned(),
            currency: text(Address::ZERO),
            amount: AMOUNT.to_string(),
            weight: "1".to_owned(),
        },
        refunds: vec![Refund {
            chain_id: ORIGIN.to_owned(),
            recipient: text(USER),
            currency: text(Address::ZERO),
            minimum_amount: AMOUNT.to_string(),
            deadline,
            extra_data: extra_data.clone(),
        }],
    };
    Order {
        version: VERSION.to_owned(),
        solver_chain_id: DESTINATION.to_owned(),
        solver: text(solver.address()),
        salt: salt.to_string(),
        inputs: vec![input; inputs],
        output: Output {
            chain_id: DESTINATION.to_owned(),
            payments: vec![OutputPayment {
                recipient: text(USER),
                currency: text(TOKEN),
                minimum_amount: AMOUNT.to_string(),
                expected_amount: AMOUNT.to_string(),
            }],
            calls: Vec::new(),
            deadline,
            extra_data,
        },
        fees: vec![Fee {
            recipient_chain_id: ORIGIN.to_owned(),
            recipient: text(USER),
            currency_chain_id: ORIGIN.to_owned(),
            currency: text(Address::ZERO),
            amount: "1000".to_owned(),
        }],
    }
}

fn ask(transaction: B256) -> Bytes {
    json!({ "chainId": ORIGIN, "transactionId": transaction })
        .to_string()
        .into()
}
