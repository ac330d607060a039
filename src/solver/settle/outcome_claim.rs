//! The claim that a payment ended an order with one input: as the settler makes it, and for whoever wants to know what
//! would be signed.

use alloy::primitives::B256;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vm::spelled_alike;

use crate::{
    request::{
        Request,
        fact::{Attempt, Deposit, Facts, Purpose, State},
    },
    sign::SignError,
    solver::keys::Keys,
    store::requests::{Requests, RequestsError},
};

/// A payment that ended an order.
#[derive(Clone, Copy, Debug)]
pub struct EndingPayment<'a> {
    pub purpose: Purpose,
    pub transaction: &'a str,
    /// The index of the refund option of the order's input.
    pub option: usize,
}

/// The oracle's route and the body of the claim that `payment` ended the order of `request`, which `deposit` paid for.
pub fn body(
    request: &Request,
    deposit: &Deposit,
    payment: EndingPayment<'_>,
) -> (&'static str, Value) {
    let mut body = json!({
        "order": request.order,
        "orderSignature": request.order_signature,
        "inputs": [{
            "transactionId": deposit.transaction,
            "onchainId": deposit.onchain_id,
            "inputIndex": 0,
        }],
    });
    let transaction = payment.transaction;
    match payment.purpose {
        Purpose::Fill => {
            body["fill"] = json!({ "transactionId": transaction });
            ("solver-fills", body)
        }
        Purpose::Refund | Purpose::Excess => {
            body["refunds"] = json!([{
                "transactionId": transaction,
                "inputIndex": 0,
                "refundIndex": payment.option,
            }]);
            ("solver-refunds", body)
        }
    }
}

/// The claim that a payment ended an order, made to be judged and not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeClaim {
    /// The oracle's route.
    pub route: String,
    pub body: Value,
    /// The solver's signature for it, where the solver sent the payment and it is confirmed. Whoever has it can make the
    /// claim: it is judged with, and shown to nobody.
    pub signature: Option<String>,
}

/// Why it is not known whether there is a claim.
#[derive(Debug, thiserror::Error)]
pub enum OutcomeClaimError {
    #[error(transparent)]
    Requests(#[from] RequestsError),
    #[error(transparent)]
    Sign(#[from] SignError),
}

/// The claims about orders of this daemon's requests.
#[derive(Clone)]
pub struct OutcomeClaims {
    pub requests: Requests,
    /// The keys of its solver; `None`: an oracle only.
    pub keys: Option<Keys>,
}

impl OutcomeClaims {
    /// The claim that `transaction` of `network` ended `order`. `None` where no request here has the order, and for
    /// what is no claim by itself: the user's own transactions, and an excess that is given back.
    pub async fn of(
        &self,
        order: &B256,
        (network, transaction): (&str, &str),
    ) -> Result<Option<OutcomeClaim>, OutcomeClaimError> {
        let Some(request) = self.requests.by_order(order).await? else {
            return Ok(None);
        };
        let facts = self.requests.facts(&request.id).await?;
        let is_it = |of: &str, text: &str| of == network && spelled_alike(text, transaction);
        let mut attempts = facts.attempts.iter();
        let sent = attempts.find(|one| is_it(&one.network, &one.transaction));
        let deposits = facts.deposits.iter();
        let deposits = deposits.map(|one| (&one.network, &one.transaction));
        let own = facts.own.iter().map(|one| (&one.network, &one.transaction));
        let mut of_user = deposits.chain(own);
        if sent.is_none() && of_user.any(|(of, text)| is_it(of, text)) {
            return Ok(None);
        }
        let Some((deposit, purpose, option)) = ended(&request, &facts, (network, sent)) else {
            return Ok(None);
        };
        let signature = match (&self.keys, sent.map(|sent| &sent.state)) {
            (Some(keys), Some(State::Confirmed(_))) => {
                let paid = (purpose, deposit.onchain_id);
                keys.vouched(&request, paid).await?
            }
            _ => None,
        };
        let payment = EndingPayment {
            purpose,
            transaction,
            option,
        };
        let (route, body) = body(&request, deposit, payment);
        Ok(Some(OutcomeClaim {
            route: route.to_owned(),
            body,
            signature,
        }))
    }
}

/// The deposit that a payment on `network` used up, what it was for, and by which refund option: as the solver `sent`
/// it. A payment of another is a fill on the network of the output, and elsewhere a refund.
fn ended<'a>(
    request: &Request,
    facts: &'a Facts,
    (network, sent): (&str, Option<&Attempt>),
) -> Option<(&'a Deposit, Purpose, usize)> {
    let [input] = &request.order.inputs[..] else {
        return None;
    };
    let is_filled = request.order.output.chain_id == network;
    let purpose = match sent {
        Some(sent) => sent.purpose,
        None if is_filled => Purpose::Fill,
        None => Purpose::Refund,
    };
    let mut refunds = input.refunds.iter();
    let option = match purpose {
        Purpose::Fill => 0,
        Purpose::Refund => refunds.position(|refund| refund.chain_id == network)?,
        // It is settled with its fill.
        Purpose::Excess => return None,
    };
    let used = sent.and_then(|sent| sent.deposit);
    let is_used = |deposit: &&Deposit| used.is_none_or(|id| deposit.onchain_id == id);
    let deposit = facts.standing().find(is_used)?;
    Some((deposit, purpose, option))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alloy::primitives::U256;

    use super::*;
    use crate::{
        request::{
            fact::{Sent, Standing},
            fixtures::{self, USDC, USER},
        },
        sign::raw::RawKey,
        store::{Batch, memory::MemoryStore},
    };

    /// The key of [`USER`], whom the order names as its solver.
    const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

    fn deposit(number: u8) -> Deposit {
        Deposit {
            onchain_id: B256::repeat_byte(number),
            network: "origin".into(),
            transaction: format!("0xd{number}"),
            depository: USER.into(),
            depositor: USER.into(),
            currency: USDC.into(),
            amount: U256::from(100_000_000),
            place: fixtures::place(u64::from(number)),
            standing: Standing::Final,
            together: 1,
            own: true,
            named_by_other: false,
        }
    }

    /// A payment of the solver's for the second deposit.
    fn sent(purpose: Purpose, (network, transaction): (&str, &str)) -> Attempt {
        Attempt {
            purpose,
            deposit: Some(B256::repeat_byte(2)),
            network: network.into(),
            transaction: transaction.into(),
            currency: USDC.into(),
            amount: U256::from(1),
            state: State::Confirmed(fixtures::place(9)),
        }
    }

    /// The claims of a daemon with this request, two deposits for it, and these payments.
    async fn claims(request: &Request, attempts: &[Attempt]) -> OutcomeClaims {
        let requests = Requests::new(Arc::new(MemoryStore::new()));
        requests.insert(request, Batch::new()).await.unwrap();
        let known = requests.record(&request.id, 1, Batch::new(), |facts| {
            facts.deposits = vec![deposit(1), deposit(2)];
            facts.attempts = attempts.to_vec();
        });
        known.await.unwrap();
        let keys = Keys {
            current: Arc::new(RawKey::parse(KEY).unwrap()),
            former: [].into(),
            family: vm::SETTLEMENT,
        };
        OutcomeClaims {
            requests,
            keys: Some(keys),
        }
    }

    #[tokio::test]
    async fn a_payment_is_claimed_for_what_it_was_sent_and_a_strangers_by_its_network() {
        let request = fixtures::request(1);
        let begun = Attempt {
            state: State::Broadcast,
            ..sent(Purpose::Fill, ("destination", "0xf4"))
        };
        let attempts = [
            sent(Purpose::Fill, ("destination", "0xf1")),
            sent(Purpose::Refund, ("origin", "0xf2")),
            begun,
        ];
        let claims = claims(&request, &attempts).await;
        // Route, number of the deposit, and whether the solver signs.
        for (network, transaction, expected) in [
            ("destination", "0xF1", ("solver-fills", 2, true)),
            ("origin", "0xf2", ("solver-refunds", 2, true)),
            ("destination", "0xf4", ("solver-fills", 2, false)),
            ("destination", "0xf2", ("solver-fills", 1, false)),
            ("origin", "0xaa", ("solver-refunds", 1, false)),
        ] {
            let found = claims.of(&request.order_id, (network, transaction)).await;
            let found = found.unwrap().unwrap();
            let (route, number, signed) = expected;
            assert_eq!(found.route, route, "{transaction}");
            assert_eq!(found.signature.is_some(), signed, "{transaction}");
            let used = &found.body["inputs"][0]["onchainId"];
            assert_eq!(*used, json!(B256::repeat_byte(number)), "{transaction}");
            let paid = match route {
                "solver-fills" => &found.body["fill"],
                _ => &found.body["refunds"][0],
            };
            assert_eq!(paid["transactionId"], transaction);
        }
    }

    #[tokio::test]
    async fn what_is_no_outcome_of_an_order_here_is_not_claimed() {
        let request = fixtures::request(1);
        let excess = sent(Purpose::Excess, ("origin", "0xf3"));
        let claims = claims(&request, &[excess]).await;
        let sent = Sent {
            network: "origin".into(),
            transaction: "0xee".into(),
            state: State::Broadcast,
        };
        let known = claims
            .requests
            .record(&request.id, 2, Batch::new(), |facts| {
                facts.own = vec![sent.clone()];
            });
        known.await.unwrap();
        let (own, other) = (request.order_id, B256::ZERO);
        for (order, network, transaction) in [
            (own, "origin", "0xf3"),
            (own, "origin", "0xd1"),
            (own, "origin", "0xee"),
            (own, "elsewhere", "0xaa"),
            (other, "destination", "0xaa"),
        ] {
            let found = claims.of(&order, (network, transaction)).await.unwrap();
            assert_eq!(found, None, "{order} {network} {transaction}");
        }
    }

    #[tokio::test]
    async fn an_oracle_only_signs_no_claim() {
        let request = fixtures::request(1);
        let fill = sent(Purpose::Fill, ("destination", "0xf1"));
        let claims = OutcomeClaims {
            keys: None,
            ..claims(&request, &[fill]).await
        };
        let found = claims.of(&request.order_id, ("destination", "0xf1")).await;
        assert_eq!(found.unwrap().unwrap().signature, None);
    }
}
