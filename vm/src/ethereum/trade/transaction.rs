//! Transactions as bytes: EIP-1559 (type 2), or EIP-7702 (type 4) with authorizations. Pure.

use alloy::{
    consensus::{SignableTransaction, TxEip1559, TxEip7702, transaction::RlpEcdsaEncodableTx},
    eips::eip7702::{Authorization as Delegation, SignedAuthorization},
    primitives::{Signature, address},
    sol_types::{SolCall, SolValue},
};

use super::{Limits, TransactionCodec, Unsealed};
use crate::{
    CodecError,
    ethereum::{
        abi::{ApprovalProxy, DataFees},
        address::evm,
    },
    protocol::signature::recover_wallet,
    trade::{Authorization, Call, Unfit},
    types::{Address, B256, Bytes, EvmAddress, U256},
};

/// The OP stack's GasPriceOracle.
const DATA_FEES: EvmAddress = address!("420000000000000000000000000000000000000F");
/// Bytes that a signature adds, at most.
const SIGNATURE: usize = 72;

/// Checks, encodes and decodes transactions of types 2 and 4.
pub struct Transactions;

impl TransactionCodec for Transactions {
    fn admit(&self, chain: u64, draft: &Unsealed, limits: &Limits) -> Result<Vec<Address>, Unfit> {
        if draft.gas > limits.gas {
            let (work, most) = (draft.gas, limits.gas);
            return Err(Unfit::Work { work, most });
        }
        if !(draft.authorizations.is_empty() || limits.authorizations) {
            return Err(Unfit::Type);
        }
        let odd = |given: &Authorization| given.y_parity > 1;
        if let Some(at) = draft.authorizations.iter().position(odd) {
            return Err(Unfit::Authorization(at, "yParity: expected 0 or 1".into()));
        }
        let (bytes, most) = (unsigned(chain, draft)?.len() + SIGNATURE, limits.bytes);
        if bytes > most {
            return Err(Unfit::Large { bytes, most });
        }
        let sender = evm(&draft.call.from)?;
        let given = draft.authorizations.iter().enumerate();
        let authorities = given.map(|(at, given)| {
            let wrong = |why: &str| Unfit::Authorization(at, why.into());
            if ![0, chain].contains(&given.chain_id) {
                return Err(wrong("it is for another chain"));
            }
            let authority = authority(given).map_err(|error| wrong(&error.0))?;
            if authority == sender {
                return Err(wrong("it is the sender's own"));
            }
            Ok(Address::from_parts(&format!("{authority:#x}"), authority.0))
        });
        authorities.collect()
    }

    fn data_fee(
        &self,
        chain: u64,
        draft: &Unsealed,
        contract: Option<&Address>,
    ) -> Result<Call, CodecError> {
        let usual = || Address::from_parts(&format!("{DATA_FEES:#x}"), DATA_FEES.0);
        let contract = contract.cloned().unwrap_or_else(usual);
        evm(&contract)?;
        let question = DataFees::getL1FeeCall {
            transaction: unsigned(chain, draft)?.into(),
        };
        Ok(Call {
            from: draft.call.from.clone(),
            to: contract,
            data: question.abi_encode().into(),
            value: U256::ZERO,
        })
    }

    fn routing(&self, proxy: &Address, router: &Address) -> Result<(Call, Bytes), CodecError> {
        evm(proxy)?;
        let question = Call {
            from: proxy.clone(),
            to: proxy.clone(),
            data: ApprovalProxy::routerCall {}.abi_encode().into(),
            value: U256::ZERO,
        };
        Ok((question, evm(router)?.abi_encode().into()))
    }

    fn digest(&self, chain: u64, draft: &Unsealed) -> Result<B256, CodecError> {
        Ok(match draft.authorizations.is_empty() {
            true => plain(chain, draft)?.signature_hash(),
            false => delegating(chain, draft)?.signature_hash(),
        })
    }

    fn seal(
        &self,
        chain: u64,
        draft: &Unsealed,
        signature: &[u8; 65],
    ) -> Result<(Bytes, B256), CodecError> {
        let no_signature = || CodecError("Not a signature".into());
        let signer = recover_wallet(signature, &self.digest(chain, draft)?);
        let signer = signer.map_err(|_| no_signature())?;
        let signature = Signature::from_raw_array(signature).map_err(|_| no_signature())?;
        if signature.normalize_s().is_some() {
            return Err(CodecError("A signature that nodes refuse: high s".into()));
        }
        if signer != evm(&draft.call.from)? {
            return Err(CodecError("Signed by another account".into()));
        }
        Ok(match draft.authorizations.is_empty() {
            true => encoded(plain(chain, draft)?, signature),
            false => encoded(delegating(chain, draft)?, signature),
        })
    }
}

/// What goes over the wire, but for the signature.
fn unsigned(chain: u64, draft: &Unsealed) -> Result<Vec<u8>, CodecError> {
    let mut raw = Vec::new();
    match draft.authorizations.is_empty() {
        true => plain(chain, draft)?.encode_for_signing(&mut raw),
        false => delegating(chain, draft)?.encode_for_signing(&mut raw),
    }
    Ok(raw)
}

/// Who signed an authorization, if the chain takes its signature.
fn authority(given: &Authorization) -> Result<EvmAddress, CodecError> {
    let signed = authorization(given)?;
    let signature = signed
        .signature()
        .map_err(|_| CodecError("not a signature".into()))?;
    if signature.normalize_s().is_some() {
        return Err(CodecError("its signature has a high s".into()));
    }
    recover_wallet(&signature.as_bytes(), &signed.inner().signature_hash())
        .map_err(|_| CodecError("not a signature".into()))
}

fn encoded<T>(transaction: T, signature: Signature) -> (Bytes, B256)
where
    T: SignableTransaction<Signature> + RlpEcdsaEncodableTx,
{
    let signed = transaction.into_signed(signature);
    let mut raw = Vec::new();
    signed.eip2718_encode(&mut raw);
    (raw.into(), *signed.hash())
}

fn plain(chain: u64, draft: &Unsealed) -> Result<TxEip1559, CodecError> {
    check(draft)?;
    Ok(TxEip1559 {
        chain_id: chain,
        nonce: draft.nonce,
        gas_limit: draft.gas,
        max_fee_per_gas: draft.max_fee,
        max_priority_fee_per_gas: draft.max_priority_fee,
        to: evm(&draft.call.to)?.into(),
        value: draft.call.value,
        access_list: Default::default(),
        input: draft.call.data.clone(),
    })
}

fn delegating(chain: u64, draft: &Unsealed) -> Result<TxEip7702, CodecError> {
    check(draft)?;
    let authorizations = draft.authorizations.iter().map(authorization);
    Ok(TxEip7702 {
        chain_id: chain,
        nonce: draft.nonce,
        gas_limit: draft.gas,
        max_fee_per_gas: draft.max_fee,
        max_priority_fee_per_gas: draft.max_priority_fee,
        to: evm(&draft.call.to)?,
        value: draft.call.value,
        access_list: Default::default(),
        authorization_list: authorizations.collect::<Result<_, _>>()?,
        input: draft.call.data.clone(),
    })
}

/// What no node takes would block its nonce.
fn check(draft: &Unsealed) -> Result<(), CodecError> {
    if draft.max_priority_fee > draft.max_fee {
        return Err(CodecError("The tip is above the whole fee".into()));
    }
    Ok(())
}

fn authorization(given: &Authorization) -> Result<SignedAuthorization, CodecError> {
    let delegation = Delegation {
        chain_id: U256::from(given.chain_id),
        address: evm(&given.address)?,
        nonce: given.nonce,
    };
    if given.y_parity > 1 {
        return Err(CodecError("yParity: expected 0 or 1".into()));
    }
    let number = |word: B256| U256::from_be_bytes(word.0);
    Ok(SignedAuthorization::new_unchecked(
        delegation,
        given.y_parity,
        number(given.r),
        number(given.s),
    ))
}

#[cfg(test)]
mod tests;
