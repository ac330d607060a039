//! Fill and refund attestations: how an order ended.

use serde_json::Value;
use vm::{
    B256, EvmAddress, Seen,
    protocol::{hub::alias, order::Order},
};

use super::{Attested, Error, Oracle};
use crate::attest::{
    Refusal,
    claim::{bounded, malformed},
    deposit::{self, Message},
    execution, fill,
    order::{self, Difference, Input, Terms},
    paid::Served,
    peers::Question,
    read::{self, Found, Wanted},
    refund::{self, Refund},
    statement::{Outcome, Statement},
};

/// What fills and refunds have in common.
#[derive(Clone, Debug)]
pub struct OrderClaim {
    pub order: Order,
    pub signature: String,
    pub inputs: Vec<InputClaim>,
    /// Neither signature nor payments are looked at: the caller is trusted.
    pub force: bool,
}

/// Where one input of an order was paid.
#[derive(Clone, Debug)]
pub struct InputClaim {
    pub input: Input,
    pub transaction: String,
    /// Only looked at when forced; else the input's own chain.
    pub chain: Option<String>,
    /// One field per family.
    pub hints: Option<Value>,
}

/// An order that was filled.
#[derive(Clone, Debug)]
pub struct FillClaim {
    pub order: OrderClaim,
    pub transaction: String,
    /// One field per family.
    pub hints: Option<Value>,
}

/// An order that was refunded.
#[derive(Clone, Debug)]
pub struct RefundClaim {
    pub order: OrderClaim,
    pub refunds: Vec<RefundPayment>,
    /// One field per family.
    pub hints: Option<Value>,
}

/// Where one input of an order was given back.
#[derive(Clone, Debug)]
pub struct RefundPayment {
    pub refund: Refund,
    pub transaction: String,
}

/// How an order ended.
#[derive(Clone, Debug)]
pub struct OutcomeAnswer {
    pub order_id: B256,
    pub difference: Difference,
    pub attested: Attested,
}

/// An order that was judged: what is left is to sign it.
struct Ended<'a> {
    terms: &'a Terms,
    funded: Vec<Message>,
    served: Vec<Served>,
    difference: Difference,
    found: Vec<Found>,
}

impl Oracle {
    /// Attests that an order was filled.
    pub async fn fill(
        &self,
        claim: &FillClaim,
        question: Option<&Question>,
    ) -> Result<OutcomeAnswer, Error> {
        let of = &claim.order;
        let terms = self.terms(of)?;
        let mut wanted = self.inputs(of, &terms)?;
        let inputs = wanted.len();
        if !of.force {
            fill::check_ordered(&terms.output)?;
            let (chain, hints) = (&terms.output.chain, claim.hints.as_ref());
            let path = "body/fill/transactionId";
            wanted.push(self.wanted(chain, &claim.transaction, hints, path)?);
        }
        let asked = self.ask(question);
        let found = read::transactions(&wanted, read::SETTLED).await?;
        let funded = funded(of, &terms, &found[..inputs])?;
        let (mut served, mut difference) = (Vec::new(), Difference::default());
        if let Some(paid) = found.get(inputs) {
            difference = Difference::of(&terms, &funded)?;
            served = fill::judge(&terms, &paid.seen())?;
        }
        let ended = Ended {
            terms: &terms,
            funded,
            served,
            difference,
            found,
        };
        let execution = self.outcome(Outcome::Fill, of, &ended)?;
        self.end(Outcome::Fill, ended, execution, asked).await
    }

    /// Attests that an order was refunded.
    pub async fn refund(
        &self,
        claim: &RefundClaim,
        question: Option<&Question>,
    ) -> Result<OutcomeAnswer, Error> {
        let of = &claim.order;
        let terms = self.terms(of)?;
        let mut wanted = self.inputs(of, &terms)?;
        let inputs = wanted.len();
        let refunds: Vec<Refund> = claim.refunds.iter().map(|r| r.refund.clone()).collect();
        bounded("refunds", refunds.len())?;
        let mut places = vec![None; refunds.len()];
        if !of.force {
            for (at, option) in refund::chosen(&terms, &refunds)? {
                let (text, hints) = (&claim.refunds[at].transaction, claim.hints.as_ref());
                let path = format!("body/refunds/{at}/transactionId");
                places[at] = Some(wanted.len());
                wanted.push(self.wanted(&option.chain, text, hints, &path)?);
            }
        }
        let asked = self.ask(question);
        let found = read::transactions(&wanted, read::SETTLED).await?;
        let funded = funded(of, &terms, &found[..inputs])?;
        let (mut served, mut difference) = (Vec::new(), Difference::default());
        if !of.force {
            difference = Difference::of(&terms, &funded)?;
            let seen = |at: &Option<usize>| at.map(|at| found[at].seen());
            let seen: Vec<Option<Seen<'_>>> = places.iter().map(seen).collect();
            served = refund::judge(&terms, &refunds, &funded, &seen)?;
        }
        let ended = Ended {
            terms: &terms,
            funded,
            served,
            difference,
            found,
        };
        let execution = self.outcome(Outcome::Refund, of, &ended)?;
        self.end(Outcome::Refund, ended, execution, asked).await
    }

    /// The order, read and (unless forced) checked as far as no chain is needed.
    fn terms(&self, claim: &OrderClaim) -> Result<Terms, Error> {
        bounded("inputs", claim.inputs.len())?;
        let inputs: Vec<Input> = claim.inputs.iter().map(|i| i.input.clone()).collect();
        if !claim.force {
            order::check_inputs(&inputs)?;
        }
        let terms = Terms::new(&claim.order, &|chain| self.family(chain))?;
        if claim.force {
            return Ok(terms);
        }
        order::check_signature(&claim.order.solver, terms.id, &claim.signature)?;
        let named = |index| inputs.iter().any(|input| input.index == index);
        match (0..terms.inputs.len()).find(|index| !named(*index)) {
            Some(index) => Err(Refusal::MissingInput(index).into()),
            None => Ok(terms),
        }
    }

    fn inputs(&self, claim: &OrderClaim, terms: &Terms) -> Result<Vec<Wanted>, Error> {
        let wanted = |(at, input): (usize, &InputClaim)| {
            let own = terms
                .inputs
                .get(input.input.index)
                .map(|i| i.chain.as_str());
            let chain = input.chain.as_deref().filter(|_| claim.force).or(own);
            let path = format!("body/inputs/{at}");
            let missing =
                || malformed(&format!("{path}/inputIndex"), "the order has no such input");
            let (chain, hints) = (chain.ok_or_else(missing)?, input.hints.as_ref());
            self.wanted(
                chain,
                &input.transaction,
                hints,
                &format!("{path}/transactionId"),
            )
        };
        claim.inputs.iter().enumerate().map(wanted).collect()
    }

    fn outcome(
        &self,
        outcome: Outcome,
        claim: &OrderClaim,
        ended: &Ended<'_>,
    ) -> Result<vm::protocol::message::Execution, Error> {
        let solver = self.solver(&claim.order)?;
        let fees = outcome == Outcome::Fill;
        Ok(execution::outcome(
            ended.terms,
            solver,
            &ended.funded,
            fees,
        )?)
    }

    /// The solver's hub account.
    fn solver(&self, order: &Order) -> Result<EvmAddress, Refusal> {
        let chain = &order.solver_chain_id;
        let missing = || Refusal::ChainNotAvailable(chain.into());
        let family = self.family(chain).ok_or_else(missing)?;
        let solver = family
            .account(&order.solver)
            .map_err(|why| malformed("body/order/solver", why))?;
        Ok(alias(&vm::ChainId::new(chain), &solver))
    }

    async fn end(
        &self,
        outcome: Outcome,
        ended: Ended<'_>,
        execution: vm::protocol::message::Execution,
        asked: Option<crate::attest::peers::Asked>,
    ) -> Result<OutcomeAnswer, Error> {
        let ids: Vec<B256> = ended.funded.iter().map(|m| m.onchain_id).collect();
        let order_id = ended.terms.id;
        let digest = self.digest(&execution);
        let mut statement = Statement::outcome(outcome, order_id, &ids, digest);
        for served in &ended.served {
            statement = statement.paid_by(&served.chain, &served.transaction, served.index);
        }
        for found in &ended.found {
            let block = &found.seen().receipt().map_err(Refusal::from)?.block;
            statement = statement.resting_on(&found.spec.id, &found.transaction, block);
        }
        Ok(OutcomeAnswer {
            order_id,
            difference: ended.difference,
            attested: self.seal(execution, &statement, asked).await?,
        })
    }
}

/// The deposits of the order: one per input, or, forced, all that name the order.
fn funded(claim: &OrderClaim, terms: &Terms, found: &[Found]) -> Result<Vec<Message>, Refusal> {
    let deposits: Vec<_> = found.iter().map(|f| deposit::settled(&f.seen())).collect();
    if claim.force {
        return order::forced(terms, deposits);
    }
    let inputs: Vec<Input> = claim.inputs.iter().map(|i| i.input.clone()).collect();
    order::funded(terms, &inputs, &deposits)
}
