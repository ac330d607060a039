//! Deposit address triggers: the statement of a solver's oracle about a payment to a deposit address (guide: protocol
//! 9.2). Pure; the fields have the wire's order.

use alloy::{primitives::keccak256, sol_types::SolValue};
use serde::{Deserialize, Serialize};

use super::{json, request::word, text};
use crate::{
    family::CodecError,
    types::{B256, Bytes, U256},
};

mod abi {
    alloy::sol! {
        struct Input { string vmType; string chainId; bytes currency; uint256 amount; }
        struct DerivationFields {
            string inputVmType; string outputVmType; string outputChainId; bytes outputCurrency;
            bytes outputRecipient; address solver; address pricingOracle; bytes depositor;
            bytes refundRecipient; uint256 priceImpactBps;
        }
        struct Currency { string chainId; bytes currency; }
        struct Price {
            uint256 usdPrice; uint8 usdPriceDecimals; uint8 currencyDecimals; uint256 expiration;
        }
    }
}

/// A payment that becomes an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    pub input: Input,
    pub derivation_fields: DerivationFields,
    pub order_id: String,
    #[serde(with = "json::text")]
    pub nonce: U256,
    pub currencies: Vec<Currency>,
    pub prices: Vec<Price>,
    #[serde(with = "json::bytes")]
    pub extra_data: Bytes,
}

/// The payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    pub vm_type: String,
    pub chain_id: String,
    #[serde(with = "json::bytes")]
    pub currency: Bytes,
    #[serde(with = "json::text")]
    pub amount: U256,
}

/// The fields from which the deposit address is derived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DerivationFields {
    pub input_vm_type: String,
    pub output_vm_type: String,
    pub output_chain_id: String,
    #[serde(with = "json::bytes")]
    pub output_currency: Bytes,
    #[serde(with = "json::bytes")]
    pub output_recipient: Bytes,
    pub solver: String,
    pub pricing_oracle: String,
    #[serde(with = "json::bytes")]
    pub depositor: Bytes,
    #[serde(with = "json::bytes")]
    pub refund_recipient: Bytes,
    #[serde(with = "json::text")]
    pub price_impact_bps: U256,
}

/// The currency of a price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Currency {
    pub chain_id: String,
    #[serde(with = "json::bytes")]
    pub currency: Bytes,
}

/// The price of one unit of a currency in US dollars.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    #[serde(with = "json::text")]
    pub usd_price: U256,
    #[serde(deserialize_with = "json::text::deserialize")]
    pub usd_price_decimals: u8,
    #[serde(deserialize_with = "json::text::deserialize")]
    pub currency_decimals: u8,
    /// Unix seconds.
    #[serde(with = "json::text")]
    pub expiration: U256,
}

impl Trigger {
    /// `keccak256(abi.encode(input, derivationFields, orderId, nonce, currencies, prices,
    /// extraData))`.
    pub fn hash(&self) -> Result<B256, CodecError> {
        let parameters = (
            self.input.abi(),
            self.derivation_fields.abi()?,
            word(&self.order_id)?,
            self.nonce,
            self.currencies
                .iter()
                .map(Currency::abi)
                .collect::<Vec<_>>(),
            self.prices.iter().map(Price::abi).collect::<Vec<_>>(),
            self.extra_data.clone(),
        );
        Ok(keccak256(parameters.abi_encode_params()))
    }
}

impl Input {
    fn abi(&self) -> abi::Input {
        abi::Input {
            vmType: self.vm_type.clone(),
            chainId: self.chain_id.clone(),
            currency: self.currency.clone(),
            amount: self.amount,
        }
    }
}

impl DerivationFields {
    fn abi(&self) -> Result<abi::DerivationFields, CodecError> {
        Ok(abi::DerivationFields {
            inputVmType: self.input_vm_type.clone(),
            outputVmType: self.output_vm_type.clone(),
            outputChainId: self.output_chain_id.clone(),
            outputCurrency: self.output_currency.clone(),
            outputRecipient: self.output_recipient.clone(),
            solver: text::evm_address(&self.solver)?,
            pricingOracle: text::evm_address(&self.pricing_oracle)?,
            depositor: self.depositor.clone(),
            refundRecipient: self.refund_recipient.clone(),
            priceImpactBps: self.price_impact_bps,
        })
    }
}

impl Currency {
    fn abi(&self) -> abi::Currency {
        abi::Currency {
            chainId: self.chain_id.clone(),
            currency: self.currency.clone(),
        }
    }
}

impl Price {
    fn abi(&self) -> abi::Price {
        abi::Price {
            usdPrice: self.usd_price,
            usdPriceDecimals: self.usd_price_decimals,
            currencyDecimals: self.currency_decimals,
            expiration: self.expiration,
        }
    }
}
