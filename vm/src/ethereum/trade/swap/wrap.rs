//! The native currency and its wrapped form, one for one (WETH9).

use alloy::{primitives::U256, sol, sol_types::SolCall};
use async_trait::async_trait;

use crate::{
    Address, CodecError, Family,
    trade::{
        Call, Draft, SwapDraft, SwapError, SwapOffer, SwapOrder, SwapSpec, SwapTerms, SwapVenue,
    },
};

sol! {
    function deposit();
    function withdraw(uint256 amount);
}

const NAME: &str = "wrap";

/// Gas units of either call, with a balance that was zero.
const GAS: u64 = 40_000;

/// Exchanges the native currency and its wrapped form one for one, through the wrapping contract.
pub struct Wrap {
    native: Address,
    wrapped: Address,
}

impl Wrap {
    /// `None` where the chain names no wrapped currency.
    pub fn open(spec: &SwapSpec, family: &Family) -> Result<Option<Self>, CodecError> {
        let Some(wrapped) = &spec.wrapped else {
            return Ok(None);
        };
        Ok(Some(Self {
            native: family.native()?,
            wrapped: family.address(wrapped)?,
        }))
    }

    /// Whether it is the native currency that goes in, not the wrapped one.
    fn wraps(&self, terms: &SwapTerms) -> Result<bool, SwapError> {
        let wraps = terms.input == self.native && terms.output == self.wrapped;
        let unwraps = terms.input == self.wrapped && terms.output == self.native;
        if !(wraps || unwraps) || terms.amount.is_zero() {
            return Err(SwapError::NoRoute);
        }
        Ok(wraps)
    }
}

#[async_trait]
impl SwapVenue for Wrap {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        self.wraps(terms)?;
        Ok(SwapOffer {
            source: NAME,
            terms: terms.clone(),
            input: terms.amount,
            output: terms.amount,
            work: GAS,
            route: Vec::new(),
        })
    }

    /// Pays nobody but the payer: the contract knows no recipient.
    async fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapDraft, SwapError> {
        let wraps = self.wraps(&offer.terms)?;
        if offer.source != NAME || [offer.input, offer.output] != [offer.terms.amount; 2] {
            return Err(SwapError::unavailable("another exchange's offer"));
        }
        if order.recipient != order.payer {
            let why = "the recipient of a wrap is who pays";
            return Err(SwapError::unavailable(why));
        }
        offer.within(order)?;
        let (data, value) = if wraps {
            (depositCall {}.abi_encode(), offer.input)
        } else {
            let amount = offer.input;
            (withdrawCall { amount }.abi_encode(), U256::ZERO)
        };
        Ok(SwapDraft {
            spender: None,
            draft: Draft::call(Call {
                from: order.payer.clone(),
                to: self.wrapped.clone(),
                data: data.into(),
                value,
            }),
        })
    }
}
