//! Withdrawals of `hyperliquid-vm`: user-signed actions, ABI-encoded (guide: protocol 8.1). Pure.

use alloy::{hex, primitives::keccak256, sol_types::SolValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::address::ADDRESSES;
use crate::{
    CodecError, U256, WithdrawalCodec, WithdrawalInfo,
    protocol::{
        json,
        request::{PayloadParams, PayloadRequest, WithdrawCall, additional},
        text,
    },
};

const FAMILY: &str = "hyperliquid-vm";
/// The bytes of token id at the start of a currency; a perp dex' name may follow in ASCII.
const TOKEN_BYTES: usize = 16;
/// The dex of a token without a dex name.
const SPOT: &str = "spot";
const USD_SEND: &str = "HyperliquidTransaction:UsdSend(string hyperliquidChain,string destination,string amount,uint64 time)";
const SEND_ASSET: &str = "HyperliquidTransaction:SendAsset(string hyperliquidChain,string destination,string sourceDex,string destinationDex,string token,string amount,string fromSubAccount,uint64 nonce)";

mod abi {
    alloy::sol! {
        struct Withdrawal { uint8 txType; bytes parameters; }
        struct UsdSend { string hyperliquidChain; string destination; string amount; uint64 time; }
        struct SendAsset {
            string hyperliquidChain; string destination; string sourceDex; string destinationDex;
            string token; string amount; string fromSubAccount; uint64 nonce;
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawal {
    tx_type: u8,
    parameters: Action,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type")]
enum Action {
    UsdSend(UsdSend),
    SendAsset(SendAsset),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsdSend {
    hyperliquid_chain: String,
    destination: String,
    /// Decimal text in units of the asset.
    amount: String,
    /// Unix milliseconds.
    #[serde(with = "json::text")]
    time: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendAsset {
    hyperliquid_chain: String,
    destination: String,
    source_dex: String,
    destination_dex: String,
    /// `SYMBOL:0x<token id>`.
    token: String,
    amount: String,
    from_sub_account: String,
    #[serde(with = "json::text")]
    nonce: u64,
}

impl Action {
    fn tx_type(&self) -> u8 {
        match self {
            Self::UsdSend(_) => 0,
            Self::SendAsset(_) => 1,
        }
    }

    fn parameters(&self) -> Vec<u8> {
        match self {
            Self::UsdSend(send) => send.abi().abi_encode(),
            Self::SendAsset(send) => send.abi().abi_encode(),
        }
    }

    /// The EIP-712 struct hash of the action that the user signs.
    fn id(&self) -> [u8; 32] {
        let (kind, texts, last) = match self {
            Self::UsdSend(s) => {
                let texts = vec![&s.hyperliquid_chain, &s.destination, &s.amount];
                (USD_SEND, texts, s.time)
            }
            Self::SendAsset(s) => {
                let mut texts = vec![&s.hyperliquid_chain, &s.destination, &s.source_dex];
                texts.extend([&s.destination_dex, &s.token, &s.amount, &s.from_sub_account]);
                (SEND_ASSET, texts, s.nonce)
            }
        };
        let mut words = keccak256(kind).to_vec();
        texts.iter().for_each(|text| words.extend(keccak256(text)));
        words.extend(U256::from(last).to_be_bytes::<32>());
        keccak256(words).0
    }

    fn currency(&self) -> Result<String, CodecError> {
        let Self::SendAsset(send) = self else {
            return Ok(ADDRESSES.native.into());
        };
        if send.source_dex.is_empty() {
            return Ok(ADDRESSES.native.into());
        }
        let token = send
            .token
            .rsplit_once(':')
            .map(|(_, id)| id)
            .filter(|id| text::bytes(id).is_ok_and(|id| id.len() == TOKEN_BYTES))
            .ok_or_else(|| CodecError(format!("not a token: {:?}", text::short(&send.token))))?;
        let dex = match send.source_dex.as_str() {
            SPOT => "",
            dex => dex,
        };
        Ok(format!("{token}{}", hex::encode(dex)))
    }

    fn amount(&self) -> &str {
        match self {
            Self::UsdSend(send) => &send.amount,
            Self::SendAsset(send) => &send.amount,
        }
    }

    fn into_destination(self) -> String {
        match self {
            Self::UsdSend(send) => send.destination,
            Self::SendAsset(send) => send.destination,
        }
    }
}

impl UsdSend {
    fn abi(&self) -> abi::UsdSend {
        abi::UsdSend {
            hyperliquidChain: self.hyperliquid_chain.clone(),
            destination: self.destination.clone(),
            amount: self.amount.clone(),
            time: self.time,
        }
    }
}

impl SendAsset {
    fn abi(&self) -> abi::SendAsset {
        abi::SendAsset {
            hyperliquidChain: self.hyperliquid_chain.clone(),
            destination: self.destination.clone(),
            sourceDex: self.source_dex.clone(),
            destinationDex: self.destination_dex.clone(),
            token: self.token.clone(),
            amount: self.amount.clone(),
            fromSubAccount: self.from_sub_account.clone(),
            nonce: self.nonce,
        }
    }
}

impl From<abi::UsdSend> for Action {
    fn from(send: abi::UsdSend) -> Self {
        Self::UsdSend(UsdSend {
            hyperliquid_chain: send.hyperliquidChain,
            destination: send.destination,
            amount: send.amount,
            time: send.time,
        })
    }
}

impl From<abi::SendAsset> for Action {
    fn from(send: abi::SendAsset) -> Self {
        Self::SendAsset(SendAsset {
            hyperliquid_chain: send.hyperliquidChain,
            destination: send.destination,
            source_dex: send.sourceDex,
            destination_dex: send.destinationDex,
            token: send.token,
            amount: send.amount,
            from_sub_account: send.fromSubAccount,
            nonce: send.nonce,
        })
    }
}

/// Encodes and decodes withdrawals of `hyperliquid-vm`.
pub struct Withdrawals;

impl WithdrawalCodec for Withdrawals {
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        let withdrawal: Withdrawal = json::read(withdrawal)?;
        if withdrawal.tx_type != withdrawal.parameters.tx_type() {
            return Err(CodecError("txType and type name two actions".into()));
        }
        Ok(encoded(&withdrawal.parameters))
    }

    fn decode(&self, bytes: &[u8]) -> Result<Value, CodecError> {
        let action = abi::Withdrawal::abi_decode(bytes).and_then(|outer| {
            Ok(match outer.txType {
                0 => Some(abi::UsdSend::abi_decode(&outer.parameters)?.into()),
                1 => Some(abi::SendAsset::abi_decode(&outer.parameters)?.into()),
                _ => None,
            })
        });
        let parameters: Action = action
            .ok()
            .flatten()
            .filter(|action| encoded(action) == bytes)
            .ok_or_else(|| CodecError("not an encoded Hyperliquid action".into()))?;
        let tx_type = parameters.tx_type();
        json::write(&Withdrawal {
            tx_type,
            parameters,
        })
    }

    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        let action = match json::read::<Withdrawal>(withdrawal) {
            Ok(withdrawal) => withdrawal.parameters,
            Err(error) => return WithdrawalInfo::unreadable(&error),
        };
        WithdrawalInfo {
            id: Ok(hex::encode_prefixed(action.id())),
            currency: action.currency(),
            amount: units(action.amount()),
            recipient: Ok(action.into_destination()),
            sole: Ok(()),
            spending: None,
        }
    }

    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        let extra: PayloadExtra = additional(request.additional_data.as_ref(), FAMILY)?;
        let lower = |text: &str| text::bytes(text).map(hex::encode_prefixed);
        let currency = text::bytes(&request.currency)?;
        let (currency, data) = if request.currency == ADDRESSES.native {
            (String::new(), (extra.current_time,).abi_encode_params())
        } else {
            let dex = dex(&currency)?;
            let data = (extra.current_time, dex.clone(), dex).abi_encode_params();
            let symbol = extra
                .currency_hyperliquid_symbol
                .ok_or_else(|| CodecError(format!("Additional data is required for {FAMILY}")))?;
            (format!("{symbol}:{}", hex::encode_prefixed(currency)), data)
        };
        Ok(PayloadParams {
            depository: lower(&request.depository)?,
            currency,
            recipient: lower(&request.recipient)?,
            data: data.into(),
            ..request.plain()
        })
    }

    fn request_data(&self, request: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        let extra: RequestExtra = additional(request.additional_data.as_ref(), FAMILY)?;
        Ok(extra.nonce.abi_encode())
    }
}

/// The longest symbol of a token.
const LONGEST: usize = 32;

/// Refuses what is more than one symbol: behind a colon it would name another token than the request's.
pub fn check_payload(request: &PayloadRequest) -> Result<(), CodecError> {
    let extra: PayloadExtra = additional(request.additional_data.as_ref(), FAMILY)?;
    let symbol = extra.currency_hyperliquid_symbol.unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b':';
    let is_one = symbol.len() <= LONGEST && symbol.bytes().all(fits);
    is_one
        .then_some(())
        .ok_or_else(|| CodecError("currencyHyperliquidSymbol is no symbol".into()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PayloadExtra {
    currency_hyperliquid_symbol: Option<String>,
    /// Unix milliseconds.
    #[serde(deserialize_with = "json::text::deserialize")]
    current_time: u64,
}

#[derive(Deserialize)]
struct RequestExtra {
    #[serde(deserialize_with = "json::text::deserialize")]
    nonce: u64,
}

fn encoded(action: &Action) -> Vec<u8> {
    let outer = abi::Withdrawal {
        txType: action.tx_type(),
        parameters: action.parameters().into(),
    };
    outer.abi_encode()
}

/// The dex name after the token id, or spot.
fn dex(currency: &[u8]) -> Result<String, CodecError> {
    match currency.get(TOKEN_BYTES..) {
        Some([]) => Ok(SPOT.into()),
        Some(name) if name.is_ascii() => Ok(name.iter().copied().map(char::from).collect()),
        _ => Err(CodecError("not a Hyperliquid currency".into())),
    }
}

/// The digits of a decimal text without the point, so that its last decimal is the unit.
fn units(amount: &str) -> Result<String, CodecError> {
    let (integer, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(integer) || !digits(fraction) {
        return Err(CodecError(format!(
            "not an amount: {:?}",
            text::short(amount)
        )));
    }
    text::number(&amount.replace('.', "")).map(|amount| amount.to_string())
}
