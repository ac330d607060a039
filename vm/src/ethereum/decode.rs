//! Node answers about one transaction → [`Transaction`]. Pure: no I/O, no clock.
//!
//! [`Mined::join`] refuses answers that contradict each other; [`decode`] turns what is left into
//! chain-neutral facts. A failed transaction's logs are never looked at.

use std::{collections::HashSet, sync::Arc};

use super::{
    deposit::{self, Calldata},
    event::{self, Event},
    raw::{RawLog, RawReceipt, RawTransaction},
};
use crate::{
    ChainSpec, ReadError, SpecError,
    trade::Call,
    types::{
        Address, B256, Block, ChainId, EvmAddress, Execution, Failure, Payment, PaymentKind,
        Receipt, RouterCall, Transaction, U256,
    },
};

/// The payment index of value that the transaction itself moved; all others have a log's index.
pub const DIRECT: u32 = u32::MAX;

/// What the zkSync stack's base token emits for native transfers.
const ZKSYNC_BASE_TOKEN: EvmAddress = EvmAddress::new([
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x0a,
]);

/// An answer that contradicts itself or the question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Doubt(pub &'static str);

/// What a node answers that keeps transactions for longer than their receipts.
const NO_RECEIPT: Doubt = Doubt("a transaction in a block, without a receipt");
/// What receipts of before 2017 look like (EIP-658).
const NO_STATUS: Doubt = Doubt("a receipt without a status");

/// Honest nodes answer about old transactions in ways that nothing can be made of: that is no contradiction, or
/// strangers who ask about such had a node set aside.
impl From<Doubt> for ReadError {
    fn from(doubt: Doubt) -> Self {
        match [NO_RECEIPT, NO_STATUS].contains(&doubt) {
            true => Self::Unavailable(doubt.to_string()),
            false => Self::Doubtful(doubt.to_string()),
        }
    }
}

/// What of a chain's configuration decides how its transactions are read.
#[derive(Clone, Debug)]
pub struct Rules {
    pub chain: ChainId,
    pub depository: Option<EvmAddress>,
    /// The same, spelled.
    spelled: Option<Address>,
    /// The primary depository and the additional ones.
    depositories: Vec<EvmAddress>,
    /// A contract whose `Transfer` logs are the native currency's movements, not ERC-20 ones (the ZK Stack's).
    pub ignored: Option<EvmAddress>,
    /// Whether calldata may stand in `calls[0].input`.
    nested_input: bool,
    pub native: Address,
}

impl Rules {
    /// Refuses depositories that are not 20 bytes.
    pub fn new(spec: &ChainSpec) -> Result<Self, SpecError> {
        let evm = |address: &Address| {
            EvmAddress::try_from(address.bytes())
                .map_err(|_| SpecError(format!("depository: {address} is not 20 bytes")))
        };
        let zksync = spec.additional.get("isZksyncStack").is_some_and(|flag| {
            flag.as_bool().unwrap_or_default() || flag.as_str() == Some("true")
        });
        let depository = spec.depository.as_ref().map(evm).transpose()?;
        Ok(Self {
            chain: spec.id.clone(),
            depository,
            spelled: depository.as_ref().map(address),
            depositories: spec.depositories().map(evm).collect::<Result<_, _>>()?,
            ignored: zksync.then_some(ZKSYNC_BASE_TOKEN),
            nested_input: spec.id.as_str() == "tempo",
            native: address(&EvmAddress::ZERO),
        })
    }

    /// Deposits count only at the primary depository.
    pub fn is_depository(&self, emitter: &EvmAddress) -> bool {
        self.depository.as_ref() == Some(emitter)
    }

    /// Withdrawals count at additional depositories too.
    pub fn executes(&self, emitter: &EvmAddress) -> bool {
        self.depositories.contains(emitter)
    }

    /// Whose word about deposits and withdrawals is heard.
    pub fn depositories(&self) -> &[EvmAddress] {
        &self.depositories
    }

    /// The chain-neutral spelling: lower case.
    pub fn address(&self, evm: &EvmAddress) -> Address {
        let spelled = match evm.is_zero() {
            true => Some(&self.native),
            false => self.spelled.as_ref().filter(|_| self.is_depository(evm)),
        };
        spelled.cloned().unwrap_or_else(|| address(evm))
    }
}

fn address(evm: &EvmAddress) -> Address {
    Address::from_parts(&format!("{evm:#x}"), evm.0)
}

/// A log of interest and its index in the block.
pub struct Logged {
    pub index: u32,
    pub event: Event,
}

/// A receipt and its transaction that tell one story about one included transaction.
#[derive(Clone, Debug)]
pub struct Mined {
    pub number: u64,
    pub hash: B256,
    pub succeeded: bool,
    pub logs: Vec<RawLog>,
    pub transaction: RawTransaction,
}

impl Mined {
    /// `None` when both answers say that the transaction `asked` for is in no block.
    pub fn join(
        asked: &B256,
        receipt: Option<RawReceipt>,
        transaction: Option<RawTransaction>,
    ) -> Result<Option<Self>, Doubt> {
        let receipt =
            receipt.and_then(|receipt| Some((receipt.block_hash?, receipt.block_number?, receipt)));
        let Some((hash, number, receipt)) = receipt else {
            return match transaction {
                Some(transaction) if transaction.block_hash.is_some() => Err(NO_RECEIPT),
                _ => Ok(None),
            };
        };
        let transaction = transaction.ok_or(Doubt("a receipt without its transaction"))?;
        if receipt.transaction_hash != *asked || transaction.hash != *asked {
            return Err(Doubt("an answer about another transaction"));
        }
        if transaction.block_hash != Some(hash) || transaction.block_number != Some(number) {
            return Err(Doubt("receipt and transaction name different blocks"));
        }
        check_logs(&receipt, &hash)?;
        Ok(Some(Self {
            number: number.small().ok_or(Doubt("block number out of range"))?,
            hash,
            succeeded: match receipt.status.ok_or(NO_STATUS)?.small() {
                Some(1) => true,
                Some(0) => false,
                _ => return Err(Doubt("a status that is none")),
            },
            logs: receipt.logs,
            transaction,
        }))
    }
}

fn check_logs(receipt: &RawReceipt, block: &B256) -> Result<(), Doubt> {
    let mut last = None;
    for log in &receipt.logs {
        if log.removed || log.block_hash != *block {
            return Err(Doubt("a log of another block"));
        }
        if log.transaction_hash != receipt.transaction_hash {
            return Err(Doubt("a log of another transaction"));
        }
        let index = log_index(log).ok_or(Doubt("log index out of range"))?;
        if last.is_some_and(|last| last >= index) {
            return Err(Doubt("log indexes do not increase"));
        }
        last = Some(index);
    }
    Ok(())
}

/// [`DIRECT`] is not a log.
pub fn log_index(log: &RawLog) -> Option<u32> {
    u32::try_from(log.log_index.small()?)
        .ok()
        .filter(|index| *index != DIRECT)
}

/// The transaction's effects; `block` is the canonical header that the caller holds for it.
pub fn decode(rules: &Rules, mined: &Mined, block: &Block) -> Result<Transaction, Doubt> {
    if block.hash != mined.hash || block.number != mined.number {
        return Err(Doubt("the receipt's block is not the header's"));
    }
    let input = input(rules, &mined.transaction);
    if !mined.succeeded {
        return Ok(Transaction::Failed(Failure {
            block: block.clone(),
            references: references(input.unwrap_or_default()),
            outer_call: outer_call(rules, &mined.transaction),
        }));
    }
    let input = input?;
    let logs: Vec<Logged> = mined
        .logs
        .iter()
        .filter_map(|log| {
            Some(Logged {
                index: log_index(log)?,
                event: event::parse(rules, log)?,
            })
        })
        .collect();
    let calldata = Calldata {
        input,
        sender: Some(mined.transaction.from),
    };
    Ok(Transaction::Succeeded(Receipt {
        block: block.clone(),
        sender: Some(rules.address(&mined.transaction.from)),
        deposits: deposit::read(rules, &logs, calldata),
        payments: payments(rules, mined, input, &logs)?,
        calls: calls(rules, &logs),
        executions: executions(rules, &logs),
        references: references(input),
        outer_call: outer_call(rules, &mined.transaction),
    }))
}

/// `None` where it creates a contract, or makes several calls.
fn outer_call(rules: &Rules, transaction: &RawTransaction) -> Option<B256> {
    let call = Call {
        from: rules.address(&transaction.from),
        to: rules.address(&transaction.to?),
        data: transaction.input.clone()?,
        value: transaction.value?.0,
    };
    Some(call.digest())
}

pub fn input<'a>(rules: &Rules, transaction: &'a RawTransaction) -> Result<&'a [u8], Doubt> {
    let nested = || {
        let call = transaction.calls.as_ref()?.0.as_ref()?;
        call.input.as_ref().filter(|_| rules.nested_input)
    };
    transaction
        .input
        .as_ref()
        .or_else(nested)
        .map(|input| input.as_ref())
        .ok_or(Doubt("a transaction without input"))
}

/// A transfer to its own sender pays nobody: routers with an allowance could be made to emit one.
/// Nor does one out of a depository: it is a withdrawal, which anybody can execute, of money that was
/// its recipient's already. On the ZK Stack the transaction's own value is what its account was asked to pay: what it
/// paid is logged.
fn payments(
    rules: &Rules,
    mined: &Mined,
    input: &[u8],
    logs: &[Logged],
) -> Result<Vec<Payment>, Doubt> {
    let mut payments = Vec::new();
    if let Some((to, order)) = direct(mined, input) {
        let value = mined.transaction.value;
        let value = value.ok_or(Doubt("a transaction without value"))?.0;
        let moved = |token| moved(logs, token, &mined.transaction.from, &to);
        let amount = rules.ignored.map_or(value, |token| value.min(moved(token)));
        payments.push(Payment {
            index: DIRECT,
            kind: PaymentKind::Direct { order },
            recipient: rules.address(&to),
            currency: rules.native.clone(),
            amount,
        });
    }
    for log in logs {
        let (kind, to, currency, amount) = match log.event {
            Event::SolverNative { router, to, amount } => (
                PaymentKind::Router(rules.address(&router)),
                to,
                rules.native.clone(),
                amount,
            ),
            Event::Transfer {
                token,
                from,
                to,
                amount,
            } if from != to && !rules.executes(&from) && rules.ignored != Some(token) => {
                let kind = match from == mined.transaction.from {
                    true => PaymentKind::Transfer,
                    false => PaymentKind::TransferBy(rules.address(&from)),
                };
                (kind, to, rules.address(&token), amount)
            }
            _ => continue,
        };
        payments.push(Payment {
            index: log.index,
            kind,
            recipient: rules.address(&to),
            currency,
            amount,
        });
    }
    Ok(payments)
}

/// What logs of `token` show to have gone from one account to another.
fn moved(logs: &[Logged], token: EvmAddress, payer: &EvmAddress, payee: &EvmAddress) -> U256 {
    let amounts = logs.iter().filter_map(|log| match &log.event {
        Event::Transfer {
            token: of,
            from,
            to,
            amount,
        } if (*of, from, to) == (token, payer, payee) => Some(*amount),
        _ => None,
    });
    amounts.fold(U256::ZERO, U256::saturating_add)
}

fn direct(mined: &Mined, input: &[u8]) -> Option<(EvmAddress, B256)> {
    let to = mined.transaction.to?;
    let order = B256::from_slice(input.get(..32)?);
    (to != mined.transaction.from).then_some((to, order))
}

fn calls(rules: &Rules, logs: &[Logged]) -> Vec<RouterCall> {
    logs.iter()
        .filter_map(|log| match &log.event {
            Event::SolverCall {
                router,
                to,
                data,
                value,
            } => Some(RouterCall {
                router: rules.address(router),
                to: rules.address(to),
                data: data.clone(),
                value: *value,
            }),
            _ => None,
        })
        .collect()
}

/// A withdrawal of several calls logs its id several times; it is one execution.
fn executions(rules: &Rules, logs: &[Logged]) -> Vec<Execution> {
    let mut known = HashSet::new();
    logs.iter()
        .filter_map(|log| match log.event {
            Event::CallExecuted { depository, id, .. } if known.insert((depository, id)) => {
                Some(Execution {
                    depository: rules.address(&depository),
                    id,
                })
            }
            _ => None,
        })
        .collect()
}

/// The last 32 bytes of the calldata: one transaction names one order.
fn references(input: &[u8]) -> Vec<Arc<str>> {
    input
        .last_chunk::<32>()
        .map(|suffix| alloy::hex::encode_prefixed(suffix).into())
        .into_iter()
        .collect()
}
