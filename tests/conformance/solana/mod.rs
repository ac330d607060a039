//! The column of `solana-vm`.

mod build;
mod deposits;
mod owners;
mod withdrawals;

use alloy::primitives::{B256, keccak256};
use serde_json::{Value, json};
use vm::Family;

use self::build::{Builder, Instruction, instruction};
use crate::{
    family::{
        AMOUNT, Accounts, Answer, Case, DepositKind, ExecutionKind, Expected, Offered, Owner,
        OwnerForm, Paying, PaymentKind, Script, Twist, Withdrawing,
    },
    ledger::{self, Block, Ledger, Tx},
};

const SYSTEM: &str = "11111111111111111111111111111111";
const TOKENS: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const TOKENS_2022: &str = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";
const MEMO: &str = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
const BUDGET: &str = "ComputeBudget111111111111111111111111111111";

/// The depository's program, what has its money, and one of before.
const PROGRAM: &str = "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2";
const VAULT: &str = "7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ";
const SECOND: &str = "3yS1JFVT284y8z1LC9MRoWxZjzFrdoD5axKsZiyMsfC7";
/// A token, and the vault's accounts for it under each token program.
const MINT: &str = "Gj7Fu2s76Z7EJQLUHRUXKKJcso4e2wemZBPgE7Df5Vq6";
const VAULT_TOKENS: &str = "ENAR3qjrSuj1k1355ZEhPFTA3S7D34oVtoWApBcqYBsj";
const VAULT_TOKENS_2022: &str = "CEHcvajrYdzix6Ym8WHP8X9SuXgs6eR45wRRMtC3qQJS";
/// The native currency as a token.
const WRAPPED: &str = "So11111111111111111111111111111111111111112";
/// A token of somebody's own.
const WORTHLESS: &str = "3uWi9x2SRpmjztkpkr2WWeBoVq3exjXG2YfDWLvm8KsQ";

const USER: &str = "3EKkiwNLWqoUbzFkPrmKbtUB4EweE6f4STzevYUmezeL";
const SOLVER: &str = "3JF3sEqM796hk5WFqA6EtmEwJQ9quALszsfJyvXNQKy3";
const RECIPIENT: &str = "3NAM1YJMhSPvtAkmGTRABe1hYZN3aE2hZHKy3JZy9fHk";
const STRANGER: &str = "3S5e9qmNHjhA2G1Ghkk5UWnTniaFFHiX7gzd6gcZtzcT";
/// An account of the depository's, and a program of nobody's.
const RELAY: &str = "3VzwJ9ENt2zPAMFn944zmPZE2snSvMQLg6fHA4fAeKwA";
const OTHER: &str = "3ZvESShPULHcJSWHaMPv4GKzH2zebR6AEWKwDShmPfFs";

/// The depository's instructions (guide: protocol 4.1).
const DEPOSIT_NATIVE: [u8; 8] = [0x0d, 0x9e, 0x0d, 0xdf, 0x5f, 0xd5, 0x1c, 0x06];
const DEPOSIT_TOKEN: [u8; 8] = [0x0b, 0x9c, 0x60, 0xda, 0x27, 0xa3, 0xb4, 0x13];
const EXECUTE_TRANSFER: [u8; 8] = [0xe9, 0x7e, 0xa0, 0xb8, 0xeb, 0xce, 0x1f, 0x77];

/// Why a node has nothing to show at a slot.
const NOT_YET: (i64, &str) = (-32004, "Block not available for slot");
const NOT_REACHED: (i64, &str) = (-32016, "Minimum context slot has not been reached");
const SKIPPED: (i64, &str) = (-32007, "Slot was skipped, or missing due to ledger jump");

pub struct Solana;

fn base58(bytes: impl AsRef<[u8]>) -> String {
    bs58::encode(bytes).into_string()
}

/// The token account of `owner` for a token.
fn wallet(owner: &str, mint: &str) -> String {
    base58(keccak256(format!("{mint} of {owner}")))
}

/// What a deposit's instruction says.
#[derive(Clone, Copy)]
struct Said<'a> {
    program: &'a str,
    depositor: &'a str,
    vault: &'a str,
    amount: u64,
    order: B256,
}

/// A deposit of the user's into the vault.
fn said(amount: u64, order: B256) -> Said<'static> {
    Said {
        program: PROGRAM,
        depositor: USER,
        vault: VAULT,
        amount,
        order,
    }
}

impl Said<'_> {
    fn native(self) -> Instruction {
        let accounts = [RELAY, self.depositor, self.depositor, self.vault, SYSTEM];
        let amount = self.amount.to_le_bytes();
        let data = [&DEPOSIT_NATIVE[..], &amount, self.order.as_slice()].concat();
        instruction(self.program, &accounts, data)
    }

    /// Of a token, into the vault's account for it.
    fn token(self, mint: &str, (account, tokens): (&str, &str)) -> Instruction {
        let from = wallet(self.depositor, mint);
        let accounts = [
            RELAY,
            self.depositor,
            self.depositor,
            self.vault,
            mint,
            &from,
            account,
            tokens,
            OTHER,
            SYSTEM,
        ];
        let amount = self.amount.to_le_bytes();
        let data = [&DEPOSIT_TOKEN[..], &amount, self.order.as_slice()].concat();
        instruction(self.program, &accounts, data)
    }
}

/// A transfer of lamports.
fn lamports(from: &str, to: &str, amount: u64) -> Instruction {
    let data = [&2_u32.to_le_bytes()[..], &amount.to_le_bytes()].concat();
    instruction(SYSTEM, &[from, to], data)
}

/// A transfer of tokens that names them.
fn tokens((from, to): (&str, &str), mint: &str, authority: &str, amount: u64) -> Instruction {
    let data = [&[12][..], &amount.to_le_bytes(), &[6]].concat();
    instruction(TOKENS, &[from, mint, to, authority], data)
}

fn plain(amount: u64, order: B256) -> Builder {
    let it = Builder::by(&[USER]).with(said(amount, order).native());
    it.gains(VAULT, amount)
}

impl Script for Solana {
    fn column(&self) -> &'static str {
        "solana"
    }

    fn family(&self) -> &'static Family {
        vm::family("solana-vm").unwrap()
    }

    fn entry(&self, id: &str, identity: u8) -> Value {
        let genesis = base58(ledger::genesis(identity));
        json!({
            "id": id, "vmType": "solana-vm", "hubChainId": (9_000 + u32::from(identity)).to_string(),
            "depository": PROGRAM, "additionalDepositories": [SECOND],
            // On top of what the chain calls final.
            "additionalData": {"finalizationBlocks": self.depth(), "genesisHash": genesis},
        })
    }

    fn pace(&self) -> u64 {
        1
    }

    fn depth(&self) -> u64 {
        3
    }

    fn tag(&self, entry: &mut Value) -> Offered<()> {
        entry["additionalData"]["finalizationBlocks"] = json!(0);
        Ok(())
    }

    fn skips(&self) -> Offered<()> {
        Ok(())
    }

    fn accounts(&self) -> Accounts {
        Accounts {
            user: USER,
            solver: SOLVER.into(),
            recipient: RECIPIENT,
            stranger: STRANGER,
        }
    }

    fn currencies(&self) -> Vec<&'static str> {
        vec![SYSTEM, MINT]
    }

    fn extra_data(&self) -> String {
        "0x".into()
    }

    fn other_extra_data(&self) -> Offered<String> {
        Err("no program's word counts")
    }

    fn id(&self, name: &str) -> String {
        let halves = ["first", "second"].map(|half| keccak256(format!("{half} half of {name}")));
        base58(halves.concat())
    }

    fn answer(&self, ledger: &Ledger, method: &str, params: &Value) -> Answer {
        let slot = params[0].as_u64().unwrap_or(u64::MAX);
        let is_early = is_early(params);
        let last = match is_early {
            true => ledger.tip().number,
            false => ledger.finalized().number,
        };
        Ok(match method {
            "getGenesisHash" => json!(base58(ledger::genesis(ledger.identity))),
            "getSlot" => json!(last),
            "getBlock" if slot > last => return Err(NOT_YET),
            "getBlock" => block(ledger, ledger.at(slot).ok_or(SKIPPED)?),
            "getBlocks" => {
                let to = params[1].as_u64().unwrap_or(u64::MAX).min(last);
                ledger
                    .numbers()
                    .filter(|number| (slot..=to).contains(number))
                    .collect()
            }
            "getBlockTime" => time(ledger.at(slot).ok_or(SKIPPED)?),
            "getTransaction" => {
                let id = params[0].as_str().unwrap_or_default();
                let found = ledger.find(id).map(|(block, _, tx)| (block, tx));
                let found = found.filter(|(block, _)| block.number <= last);
                // What is on no fork that lives was in the newest block of one.
                let waiting = || Some((ledger.tip(), ledger.pending(id).filter(|_| is_early)?));
                let found = found.or_else(waiting);
                found
                    .map(|(block, tx)| transaction(block, tx))
                    .unwrap_or_default()
            }
            "getAccountInfo" if params[1]["minContextSlot"].as_u64() > Some(last) => {
                return Err(NOT_REACHED);
            }
            "getAccountInfo" => {
                let account = withdrawals::account(ledger, last, &params[0]);
                json!({"context": {"slot": last}, "value": account})
            }
            _ => return Err((-32601, "Method not found")),
        })
    }

    fn indexed(&self, _: &mut Value, _: &str) -> Offered<()> {
        Err("the chain has no index that is a provider")
    }

    fn once(&self) -> &'static [&'static str] {
        &["blockhash"]
    }

    fn twist(&self, twist: Twist, tx: &Tx) -> Offered<Tx> {
        let order: B256 = tx.body["order"].as_str().unwrap().parse().unwrap();
        let good = plain(AMOUNT, order);
        let mut body = tx.body.clone();
        let first = &mut body["transaction"]["message"]["instructions"][0];
        match twist {
            Twist::Amount => body = plain(AMOUNT + 1, order).body(order),
            Twist::Order => body = plain(AMOUNT, !order).body(order),
            Twist::Added => {
                let more = said(AMOUNT, order).native();
                let mut twice = good.with(more).body(order);
                for balance in twice["meta"]["postBalances"].as_array_mut().unwrap() {
                    if *balance == json!(AMOUNT) {
                        *balance = json!(2 * AMOUNT);
                    }
                }
                body = twice;
            }
            Twist::Dropped => {
                let dropped = Builder::by(&[USER]).with(lamports(USER, STRANGER, AMOUNT));
                body = dropped.gains(STRANGER, AMOUNT).body(order);
            }
            Twist::Status => {
                body["meta"]["err"] = json!({"InstructionError": [0, {"Custom": 1}]});
            }
            Twist::Other => body["id"] = json!(self.id("another transaction")),
            // The digits 0 and O are none.
            Twist::OddHex => first["data"] = json!("0O"),
            Twist::Indexes => {
                let inner = |index: u8| json!({"index": index, "instructions": []});
                body["meta"]["innerInstructions"] = json!([inner(0), inner(0)]);
            }
        }
        Ok(Tx {
            id: tx.id.clone(),
            body,
        })
    }

    fn deposits(&self, kind: DepositKind, orders: [B256; 2]) -> Offered<Vec<Case>> {
        Ok(match kind {
            DepositKind::Plain
            | DepositKind::Token
            | DepositKind::LongText
            | DepositKind::Units
            | DepositKind::Edges
            | DepositKind::Several
            | DepositKind::InnerCall
            | DepositKind::Crowded
            | DepositKind::ClosedPayer
            | DepositKind::Tables => deposits::sound(kind, orders),
            DepositKind::Beside => deposits::beside(orders[0]),
            DepositKind::NoId | DepositKind::ElsewhereNamed => deposits::unnamed(kind, orders[0]),
            DepositKind::TwoDepositories
            | DepositKind::FeeOnTransfer
            | DepositKind::Worthless
            | DepositKind::Calling
            | DepositKind::NoTime => deposits::partial(kind, orders),
            DepositKind::LookAlike
            | DepositKind::EventAlone
            | DepositKind::OwnVault
            | DepositKind::Failed
            | DepositKind::Nothing
            | DepositKind::FromDepository
            | DepositKind::Hidden
            | DepositKind::ClosedVault
            | DepositKind::OddShape
            | DepositKind::TwoIds
            | DepositKind::TwoDepositors => deposits::unsound(kind, orders),
            DepositKind::Unrelayed => return Err("nodes pass on any amount"),
            DepositKind::NotAnId => return Err("an id is 32 bytes of any value"),
            DepositKind::SelfCall => return Err("what the vault gained decides, whoever called"),
            DepositKind::TooMany => return Err("a transaction has room for 64 instructions"),
            DepositKind::Coinbase => return Err("what a block makes is in no transaction"),
            DepositKind::Payers => {
                return Err("an account is a key or a program's, and both are 32 bytes");
            }
        })
    }

    fn named_by_other(&self, _: B256) -> Offered<Value> {
        Err("who deposits signs the id")
    }

    fn payment(&self, kind: PaymentKind, paying: &Paying<'_>) -> Offered<Value> {
        let [id, other] = paying.orders.map(|id| id.to_string());
        let order = paying.orders[0];
        let paid = || moved(paying, &[paying.amount]);
        let built = match kind {
            PaymentKind::Good => paid().memo(&id),
            PaymentKind::NamesOther => paid().memo(&other),
            PaymentKind::NamesNone => paid(),
            PaymentKind::NamesLoosely => paid().memo(&format!("{id}0")),
            PaymentKind::NamesBoth => paid().memo(&format!("{id} {other}")),
            PaymentKind::Split => {
                let half = paying.amount / 2;
                moved(paying, &[half, paying.amount - half]).memo(&id)
            }
            PaymentKind::NamedByAnother => {
                let mut paid = paid();
                paid.signers.push(STRANGER.into());
                paid.with(instruction(MEMO, &[STRANGER], id.into_bytes()))
            }
            PaymentKind::OfAnother => {
                let mut paid = paid();
                paid.signed = vec![instruction(OTHER, &[STRANGER, paying.to], vec![1])];
                paid.memo(&id)
            }
            PaymentKind::OutOfDepository => {
                let mut paid = paid();
                paid.signed = vec![instruction(
                    PROGRAM,
                    &[VAULT, paying.to],
                    EXECUTE_TRANSFER.into(),
                )];
                paid.memo(&id)
            }
            PaymentKind::OtherCurrency => {
                let token = Paying {
                    currency: MINT,
                    ..paying.clone()
                };
                moved(&token, &[paying.amount]).memo(&id)
            }
            PaymentKind::Failed => {
                let mut body = paid().memo(&id).body(order);
                body["meta"]["err"] = json!("AccountInUse");
                return Ok(body);
            }
            PaymentKind::TwoWays => return Err("what an account gained counts, however it came"),
            PaymentKind::OtherRouter => return Err("no program's word counts"),
        };
        Ok(built.body(order))
    }

    fn calls(&self) -> Offered<[String; 2]> {
        Err("orders have no calls")
    }

    fn called(&self, _: &Paying<'_>, _: &[usize]) -> Offered<Value> {
        Err("orders have no calls")
    }

    /// Signed anew, since the one before has expired.
    fn rival(&self, tx: &Tx) -> Offered<Tx> {
        Ok(Tx {
            id: self.id("signed anew"),
            ..tx.clone()
        })
    }

    fn child(&self, _: &Tx, _: Option<B256>) -> Offered<(Tx, Expected)> {
        Err("a transaction spends no output of another")
    }

    fn withdrawal(&self, asked: &Withdrawing<'_>) -> Vec<u8> {
        withdrawals::encoded(asked, VAULT)
    }

    fn unsound_withdrawals(&self, _: &Withdrawing<'_>) -> Offered<Vec<(&'static str, Vec<u8>)>> {
        Err("a request is one transfer, which is made or fails")
    }

    fn foreign_withdrawal(&self, asked: &Withdrawing<'_>) -> Offered<Vec<u8>> {
        Ok(withdrawals::encoded(asked, STRANGER))
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

/// Whether a call asks for less than what the chain calls final: its options are the one object among its parameters.
fn is_early(params: &Value) -> bool {
    let mut all = params.as_array().into_iter().flatten();
    let options = all.find(|one| one.is_object());
    let commitment = options.and_then(|options| options["commitment"].as_str());
    matches!(commitment, Some("processed" | "confirmed"))
}

/// A payment in parts, without a memo.
fn moved(paying: &Paying<'_>, parts: &[u64]) -> Builder {
    let (from, to, mint) = (paying.from, paying.to, paying.currency);
    let sum = parts.iter().sum();
    let mut it = Builder::by(&[from]);
    if mint == SYSTEM {
        for part in parts {
            it = it.with(lamports(from, to, *part));
        }
        return match from == to {
            true => it,
            false => it.gains(to, sum),
        };
    }
    let (source, target) = (wallet(from, mint), wallet(to, mint));
    for part in parts {
        it = it.with(tokens((&source, &target), mint, from, *part));
    }
    it.gains_tokens((&target, to), mint, sum)
}

/// What a node shows of a block.
fn block(ledger: &Ledger, block: &Block) -> Value {
    let parent = ledger.parent(block).map_or(0, |parent| parent.number);
    json!({
        "blockhash": base58(hash_of(ledger, block)), "previousBlockhash": base58(block.parent),
        "parentSlot": parent, "blockTime": own_time(block), "blockHeight": block.number,
    })
}

/// The hash of a block; the first one's says which chain it is.
fn hash_of(ledger: &Ledger, block: &Block) -> B256 {
    match block.number {
        0 => ledger::genesis(ledger.identity),
        _ => block.hash,
    }
}

/// Where the block's time is said not to be.
fn untimed(block: &Block) -> Option<&str> {
    block.txs.iter().find_map(|tx| tx.body["time"].as_str())
}

/// The time that a block itself has.
fn own_time(block: &Block) -> Value {
    match untimed(block) {
        Some(_) => Value::Null,
        None => json!(block.time),
    }
}

/// The time beside a block.
fn time(block: &Block) -> Value {
    match untimed(block) {
        Some("nowhere") => Value::Null,
        _ => json!(block.time),
    }
}

fn transaction(block: &Block, tx: &Tx) -> Value {
    let mut shown = tx.body.clone();
    let first = shown.get("id").cloned().unwrap_or_else(|| json!(tx.id));
    let signers = &shown["transaction"]["message"]["header"]["numRequiredSignatures"];
    let signers = usize::try_from(signers.as_u64().unwrap()).unwrap();
    shown["transaction"]["signatures"] = vec![first; signers].into();
    shown["slot"] = json!(block.number);
    shown["blockTime"] = own_time(block);
    shown
}
