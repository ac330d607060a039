//! Transactions of `solana-vm`: instructions, and what accounts held before and after.

use std::sync::LazyLock;

use alloy::primitives::{Address, B256, keccak256};
use serde_json::{Value, json};
use vm::{
    Block, ChainSpec, Transaction,
    solana::{
        decode::{self, Rules},
        executed::Executed,
        programs::associated,
        raw::RawTransaction,
    },
};

use self::build::{Builder, Instruction, instruction};
use super::ledger::{Encoding, Habits, Target, Tx};
use crate::market::{JUNK, NATIVE, USDC};

#[allow(dead_code, reason = "the conformance matrix uses more of it")]
#[path = "../../conformance/solana/build.rs"]
mod build;

pub const HABITS: Habits = Habits {
    name: "solana",
    family: "solana-vm",
    number: 31_004,
    pace: 1,
    depth: 0,
    lag: 8,
    skips: 7,
    waits: 0,
    depository: PROGRAM,
    // Nodes are asked for what is finalized.
    confirmations: 0,
    currencies: &[NATIVE, USDC, JUNK],
};

const SYSTEM: &str = "11111111111111111111111111111111";
const TOKENS: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const TOKENS_2022: &str = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";
const MEMO: &str = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
/// The depository's program, and what has its money.
const PROGRAM: &str = "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2";
const VAULT: &str = "7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ";
/// A token, and one of Token-2022 that takes a part of each transfer.
const MINT: &str = "Gj7Fu2s76Z7EJQLUHRUXKKJcso4e2wemZBPgE7Df5Vq6";
const TAXED: &str = "3uWi9x2SRpmjztkpkr2WWeBoVq3exjXG2YfDWLvm8KsQ";
/// An account of the depository's, and a program of nobody's.
const RELAY: &str = "3VzwJ9ENt2zPAMFn944zmPZE2snSvMQLg6fHA4fAeKwA";
const OTHER: &str = "3ZvESShPULHcJSWHaMPv4GKzH2zebR6AEWKwDShmPfFs";
/// The depository's instructions (guide: protocol 4.1).
const DEPOSIT_NATIVE: [u8; 8] = [0x0d, 0x9e, 0x0d, 0xdf, 0x5f, 0xd5, 0x1c, 0x06];
const DEPOSIT_TOKEN: [u8; 8] = [0x0b, 0x9c, 0x60, 0xda, 0x27, 0xa3, 0xb4, 0x13];

/// The vault's accounts for both tokens.
static VAULTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    [(MINT, TOKENS), (TAXED, TOKENS_2022)].map(|(mint, program)| {
        let [vault, mint, program] = [VAULT, mint, program].map(|text| text.parse().unwrap());
        associated(&vault, &mint, &program).unwrap().to_string()
    })
});

pub struct Encoder {
    rules: Rules,
}

impl Encoder {
    pub fn new(spec: &ChainSpec) -> Self {
        Self {
            rules: Rules::new(spec).unwrap(),
        }
    }
}

fn base58(bytes: impl AsRef<[u8]>) -> String {
    bs58::encode(bytes).into_string()
}

fn account(of: Address) -> String {
    base58(keccak256(of))
}

/// The token account of `owner` for a token.
fn wallet(owner: &str, mint: &str) -> String {
    base58(keccak256(format!("{mint} of {owner}")))
}

/// A token, its program, and the vault's account for it; `None` for the native currency.
fn token(currency: Address) -> Option<(&'static str, &'static str, &'static str)> {
    let [plain, taxed] = &*VAULTS;
    match currency {
        USDC => Some((MINT, TOKENS, plain.as_str())),
        JUNK => Some((TAXED, TOKENS_2022, taxed.as_str())),
        _ => None,
    }
}

/// A deposit's instruction to a program.
fn deposit(program: &str, tx: &Tx, amount: u64) -> Instruction {
    let from = account(tx.from);
    let arguments = [&amount.to_le_bytes()[..], tx.what.order.as_slice()].concat();
    let Some((mint, tokens, vault)) = token(tx.what.currency) else {
        let accounts = [RELAY, &from, &from, VAULT, SYSTEM];
        return instruction(
            program,
            &accounts,
            [&DEPOSIT_NATIVE[..], &arguments].concat(),
        );
    };
    let source = wallet(&from, mint);
    let accounts = [
        RELAY, &from, &from, VAULT, mint, &source, vault, tokens, OTHER, SYSTEM,
    ];
    instruction(
        program,
        &accounts,
        [&DEPOSIT_TOKEN[..], &arguments].concat(),
    )
}

fn deposits(tx: &Tx, amount: u64) -> Builder {
    let arrives = u64::try_from(tx.what.arrives()).unwrap();
    let by = Builder::by(&[&account(tx.from)]).with(deposit(PROGRAM, tx, amount));
    match token(tx.what.currency) {
        None => by.gains(VAULT, arrives),
        Some((mint, _, vault)) => by.gains_tokens((vault, VAULT), mint, arrives),
    }
}

fn pays(tx: &Tx, to: &str, amount: u64) -> Builder {
    let from = account(tx.from);
    let by = Builder::by(&[&from]);
    let Some((mint, program, _)) = token(tx.what.currency) else {
        let data = [&2_u32.to_le_bytes()[..], &amount.to_le_bytes()].concat();
        let by = by.with(instruction(SYSTEM, &[&from, to], data));
        return if from == to { by } else { by.gains(to, amount) };
    };
    let (source, target) = (wallet(&from, mint), wallet(to, mint));
    let data = [&[12][..], &amount.to_le_bytes(), &[6]].concat();
    let by = by.with(instruction(program, &[&source, mint, &target, &from], data));
    let arrives = u64::try_from(tx.what.arrives()).unwrap();
    by.gains_tokens((&target, to), mint, arrives)
}

fn shown(tx: &Tx, block: &Block) -> Value {
    let amount = u64::try_from(tx.what.amount).unwrap();
    let fails = tx.coin.is_multiple_of(2);
    let built = match tx.what.to {
        Target::Depository => deposits(tx, amount),
        Target::LookAlike if fails => {
            let by = Builder::by(&[&account(tx.from)]);
            by.with(deposit(PROGRAM, tx, amount))
        }
        Target::LookAlike => {
            let by = Builder::by(&[&account(tx.from)]);
            by.with(deposit(OTHER, tx, amount)).gains(OTHER, amount)
        }
        Target::Account(to) => {
            let paid = pays(tx, &account(to), amount);
            paid.memo(&tx.what.order.to_string())
        }
    };
    let mut shown = built.body(tx.what.order);
    if fails && tx.what.to == Target::LookAlike {
        shown["meta"]["err"] = json!({ "InstructionError": [0, { "Custom": 1 }] });
    }
    shown["transaction"]["signatures"] = json!([&*tx.id]);
    shown["slot"] = json!(block.number);
    // Some nodes know the time of a block only beside it.
    let time = (!block.number.is_multiple_of(5)).then_some(block.time);
    shown["blockTime"] = json!(time);
    shown
}

impl Encoding for Encoder {
    fn account(&self, of: Address) -> String {
        account(of)
    }

    fn currency(&self, of: Address) -> String {
        token(of).map_or(SYSTEM, |(mint, ..)| mint).to_owned()
    }

    fn id(&self, hash: B256) -> String {
        base58([hash, keccak256(hash)].concat())
    }

    fn decode(&self, tx: &Tx, block: &Block) -> Transaction {
        let text = shown(tx, block).to_string();
        let raw: RawTransaction = serde_json::from_str(&text).unwrap();
        let id = bs58::decode(&*tx.id).into_vec().unwrap();
        let executed = Executed::join(&id, raw).unwrap();
        let block = Block {
            time: executed.time.unwrap_or(block.time),
            ..block.clone()
        };
        decode::decode(&self.rules, &executed, block, None)
    }
}
