//! Which deposits a transaction made (guide: protocol 4.2 and 12.3). Pure.
//!
//! Amounts come only from the depository's own native event or from a token's own `Transfer` to
//! the depository; the depository's ERC-20 event names who deposited, and for what, but moves nothing.
//!
//! A doubt about one transfer is no doubt about the others: anybody may emit a `Transfer` of a token
//! of their own. Refused as a whole is only what takes the depository's own word into question.

use super::{
    decode::{Logged, Rules},
    event::Event,
    suffix,
};
use crate::types::{B256, Deposit, EvmAddress, Refusal, U256};

/// A transaction's calldata.
#[derive(Clone, Copy, Debug)]
pub struct Calldata<'a> {
    pub input: &'a [u8],
    /// Who wrote it; `None`: not looked at.
    pub sender: Option<EvmAddress>,
}

/// The deposits in the order of their logs.
pub fn read(
    rules: &Rules,
    logs: &[Logged],
    calldata: Calldata<'_>,
) -> Result<Vec<Deposit>, Refusal> {
    let Some(depository) = rules.depository else {
        return Err(Refusal(format!("Chain {} has no depository", rules.chain)));
    };
    refuse_unclear(depository, logs)?;
    Ok(logged(rules, depository, (logs, calldata)))
}

/// What the logs tell of deposits, whether that can be believed or not.
pub fn logged(
    rules: &Rules,
    depository: EvmAddress,
    (logs, calldata): (&[Logged], Calldata<'_>),
) -> Vec<Deposit> {
    let kept: Vec<&Logged> = logs
        .iter()
        .filter(|log| is_kept(rules, depository, &log.event))
        .collect();
    let transfers = kept
        .iter()
        .filter(|log| matches!(log.event, Event::Transfer { .. }))
        .count();
    let mut deposits = Vec::with_capacity(kept.len());
    for (position, log) in kept.iter().enumerate() {
        let deposit = match log.event {
            Event::NativeDeposit {
                depositor,
                amount,
                id,
            } => Found {
                depositor,
                currency: None,
                amount,
                id,
                named_by_other: false,
            },
            Event::Transfer {
                token,
                from,
                amount,
                ..
            } => {
                let claim = claim(&kept[position + 1..], token, amount);
                let (depositor, id) = match claim {
                    Claim::One(depositor, id) => (depositor, id),
                    Claim::None | Claim::Several => (from, B256::ZERO),
                };
                let mut found = Found {
                    depositor,
                    currency: Some(token),
                    amount,
                    id,
                    named_by_other: false,
                };
                if id.is_zero() && transfers == 1 && claim != Claim::Several {
                    found.id = suffix::deposit_id(calldata.input, depository, amount);
                    found.named_by_other =
                        !found.id.is_zero() && calldata.sender.is_some_and(|by| by != from);
                }
                found
            }
            _ => continue,
        };
        let by_depositor = calldata.sender == Some(deposit.depositor);
        deposits.push(deposit.at(rules, depository, log.index, by_depositor));
    }
    deposits
}

struct Found {
    depositor: EvmAddress,
    /// `None` for the native currency.
    currency: Option<EvmAddress>,
    amount: U256,
    id: B256,
    named_by_other: bool,
}

impl Found {
    fn at(self, rules: &Rules, depository: EvmAddress, index: u32, by_depositor: bool) -> Deposit {
        Deposit {
            index,
            depository: rules.address(&depository),
            depositor: rules.address(&self.depositor),
            currency: self
                .currency
                .map_or_else(|| rules.native.clone(), |token| rules.address(&token)),
            amount: self.amount,
            id: format!("{:#x}", self.id).into(),
            named_by_other: self.named_by_other,
            by_depositor,
        }
    }
}

/// A log of the depository in a foreign shape, and a depository that calls itself: its events then
/// tell of value that never entered.
fn refuse_unclear(depository: EvmAddress, logs: &[Logged]) -> Result<(), Refusal> {
    for log in logs {
        match log.event {
            Event::Malformed => {
                return Err(Refusal("Unreadable event of the depository".into()));
            }
            Event::CallExecuted { to, .. } if to == depository => {
                return Err(Refusal("The depository called itself".into()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_kept(rules: &Rules, depository: EvmAddress, event: &Event) -> bool {
    match event {
        Event::NativeDeposit { .. } | Event::Erc20Deposit { .. } => true,
        Event::Transfer {
            token, from, to, ..
        } => *to == depository && *from != depository && rules.ignored != Some(*token),
        _ => false,
    }
}

/// What the depository's own events say about one transfer: who deposited, and for which order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    None,
    One(EvmAddress, B256),
    /// Events that contradict each other. None is believed, and the calldata neither: what was
    /// transferred is then its payer's own, so that nobody deposits with somebody else's money.
    Several,
}

/// The claim on a transfer of `amount` of `token`: its event stands behind that transfer and before
/// the next one, however little the next one moves.
fn claim(following: &[&Logged], token: EvmAddress, amount: U256) -> Claim {
    let mut claim = Claim::None;
    for log in following {
        match log.event {
            Event::Transfer { .. } => break,
            Event::Erc20Deposit {
                depositor,
                token: named,
                amount: said,
                id,
            } if named == token && said == amount => {
                let this = Claim::One(depositor, id);
                if claim != Claim::None && claim != this {
                    return Claim::Several;
                }
                claim = this;
            }
            _ => {}
        }
    }
    claim
}
