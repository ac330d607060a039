//! A priced intent as the request that is to be kept, and what its caller is told. Nothing is kept here.

use alloy::primitives::{B128, B256, Bytes, U256};
use vm::protocol::{order::Order, signature::eip191};

use super::{
    answer::{Answer, PaymentDetails, Protocol, ProtocolV2},
    code::{Code, Refused},
    order::Promise,
    record::{Promised, record},
    service::{Priced, Quoter},
    steps,
};
use crate::request::{self, Request};

/// See the module.
pub(super) struct Draft {
    pub request: Request,
    pub answer: Answer,
    /// Gas units of the user's own transactions.
    pub gas: U256,
}

impl Quoter {
    pub(super) async fn draft(
        &self,
        priced: &Priced<'_>,
        key: Option<&str>,
    ) -> Result<Draft, Refused> {
        let order = self.order(priced)?;
        let order_id = order
            .id(|chain| Some(self.parts.venues.get(chain)?.spec.family))
            .map_err(|error| {
                tracing::error!(%error, "no quote: the order has no id");
                Refused::new(Code::UnknownError, "the order cannot be built")
            })?;
        let plan = priced.plan(order_id);
        let (planned, signature) = futures::try_join!(self.plan(&plan), self.signature(&order_id))?;
        let gas = steps::gas(&planned, &priced.intent);
        let sheet = priced.sheet(gas);
        let valid_until = self.valid_until(priced);
        let mut details = sheet.details(true);
        details.valid_until = Some(valid_until);
        let fees = sheet.fees();
        let promised = Promised {
            id: request::id(priced.now, self.entropy()?),
            order_id,
            order,
            signature,
            fill_gas: priced.fill_gas,
            fill_price: priced.reads.destination_fees.price(),
            steps: &planned,
            now: priced.now,
            valid_until,
            key,
            fees: &fees,
            details: &details,
        };
        let request = record(&priced.intent, &priced.figures, &promised);
        let said = (order_id, &request.order_signature);
        let protocol = protocol(priced, promised.order, said);
        let answer = Answer {
            steps: steps::shown(&planned, &plan, request.id),
            fees,
            details,
            protocol,
        };
        Ok(Draft {
            request,
            answer,
            gas,
        })
    }

    /// The caller may shorten it, never lengthen.
    fn valid_until(&self, priced: &Priced<'_>) -> u64 {
        let longest = self.parts.validity;
        let seconds = priced.intent.ttl.unwrap_or(longest).min(longest);
        (priced.now / 1000).saturating_add(seconds)
    }

    fn order(&self, priced: &Priced<'_>) -> Result<Order, Refused> {
        let promise = Promise {
            solver_chain: &self.parts.solver_chain,
            solver: &self.solver,
            random: B128::from_slice(&self.entropy()?[..16]).0,
            paid: (&priced.route.paid, priced.figures.sum.paid),
            given: (&priced.route.given, priced.figures.sum.given),
            payments: &priced.fill.payments,
            calls: &priced.fill.calls,
            refund_to: &priced.intent.refund_to,
            now: priced.now / 1000,
        };
        Ok(promise.order()?)
    }

    /// The solver's word for an order.
    async fn signature(&self, order: &B256) -> Result<Bytes, Refused> {
        let digest = eip191(order.as_slice());
        let signature = self.parts.signer.sign(&digest).await.map_err(|error| {
            tracing::error!(%error, "no quote: the solver's key does not sign");
            Refused::new(Code::ServiceUnavailable, "the solver does not answer")
        })?;
        Ok(Bytes::copy_from_slice(signature.as_bytes()))
    }
}

fn protocol(priced: &Priced<'_>, order: Order, (id, signature): (B256, &Bytes)) -> Protocol {
    let (intent, paid) = (&priced.intent, &priced.route.paid);
    let depository = paid.spec.depository.as_ref();
    let depository = depository.filter(|_| !intent.own);
    let v2 = ProtocolV2 {
        order_id: id.to_string(),
        hub_type: "onchain",
        order_data: order,
        order_signature: intent.include_protocol_data.then(|| signature.to_string()),
        payment_details: depository.map(|depository| PaymentDetails {
            chain_id: paid.network.name.clone(),
            depository: depository.to_string(),
            currency: paid.address.to_string(),
            amount: priced.figures.sum.paid.to_string(),
        }),
    };
    Protocol { v2 }
}
