//! The quoter: reads, prices, simulates, promises, stores. The last stage: it calls every other one.

use alloy::primitives::{B256, U256};

use super::{
    answer::{Answer, MultiAnswer, PriceAnswer},
    body::Body,
    breakdown::Breakdown,
    code::Refused,
    context::{Caller, Context, Deps},
    draft::{draft, hold, room, unkept},
    multi,
    pricing::price,
    steps::{self, Plan},
    toll::{self, End, Toll},
};
use crate::store::Batch;

/// Makes quotes.
pub struct Quoter(Context);

impl Quoter {
    pub fn new(deps: Deps) -> Self {
        Self(Context::new(deps))
    }

    /// As [`Self::quote_for`], for nobody in particular but the API key with the label `key`.
    pub async fn quote(&self, body: &Body, key: Option<&str>) -> Result<Answer, Refused> {
        self.quote_for(body, Caller { key, by: 0 }).await
    }

    /// Quotes a body. The request is durable when the answer is given.
    pub async fn quote_for(&self, body: &Body, caller: Caller<'_>) -> Result<Answer, Refused> {
        let context = &self.0;
        room(context)?;
        let intent = context.intent(body, caller.key)?;
        let priced = price(context, intent, caller.key).await?;
        let draft = draft(context, &priced, caller.key).await?;
        let requests = &context.deps.requests;
        let stored = requests.insert_by(&draft.request, caller.by, Batch::new());
        stored.await.map_err(unkept)?;
        hold(context, &priced, &draft.request, U256::ZERO);
        Ok(draft.answer)
    }

    /// Prices a body; nothing is stored.
    pub async fn price(&self, body: &Body, key: Option<&str>) -> Result<PriceAnswer, Refused> {
        let context = &self.0;
        let intent = context.intent(body, key)?;
        let priced = price(context, intent, key).await?;
        let plan = Plan {
            case: &priced.case,
            amounts: &priced.amounts,
            order_id: B256::repeat_byte(0xee),
        };
        let own = steps::expected(context, &plan).await?;
        let breakdown = Breakdown::of(&priced, own);
        Ok(PriceAnswer {
            fees: breakdown.fees(),
            details: breakdown.details(false),
        })
    }

    /// Quotes `bodies` as one; where one of them cannot be quoted nothing is kept or held.
    pub async fn quote_all(
        &self,
        bodies: Vec<Body>,
        caller: Caller<'_>,
    ) -> Result<MultiAnswer, Refused> {
        multi::quote(&self.0, bodies, caller).await
    }

    /// What the solver takes of a deposit on this route; nothing on one chain, where the user does everything.
    pub async fn toll(
        &self,
        origin: End<'_>,
        destination: End<'_>,
        capacity: U256,
    ) -> Result<Toll, Refused> {
        toll::toll(&self.0, origin, destination, capacity).await
    }
}
