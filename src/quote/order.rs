//! The order of a quote: what its id promises. Pure.

use alloy::primitives::U256;
use vm::{
    Address, CodecError, OrderCall,
    protocol::order::{
        Input, InputPayment, Order, Output, OutputPayment, Refund, VERSION, vouched_salt,
    },
};

use super::intent::Side;

/// Seconds from the quote to the deadline of its fill.
pub const LIFE: u64 = 604_800;
/// Seconds from there to the deadline of its refunds: what comes with the last block, or cannot be
/// given back at once, has days.
pub const GRACE: u64 = 604_800;

/// Seconds for which an exchange can be made at the limit that was quoted.
pub const SWAP_LIFE: u64 = 600;

/// A refund leaves at least one part in so many of what it gives back. A payment of dust is none, and
/// an honest refund stays possible until gas would take 99 % of the deposit.
const REFUND_PART: u64 = 100;
/// The least refund of anything: a single unit is nobody's refund.
const LEAST_REFUND: u64 = 2;

/// What an order is made of.
pub struct Promise<'a> {
    pub solver_chain: &'a str,
    pub solver: &'a Address,
    pub random: [u8; 16],
    pub paid: (&'a Side<'a>, U256),
    pub given: (&'a Side<'a>, U256),
    pub payments: &'a [Due],
    pub calls: &'a [OrderCall],
    pub refund_to: &'a Address,
    /// Unix seconds.
    pub now: u64,
}

/// One payment of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub to: Address,
    pub currency: Address,
    pub amount: U256,
    pub minimum: U256,
}

impl Promise<'_> {
    /// The order. Refunds are possible on both chains, on the destination in what the solver gives.
    pub fn order(&self) -> Result<Order, CodecError> {
        let ((paid, amount), (given, worth)) = (self.paid, self.given);
        let after = |seconds| {
            u32::try_from(self.now.saturating_add(seconds))
                .map_err(|_| CodecError("the deadline is above 32 bits".into()))
        };
        let (deadline, refund_by) = (after(LIFE)?, after(LIFE + GRACE)?);
        let mut refunds = vec![self.refund(paid, amount, refund_by)?];
        if paid.network.name != given.network.name {
            refunds.push(self.refund(given, worth, refund_by)?);
        }
        let payment = InputPayment {
            chain_id: paid.network.name.clone(),
            currency: paid.address.to_string(),
            amount: amount.to_string(),
            weight: "1".into(),
        };
        Ok(Order {
            version: VERSION.into(),
            solver_chain_id: self.solver_chain.to_owned(),
            solver: self.solver.to_string(),
            // The solver signs its claims, so that nobody else says what its payments are for.
            salt: vouched_salt(self.random).to_string(),
            inputs: vec![Input { payment, refunds }],
            output: Output {
                chain_id: given.network.name.clone(),
                payments: self.payments.iter().map(Due::payment).collect(),
                calls: self.calls()?,
                deadline,
                extra_data: extra_data(given)?,
            },
            fees: Vec::new(),
        })
    }

    fn refund(&self, side: &Side<'_>, of: U256, deadline: u32) -> Result<Refund, CodecError> {
        Ok(Refund {
            chain_id: side.network.name.clone(),
            recipient: self.refund_to.to_string(),
            currency: side.address.to_string(),
            minimum_amount: refund_minimum(of).to_string(),
            deadline,
            extra_data: extra_data(side)?,
        })
    }

    fn calls(&self) -> Result<Vec<String>, CodecError> {
        let orders = self.given.0.spec.family.orders;
        let calls = self.calls.iter().map(|call| {
            let orders = orders.ok_or_else(|| CodecError("the family has no calls".into()))?;
            Ok(alloy::hex::encode_prefixed(orders.encode_call(call)?))
        });
        calls.collect()
    }
}

impl Due {
    fn payment(&self) -> OutputPayment {
        OutputPayment {
            recipient: self.to.to_string(),
            currency: self.currency.to_string(),
            minimum_amount: self.minimum.to_string(),
            expected_amount: self.amount.to_string(),
        }
    }
}

/// What a refund of `amount` must leave; oracles scale it with what was deposited.
fn refund_minimum(amount: U256) -> U256 {
    let part = amount / U256::from(REFUND_PART);
    part.max(U256::from(LEAST_REFUND)).min(amount)
}

/// The chain's fill router, as orders name it; `0x` where there is none.
fn extra_data(side: &Side<'_>) -> Result<String, CodecError> {
    let Some((router, orders)) = router(side)?.zip(side.spec.family.orders) else {
        return Ok("0x".into());
    };
    Ok(alloy::hex::encode_prefixed(
        orders.encode_extra_data(&router)?,
    ))
}

/// The contract that makes fills of several payments or calls.
pub fn router(side: &Side<'_>) -> Result<Option<Address>, CodecError> {
    contract(side, side.network.fill_router.as_deref())
}

/// The contract that takes the solver's tokens for those fills.
pub fn proxy(side: &Side<'_>) -> Result<Option<Address>, CodecError> {
    contract(side, side.network.approval_proxy.as_deref())
}

fn contract(side: &Side<'_>, text: Option<&str>) -> Result<Option<Address>, CodecError> {
    text.map(|text| side.spec.family.address(text)).transpose()
}
