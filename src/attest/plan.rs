//! Decides whether a planned payment would be attested: applies the judges of claims to the planned transaction, so
//! that a payer knows before it pays. Pure: no I/O, no clock.

use std::sync::Arc;

use serde_json::Map;
use vm::{
    Address, Amount, B256, Block, Bytes, ChainId, ChainSpec, EvmAddress, Family, FillRouters,
    Finality, Head, OrderCall, Payment, PaymentKind, Receipt, RouterCall, Seen, Transaction, TxRef,
    U256, protocol::order::Order,
};

use super::{
    Refusal,
    backing::{self, Backing, Tolerance},
    claim::Families,
    deposit::{Deposits, Message},
    execution, fill,
    order::{self, Difference, Input, Terms},
    refund::{self, Refund},
    statement::Outcome,
};

/// A signed order of the payer, and the deposits that it is to be filled or refunded for.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    pub order: &'a Order,
    pub families: Families<'a>,
    /// The routers of the planned transactions' chain.
    pub routers: &'a FillRouters,
    /// One per input of the order.
    pub deposits: &'a [Funding],
    /// The tolerance of the network's oracles.
    pub tolerance: Tolerance,
}

/// A final deposit, in a transaction whose deposits the oracle attests ([`attestable`](super::deposit::attestable)).
#[derive(Clone, Debug)]
pub struct Funding {
    /// The index of the order's input.
    pub input: usize,
    pub message: Message,
}

/// A planned transaction. It names this order only.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// The network's name.
    pub chain: &'a str,
    /// The latest time of its block, in unix seconds.
    pub by: u64,
    /// The account that sends it.
    pub from: &'a Address,
    /// The fill router that it goes through, if any.
    pub router: Option<&'a Address>,
    pub payments: &'a [Due<'a>],
    /// The calls that the router makes, in order.
    pub calls: &'a [OrderCall],
}

/// A payment of a planned transaction.
#[derive(Clone, Copy, Debug)]
pub struct Due<'a> {
    pub recipient: &'a Address,
    pub currency: &'a Address,
    pub amount: Amount,
}

/// A payment that the oracle will attest once it is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attestable {
    /// How far the deposits differ from what the order asks for.
    pub difference: Difference,
    /// The id that the solver signs for the claim ([`backing::claim_id`]); `None` if no signature is needed.
    pub to_sign: Option<B256>,
}

impl Plan<'_> {
    /// Checks that a claim can name the deposits; returns how far they differ from what the order asks for.
    pub fn named(&self) -> Result<Difference, Refusal> {
        let terms = self.terms()?;
        Difference::of(&terms, &self.funded(&terms)?)
    }

    /// Checks that `planned` would be attested as the order's fill.
    pub fn fill(&self, planned: &Planned<'_>) -> Result<Attestable, Refusal> {
        let terms = self.terms()?;
        let made = Made::of(planned, &terms, self)?;
        self.judge(Outcome::Fill, &terms, &|backing| {
            fill::judge(&terms, backing, &made.seen()).map(drop)
        })
    }

    /// Checks that `planned` would be attested as the order's refund: `planned[n]` gives `refunds[n]` back.
    pub fn refund(
        &self,
        refunds: &[Refund],
        planned: &[Planned<'_>],
    ) -> Result<Attestable, Refusal> {
        let terms = self.terms()?;
        let made = planned.iter().map(|p| Made::of(p, &terms, self));
        let made = made.collect::<Result<Vec<_>, _>>()?;
        let seen: Vec<_> = made.iter().map(|made| Some(made.seen())).collect();
        self.judge(Outcome::Refund, &terms, &|backing| {
            refund::judge(&terms, refunds, backing, &seen).map(drop)
        })
    }

    fn terms(&self) -> Result<Terms, Refusal> {
        Terms::new(self.order, self.families)
    }

    fn judge(
        &self,
        outcome: Outcome,
        terms: &Terms,
        judge: &dyn Fn(&Backing<'_>) -> Result<(), Refusal>,
    ) -> Result<Attestable, Refusal> {
        let funded = self.funded(terms)?;
        // It can be executed. The recipient makes no difference here.
        let fees = outcome == Outcome::Fill;
        execution::outcome(terms, EvmAddress::ZERO, &funded, fees)?;
        let backed = |vouched| Backing {
            funded: &funded,
            // The planned transaction contains none of the deposits.
            inputs: &[],
            vouched,
            tolerance: self.tolerance,
        };
        let difference = Difference::of(terms, &funded)?;
        let plain = judge(&backed(false));
        let to_sign = match plain {
            Ok(()) => None,
            // The claim may only lack the solver's signature.
            Err(_) if judge(&backed(true)).is_ok() => {
                Some(backing::claim_id(outcome, terms, &funded))
            }
            Err(refusal) => return Err(refusal),
        };
        Ok(Attestable {
            difference,
            to_sign,
        })
    }

    fn funded(&self, terms: &Terms) -> Result<Vec<Message>, Refusal> {
        let named = |funding: &Funding| Input {
            onchain_id: funding.message.onchain_id.to_string(),
            index: funding.input,
        };
        let names: Vec<Input> = self.deposits.iter().map(named).collect();
        order::check_inputs(&names)?;
        for funding in self.deposits {
            let wanted = terms.inputs.get(funding.input);
            let wanted = wanted.ok_or(Refusal::MissingInput(funding.input))?;
            if funding.message.chain.as_str() != wanted.chain {
                return Err(Refusal::WrongChain(funding.input));
            }
        }
        let messages = self.deposits.iter().map(|funding| funding.message.clone());
        order::funded(terms, &names, &Deposits::known(messages))
    }
}

/// A planned transaction as a final one.
struct Made {
    spec: ChainSpec,
    transaction: TxRef,
    head: Head,
    found: Transaction,
}

impl Made {
    fn of(planned: &Planned<'_>, terms: &Terms, plan: &Plan<'_>) -> Result<Self, Refusal> {
        let missing = || Refusal::ChainNotAvailable(planned.chain.into());
        let family = (plan.families)(planned.chain).ok_or_else(missing)?;
        let block = Block {
            number: 0,
            hash: B256::ZERO,
            parent: B256::ZERO,
            time: planned.by,
        };
        let native = family.native();
        let native = native.map_err(|why| super::claim::malformed("native currency", why))?;
        let payments = planned.payments.iter().enumerate();
        let receipt = Receipt {
            block: block.clone(),
            sender: Some(planned.from.clone()),
            deposits: Ok(Vec::new()),
            payments: payments
                .map(|(at, due)| planned.payment(at, due, (terms.id, &native)))
                .collect(),
            calls: planned.made(),
            executions: Vec::new(),
            references: vec![terms.name().into()],
            outer_call: None,
        };
        Ok(Self {
            spec: spec(planned.chain, family, plan.routers),
            transaction: TxRef {
                text: Arc::from("planned"),
                bytes: Bytes::new(),
                hint: None,
            },
            head: Head {
                block,
                tagged: None,
            },
            found: Transaction::Succeeded(receipt),
        })
    }

    fn seen(&self) -> Seen<'_> {
        Seen {
            spec: &self.spec,
            transaction: &self.transaction,
            head: &self.head,
            found: &self.found,
        }
    }
}

/// A chain on which everything is final.
fn spec(chain: &str, family: &'static Family, routers: &FillRouters) -> ChainSpec {
    ChainSpec {
        id: ChainId::new(chain),
        family,
        hub_chain_id: U256::ZERO,
        depository: None,
        additional_depositories: Vec::new(),
        finality: Finality {
            blocks: 0,
            seconds: 0,
            tag: None,
        },
        watch_blocks: 0,
        fill_routers: routers.clone(),
        additional: Map::new(),
    }
}

impl Planned<'_> {
    fn payment(&self, at: usize, due: &Due<'_>, (order, native): (B256, &Address)) -> Payment {
        let kind = match self.router {
            Some(router) if due.currency == native => PaymentKind::Router(router.clone()),
            Some(router) => PaymentKind::TransferBy(router.clone()),
            None if due.currency == native => PaymentKind::Direct { order },
            None => PaymentKind::Transfer,
        };
        Payment {
            index: u32::try_from(at).unwrap_or(u32::MAX),
            kind,
            recipient: due.recipient.clone(),
            currency: due.currency.clone(),
            amount: due.amount,
        }
    }

    fn made(&self) -> Vec<RouterCall> {
        let made = |router: &Address| {
            let calls = self.calls.iter().map(|call| RouterCall {
                router: router.clone(),
                to: call.to.clone(),
                data: call.data.clone(),
                value: call.value,
            });
            calls.collect()
        };
        self.router.map(made).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
