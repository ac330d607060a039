//! Orders that end at the hub: its executor exchanges a deposit there and requests the withdrawal of what the order
//! promises (guide: protocol 8.7). Pure: no I/O, no clock.

use vm::{
    Address, B256, Bytes, ChainSpec, U256,
    protocol::{
        hub::alias,
        message::{ExecuteAndWithdraw, Fee},
    },
};

use super::{
    Refusal,
    deposit::Message,
    execution,
    order::{FeeTerms, InputTerms, PaymentTerms, RefundTerms, Terms},
    refund,
    statement::Outcome,
    withdrawal,
};

/// The position of the fee that pays for a refund's gas; a fill pays all others.
const REFUND_FEE: usize = 1;

/// An order that the executor can end.
#[derive(Clone, Copy, Debug)]
pub struct Sole<'a> {
    pub terms: &'a Terms,
    pub input: &'a InputTerms,
    pub refund: &'a RefundTerms,
    pub payment: &'a PaymentTerms,
}

impl<'a> Sole<'a> {
    /// Refuses an order with more than one input, refund option or payment, with parts that the executor does not
    /// know, or whose fees are in another currency than its input.
    pub fn of(terms: &'a Terms) -> Result<Self, Refusal> {
        let refused = |why| Err(Refusal::NotAtHub(why));
        let [input] = &terms.inputs[..] else {
            return refused("Only single-input orders are allowed");
        };
        if input.weight != U256::ONE {
            return refused("Wrong weight for order input");
        }
        let [refund] = &input.refunds[..] else {
            return refused("Only single-refund options are allowed");
        };
        if refund.chain != input.chain || refund.currency != input.currency {
            return refused("Non-matching refund option");
        }
        let [payment] = &terms.output.payments[..] else {
            return refused("Only single-output payment orders are allowed");
        };
        // The executor would pay, and call nothing.
        if !terms.output.calls.is_empty() {
            return refused("Orders with calls are not allowed");
        }
        let own = |fee: &FeeTerms| {
            fee.currency_chain.as_str() == input.chain && fee.currency == input.currency
        };
        if !terms.fees.iter().all(own) {
            return refused("Fee currency must match the input currency");
        }
        Ok(Self {
            terms,
            input,
            refund,
            payment,
        })
    }

    /// The chain to which the executor withdraws.
    pub fn destination(&self, outcome: Outcome) -> &'a str {
        match outcome {
            Outcome::Fill => &self.terms.output.chain,
            Outcome::Refund => &self.refund.chain,
        }
    }

    /// The deposit `onchain` of a transaction's, which must be the order's.
    pub fn deposit<'m>(
        &self,
        messages: &'m [Message],
        onchain: &str,
    ) -> Result<&'m Message, Refusal> {
        if messages.is_empty() {
            return Err(Refusal::NothingAttested);
        }
        let mut all = messages.iter();
        let message = all.find(|message| {
            let id = message.onchain_id.to_string();
            id.eq_ignore_ascii_case(onchain)
        });
        let message = message.ok_or(Refusal::NoSuchDeposit)?;
        let deposit = &message.deposit;
        if *deposit.id != *self.terms.name() {
            return Err(Refusal::OtherDeposit);
        }
        if deposit.named_by_other {
            return Err(Refusal::NamedByOther(onchain.into()));
        }
        if message.chain.as_str() != self.input.chain {
            return Err(Refusal::NotAtHub(
                "Deposit chain id does not match order input chain id",
            ));
        }
        if deposit.currency != self.input.currency {
            return Err(Refusal::NotAtHub(
                "Deposit currency does not match order input currency",
            ));
        }
        Ok(message)
    }

    /// What the executor is asked for a deposit of the order; `destination` is the spec of that chain.
    pub fn request(
        &self,
        outcome: Outcome,
        message: &Message,
        destination: &ChainSpec,
        nonce: B256,
    ) -> Result<ExecuteAndWithdraw, Refusal> {
        let out = match outcome {
            Outcome::Fill => Out {
                currency: &self.payment.currency,
                minimum: self.payment.minimum,
                receiver: self.payment.recipient.clone(),
                deadline: self.terms.output.deadline,
            },
            Outcome::Refund => Out {
                currency: &self.refund.currency,
                minimum: self.refund.minimum,
                receiver: refund::recipient(0, self.refund, message)?,
                deadline: self.refund.deadline,
            },
        };
        let order_address = execution::order_account(message);
        let fees = self.terms.fees.iter().enumerate();
        let fees = fees.filter(|(at, _)| (*at == REFUND_FEE) == (outcome == Outcome::Refund));
        Ok(ExecuteAndWithdraw {
            in_chain_id: self.input.chain.clone(),
            in_currency: bytes(&self.input.currency),
            out_chain_id: self.destination(outcome).to_owned(),
            out_currency: bytes(out.currency),
            out_amount_minimum: out.minimum,
            depository: bytes(withdrawal::depository(destination)?),
            order_address: order_address.ok_or(Refusal::NoOrder)?,
            receiver: bytes(&out.receiver),
            data: Bytes::new(),
            fees: fees.map(|(_, fee)| paid(fee)).collect(),
            nonce,
            deadline: U256::from(out.deadline),
        })
    }
}

/// What leaves the hub.
struct Out<'a> {
    currency: &'a Address,
    minimum: U256,
    receiver: Address,
    deadline: u64,
}

fn paid(fee: &FeeTerms) -> Fee {
    Fee {
        recipient: alias(&fee.recipient_chain, &fee.recipient),
        amount: fee.amount,
    }
}

fn bytes(address: &Address) -> Bytes {
    Bytes::copy_from_slice(address.bytes())
}

#[cfg(test)]
mod tests {
    use vm::protocol::order::{Fee as OrderFee, Order};

    use super::*;
    use crate::attest::{
        deposit,
        fixtures::{self, Fixture, NATIVE, RECIPIENT, TOKEN},
    };

    type Change = fn(&mut Order);
    type Deposited = fn(&mut Message);

    fn fee(amount: &str) -> OrderFee {
        OrderFee {
            recipient_chain_id: "base".into(),
            recipient: RECIPIENT.into(),
            currency_chain_id: "ethereum".into(),
            currency: NATIVE.into(),
            amount: amount.into(),
        }
    }

    fn terms(change: Change) -> Terms {
        let fixture = Fixture::ordering(change);
        Terms::new(&fixture.order, &fixtures::families).unwrap()
    }

    fn refused(change: Change) -> Refusal {
        Sole::of(&terms(change)).map(|_| ()).unwrap_err()
    }

    #[test]
    fn only_orders_of_one_input_refund_and_payment_end_at_the_hub() {
        let cases: &[(Change, &str)] = &[
            (
                |order| order.inputs.push(order.inputs[0].clone()),
                "Only single-input orders are allowed",
            ),
            (
                |order| order.inputs[0].payment.weight = "2".into(),
                "Wrong weight for order input",
            ),
            (
                |order| order.inputs[0].refunds.clear(),
                "Only single-refund options are allowed",
            ),
            (
                |order| {
                    let refund = order.inputs[0].refunds[0].clone();
                    order.inputs[0].refunds.push(refund);
                },
                "Only single-refund options are allowed",
            ),
            (
                |order| order.inputs[0].refunds[0].chain_id = "base".into(),
                "Non-matching refund option",
            ),
            (
                |order| order.inputs[0].refunds[0].currency = TOKEN.into(),
                "Non-matching refund option",
            ),
            (
                |order| {
                    let payment = order.output.payments[0].clone();
                    order.output.payments.push(payment);
                },
                "Only single-output payment orders are allowed",
            ),
            (
                |order| {
                    order.fees.push(fee("1"));
                    order.fees[0].currency = TOKEN.into();
                },
                "Fee currency must match the input currency",
            ),
            (
                |order| {
                    order.fees.push(fee("1"));
                    order.fees[0].currency_chain_id = "base".into();
                },
                "Fee currency must match the input currency",
            ),
        ];
        for (change, why) in cases {
            assert_eq!(refused(*change).to_string(), *why);
        }
        let calling = fixtures::call(b"\x01", 0);
        let mut calls = terms(|_| {});
        calls.output.calls.push(calling.data);
        assert!(matches!(Sole::of(&calls), Err(Refusal::NotAtHub(_))));
        assert!(Sole::of(&terms(|_| {})).is_ok());
    }

    #[test]
    fn refunds_gas_is_the_second_fee_and_a_fill_pays_the_others() {
        let fees: Change = |order| {
            for amount in ["1", "2", "3"] {
                order.fees.push(fee(amount));
            }
        };
        let fixture = Fixture::ordering(fees);
        let terms = terms(fees);
        let sole = Sole::of(&terms).unwrap();
        let messages = deposit::settled(&fixture.deposits[0].seen()).unwrap();
        let request = |outcome, chain| {
            let spec = fixtures::spec(chain);
            sole.request(outcome, &messages[0], &spec, B256::repeat_byte(9))
                .unwrap()
        };
        let amounts = |request: &ExecuteAndWithdraw| -> Vec<U256> {
            request.fees.iter().map(|fee| fee.amount).collect()
        };
        let fill = request(Outcome::Fill, "base");
        assert_eq!(amounts(&fill), [U256::from(1), U256::from(3)]);
        assert_eq!(fill.out_chain_id, "base");
        assert_eq!(fill.deadline, U256::from(fixtures::DEADLINE));
        let refund = request(Outcome::Refund, "ethereum");
        assert_eq!(amounts(&refund), [U256::from(2)]);
        assert_eq!(refund.out_chain_id, "ethereum");
        assert_eq!(refund.deadline, U256::from(fixtures::REFUND_DEADLINE));
        assert_eq!(fill.order_address, refund.order_address);
    }

    /// Money that is sent to the zero address is nobody's.
    #[test]
    fn refund_to_the_native_currency_goes_to_the_depositor() {
        let native: Change = |order| order.inputs[0].refunds[0].recipient = NATIVE.into();
        let (fixture, terms) = (Fixture::ordering(native), terms(native));
        let messages = deposit::settled(&fixture.deposits[0].seen()).unwrap();
        let sole = Sole::of(&terms).unwrap();
        let spec = fixtures::spec("ethereum");
        let request = sole.request(Outcome::Refund, &messages[0], &spec, B256::ZERO);
        let depositor = messages[0].deposit.depositor.bytes().to_vec();
        assert_eq!(request.unwrap().receiver.to_vec(), depositor);
    }

    #[test]
    fn a_deposit_that_is_not_the_orders_is_refused() {
        let terms = terms(|_| {});
        let sole = Sole::of(&terms).unwrap();
        let refused = |change: Deposited| {
            let read = Fixture::new().deposits.remove(0);
            let mut messages = deposit::settled(&read.seen()).unwrap();
            let id = messages[0].onchain_id.to_string();
            change(&mut messages[0]);
            sole.deposit(&messages, &id).map(|_| ()).unwrap_err()
        };
        let table: &[(Deposited, &str)] = &[
            (
                |message| message.onchain_id = B256::ZERO,
                "Could not find corresponding deposit",
            ),
            (
                |message| message.deposit.id = B256::ZERO.to_string().into(),
                "Deposit does not reference order id",
            ),
            (
                |message| message.chain = vm::ChainId::new("base"),
                "Deposit chain id does not match order input chain id",
            ),
            (
                |message| message.deposit.currency = fixtures::address(TOKEN),
                "Deposit currency does not match order input currency",
            ),
        ];
        for (change, why) in table {
            assert_eq!(refused(*change).to_string(), *why);
        }
        let other: Deposited = |message| message.deposit.named_by_other = true;
        assert!(matches!(refused(other), Refusal::NamedByOther(_)));
        let none = sole.deposit(&[], "0x").map(|_| ());
        assert_eq!(none, Err(Refusal::NothingAttested));
    }
}
