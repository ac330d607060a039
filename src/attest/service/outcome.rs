//! Fill and refund attestations: how an order ended.

use serde_json::Value;
use vm::{
    B256, EvmAddress, Seen, aside,
    protocol::{hub::alias, order::Order},
};

use super::{Attested, Attestor, Error, is_long};
use crate::attest::{
    Refusal,
    backing::{self, Backing},
    claim::malformed,
    deposit::{Deposits, Message},
    evidence, execution, fill,
    measured::{self, Paid},
    order::{self, Difference, Input, Terms},
    paid::Served,
    peers::{Asked, Question},
    read::{self, Found, Wanted},
    refund::{self, Refund},
    statement::{Outcome, Statement},
};

/// The parts that claims of fills and refunds share.
#[derive(Clone, Debug)]
pub struct OrderClaim {
    pub order: Order,
    pub signature: String,
    pub inputs: Vec<InputClaim>,
    /// The solver's signature for this claim: see [`backing::vouched`].
    pub solver_signature: Option<String>,
    /// Skips the judgement of payments, for trusted callers.
    pub force: bool,
}

/// The deposit of one input of an order.
#[derive(Clone, Debug)]
pub struct InputClaim {
    pub input: Input,
    pub transaction: String,
    /// Read only when forced; else it is the input's own chain.
    pub chain: Option<String>,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

/// A claim that an order was filled.
#[derive(Clone, Debug)]
pub struct FillClaim {
    pub order: OrderClaim,
    pub transaction: String,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

/// A claim that an order was refunded.
#[derive(Clone, Debug)]
pub struct RefundClaim {
    pub order: OrderClaim,
    pub refunds: Vec<RefundPayment>,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

/// The refund of one input of an order.
#[derive(Clone, Debug)]
pub struct RefundPayment {
    pub refund: Refund,
    pub transaction: String,
}

/// The answer to a claim about an order.
#[derive(Clone, Debug)]
pub struct OutcomeAnswer {
    pub order_id: B256,
    pub difference: Difference,
    pub attested: Attested,
}

/// The rule of a forced claim, in words.
const FORCED: &str = "forced: no payment is judged, and the deposits cover what moves";

/// A judged order, to be signed.
struct Judged {
    funded: Vec<Message>,
    served: Vec<Served>,
    difference: Difference,
}

/// What a claim says of an order.
#[derive(Clone, Copy)]
struct Claimed<'a> {
    outcome: Outcome,
    claim: &'a OrderClaim,
    terms: &'a Terms,
    word: Option<&'a Word>,
}

/// Whether the solver's signature is for a claim of the deposits `ids`, as was checked before the reads.
struct Word {
    ids: Vec<B256>,
    vouched: bool,
}

impl Claimed<'_> {
    /// Whether the claim carries its solver's signature for the deposits `funded`. A signature is checked once.
    fn vouched(&self, funded: &[Message]) -> Result<bool, Refusal> {
        let ids = || funded.iter().map(|message| &message.onchain_id);
        match self.word.filter(|word| word.ids.iter().eq(ids())) {
            Some(word) => Ok(word.vouched),
            None => {
                let signature = self.claim.solver_signature.as_deref();
                backing::vouched(self.outcome, self.terms, funded, signature)
            }
        }
    }
}

impl Attestor {
    /// Attests that an order was filled.
    pub async fn fill(
        &self,
        claim: &FillClaim,
        question: Option<&Question>,
    ) -> Result<OutcomeAnswer, Error> {
        let of = &claim.order;
        let (terms, word) = self.terms(Outcome::Fill, of)?;
        let claimed = Claimed {
            outcome: Outcome::Fill,
            claim: of,
            terms: &terms,
            word: word.as_ref(),
        };
        let mut wanted = self.inputs(of, &terms)?;
        let inputs = wanted.len();
        if !of.force {
            fill::check_ordered(&terms.output)?;
            let (chain, hints) = (&terms.output.chain, claim.hints.as_ref());
            let path = "body/fill/transactionId";
            wanted.push(self.wanted(chain, &claim.transaction, hints, path)?);
        }
        let asked = self.ask(question);
        let found = read::transactions(&wanted, self.hub.permits(), read::SETTLED).await?;
        let paid = |backing: &Backing<'_>| fill::judge(&terms, backing, &found[inputs].seen());
        let judged = aside(is_long(&found), || {
            self.judge(claimed, &found[..inputs], &paid)
        })?;
        self.end(claimed, judged, &found, asked).await
    }

    /// Attests that an order was refunded.
    pub async fn refund(
        &self,
        claim: &RefundClaim,
        question: Option<&Question>,
    ) -> Result<OutcomeAnswer, Error> {
        let of = &claim.order;
        let (terms, word) = self.terms(Outcome::Refund, of)?;
        let claimed = Claimed {
            outcome: Outcome::Refund,
            claim: of,
            terms: &terms,
            word: word.as_ref(),
        };
        let mut wanted = self.inputs(of, &terms)?;
        let inputs = wanted.len();
        let refunds: Vec<Refund> = claim.refunds.iter().map(|r| r.refund.clone()).collect();
        let mut positions = vec![None; refunds.len()];
        if !of.force {
            for (at, option) in refund::chosen(&terms, &refunds)? {
                let (text, hints) = (&claim.refunds[at].transaction, claim.hints.as_ref());
                let path = format!("body/refunds/{at}/transactionId");
                positions[at] = Some(wanted.len());
                wanted.push(self.wanted(&option.chain, text, hints, &path)?);
            }
        }
        let asked = self.ask(question);
        let found = read::transactions(&wanted, self.hub.permits(), read::SETTLED).await?;
        let paid = |backing: &Backing<'_>| {
            let seen = |at: &Option<usize>| at.map(|at| found[at].seen());
            let seen: Vec<Option<Seen<'_>>> = positions.iter().map(seen).collect();
            refund::judge(&terms, &refunds, backing, &seen)
        };
        let judged = aside(is_long(&found), || {
            self.judge(claimed, &found[..inputs], &paid)
        })?;
        self.end(claimed, judged, &found, asked).await
    }

    /// Judges a claim over what was read: `inputs` are the order's deposits.
    fn judge(
        &self,
        claimed: Claimed<'_>,
        inputs: &[Found],
        paid: &dyn Fn(&Backing<'_>) -> Result<Paid, Refusal>,
    ) -> Result<Judged, Refusal> {
        let Claimed {
            outcome,
            claim,
            terms,
            ..
        } = claimed;
        let seen: Vec<Seen<'_>> = inputs.iter().map(Found::seen).collect();
        let deposits = Deposits::of(&seen);
        if claim.force {
            let funded = order::forced(terms, &deposits)?;
            execution::check_covered(terms, &funded, outcome == Outcome::Fill)?;
            evidence::met(|| vec![FORCED.to_owned()]);
            return Ok(Judged {
                funded,
                served: Vec::new(),
                difference: Difference::default(),
            });
        }
        let names: Vec<Input> = claim.inputs.iter().map(|i| i.input.clone()).collect();
        let funded = order::funded(terms, &names, &deposits)?;
        let backing = Backing {
            funded: &funded,
            inputs: &seen,
            vouched: claimed.vouched(&funded)?,
            tolerance: self.tolerance,
        };
        let difference = backing.check(terms)?;
        let paid = paid(&backing)?;
        evidence::met(|| measured::words(terms, &backing, &paid.rules));
        Ok(Judged {
            difference,
            served: paid.served,
            funded,
        })
    }

    /// Parses the order and makes the checks that need no chain.
    fn terms(&self, outcome: Outcome, claim: &OrderClaim) -> Result<(Terms, Option<Word>), Error> {
        let inputs: Vec<Input> = claim.inputs.iter().map(|i| i.input.clone()).collect();
        if !claim.force {
            order::check_inputs(&inputs)?;
        }
        let terms = Terms::new(&claim.order, &|chain| self.family(chain))?;
        order::check_signature(&claim.order.solver, terms.id, &claim.signature)?;
        if claim.force {
            return Ok((terms, None));
        }
        let named = |index| inputs.iter().any(|input| input.index == index);
        if let Some(index) = (0..terms.inputs.len()).find(|index| !named(*index)) {
            return Err(Refusal::MissingInput(index).into());
        }
        // The judges refuse texts that are no ids later, and name the deposits that exist.
        let Some(ids) = named_ids(&terms, &inputs) else {
            return Ok((terms, None));
        };
        let signature = claim.solver_signature.as_deref();
        let vouched = backing::check_word(outcome, &terms, &ids, signature)?;
        Ok((terms, Some(Word { ids, vouched })))
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

    /// The solver's hub account.
    pub(super) fn solver(&self, order: &Order) -> Result<EvmAddress, Refusal> {
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
        claimed: Claimed<'_>,
        judged: Judged,
        found: &[Found],
        asked: Option<Asked>,
    ) -> Result<OutcomeAnswer, Error> {
        let Claimed {
            outcome,
            claim,
            terms,
            ..
        } = claimed;
        let (solver, fees) = (self.solver(&claim.order)?, outcome == Outcome::Fill);
        let execution = execution::outcome(terms, solver, &judged.funded, fees)?;
        let ids: Vec<B256> = judged.funded.iter().map(|m| m.onchain_id).collect();
        let digest = self.digest(&execution);
        let paid = judged.served.iter();
        let paid = paid.map(|served| (&served.chain, &served.transaction, served.index));
        let own = judged.served.iter().all(|served| served.own);
        let mut statement = Statement::outcome(terms.id, &ids, digest)
            .paid_by_all(paid)
            .by_solver(own);
        for found in found {
            let block = &found.seen().receipt().map_err(Refusal::from)?.block;
            statement = statement.resting_on(&found.spec.id, &found.transaction, block);
        }
        Ok(OutcomeAnswer {
            order_id: terms.id,
            difference: judged.difference,
            attested: self.seal(execution, &statement, asked).await?,
        })
    }
}

/// The onchain ids of a claim, in the order of the order's inputs; `None` where one is not an id.
fn named_ids(terms: &Terms, inputs: &[Input]) -> Option<Vec<B256>> {
    let of = |index| inputs.iter().find(|input| input.index == index);
    let ids = (0..terms.inputs.len()).map(|index| of(index)?.onchain_id.parse().ok());
    ids.collect()
}
