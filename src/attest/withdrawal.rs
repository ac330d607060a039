//! Withdrawals from a depository, and the hub's balance for them (guide: protocol 8.5). Pure: no I/O, no clock.

use alloy::primitives::keccak256;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use vm::{
    Address, Amount, B256, Bytes, ChainId, ChainSpec, CodecError, EvmAddress, Family, Receipt,
    TxRef, U256, WithdrawalInfo,
    protocol::{
        hub::{WithdrawalAccount, alias, token_id},
        request::{PayloadParams, PayloadRequest, WithdrawRequest},
        signature::{eip191, recover_wallet, signature_hex},
        text,
    },
};

use super::{
    Refusal,
    claim::{Families, malformed},
    execution::Escrow,
};

/// The owner and purpose of a withdrawal address, as the caller wrote them.
#[derive(Clone, Copy, Debug)]
pub struct AddressRequest<'a> {
    /// The path of these fields in the body, and the name of the nonce there, for refusals.
    pub path: (&'static str, &'static str),
    /// The hub's name.
    pub settlement: &'a str,
    /// The chain's primary depository where none is named.
    pub depository: Option<&'a str>,
    pub currency: &'a str,
    pub withdrawer: &'a str,
    pub withdrawer_chain: &'a str,
    pub recipient: &'a str,
    pub nonce: &'a str,
}

/// An [`AddressRequest`] that the families of its chains have parsed.
#[derive(Clone, Debug)]
pub struct Owned {
    /// Of the depository.
    pub chain: ChainId,
    pub currency: Address,
    pub recipient: Address,
    pub withdrawer: Address,
    pub withdrawer_family: &'static Family,
    pub depository: Address,
    /// The withdrawer's hub account.
    pub owner: EvmAddress,
    /// The hub account that holds the money until the withdrawal ends.
    pub address: EvmAddress,
    pub token: U256,
    pub nonce: B256,
    /// Whether the withdrawal nonce commits to all of the above: see [`WithdrawalAccount::bound_nonce`].
    pub is_bound: bool,
}

impl Owned {
    /// Parses a request for a withdrawal from a depository of `spec`.
    pub fn new(
        spec: &ChainSpec,
        request: &AddressRequest<'_>,
        families: Families<'_>,
    ) -> Result<Self, Refusal> {
        let (path, nonce_field) = request.path;
        let wrong = |field: &str, why: CodecError| malformed(&format!("{path}{field}"), why);
        let depository = depository_of(spec, request.depository)?.clone();
        let chain = request.withdrawer_chain;
        let family = families(chain).ok_or_else(|| Refusal::ChainNotAvailable(chain.into()))?;
        let own = |text| spec.family.address(text);
        let currency = own(request.currency).map_err(|e| wrong("currency", e))?;
        let recipient = own(request.recipient).map_err(|e| wrong("recipient", e))?;
        let withdrawer = family
            .address(request.withdrawer)
            .map_err(|e| wrong("withdrawer", e))?;
        let nonce = text::number(request.nonce).map_err(|e| wrong(nonce_field, e))?;
        let owner = alias(&ChainId::new(chain), &withdrawer);
        let account = WithdrawalAccount {
            chain: &spec.id,
            depository: &depository,
            currency: &currency,
            recipient: &recipient,
            owner,
            nonce,
        };
        let address = account.address();
        let is_bound = account.bound_nonce(request.settlement) == nonce;
        Ok(Self {
            chain: spec.id.clone(),
            is_bound,
            token: token_id(&spec.id, &currency),
            currency,
            recipient,
            withdrawer,
            withdrawer_family: family,
            depository,
            owner,
            address,
            nonce: nonce.into(),
        })
    }

    /// The escrow of `amount` at the withdrawal address.
    pub fn escrow(&self, amount: Amount) -> Escrow {
        Escrow {
            address: self.address,
            owner: self.owner,
            token: self.token,
            amount,
        }
    }

    /// Refuses an initiation without the withdrawer's signature: personal_sign over the sha256 of the *text* of
    /// keccak(owner ++ amount ++ nonce).
    pub fn check_signature(&self, amount: Amount, signature: &str) -> Result<(), Refusal> {
        if self.withdrawer_family.name != vm::SETTLEMENT.name {
            return Err(Refusal::OwnerUnsupported);
        }
        let invalid = || Refusal::OwnerSignature;
        let text = keccak256(self.packed(amount)).to_string();
        let message = Sha256::digest(text);
        let bytes = signature_hex(signature).map_err(|_| invalid())?;
        let signer = recover_wallet(&bytes, &eip191(&message)).map_err(|_| invalid())?;
        if signer.as_slice() == self.withdrawer.bytes() {
            Ok(())
        } else {
            Err(invalid())
        }
    }

    /// Refuses a withdrawal nonce that does not commit to the withdrawal: the withdrawer's signature covers only
    /// account, amount and that number, so others could use it for another withdrawal.
    pub fn check_bound(&self) -> Result<(), Refusal> {
        self.is_bound.then_some(()).ok_or(Refusal::UnboundNonce)
    }

    /// `0x` hex of withdrawal address, amount and withdrawal nonce, packed: proves which amount the address holds for
    /// which withdrawal.
    pub fn proof(&self, amount: Amount) -> String {
        let bytes = [
            self.address.as_slice(),
            &amount.to_be_bytes::<32>(),
            self.nonce.as_slice(),
        ];
        alloy::hex::encode_prefixed(bytes.concat())
    }

    fn packed(&self, amount: Amount) -> Vec<u8> {
        let amount = amount.to_be_bytes::<32>();
        [self.owner.as_slice(), &amount, self.nonce.as_slice()].concat()
    }
}

/// A withdrawal that its depository made, or may make.
#[derive(Clone, Debug)]
pub struct Withdrawal {
    pub id: B256,
    pub amount: Amount,
    /// What the allocator records of it.
    pub payload: Bytes,
    /// The id by which a transaction of the depository names it; `None` where its transactions name none.
    pub named: Option<B256>,
    /// See [`Spending::unproven`](vm::Spending::unproven).
    pub unproven: Option<Bytes>,
}

/// Parses an encoded withdrawal. Refuses one that is not of `owned`, and one whose execution would not prove its
/// payment.
pub fn read(spec: &ChainSpec, encoded: &Bytes, owned: &Owned) -> Result<Withdrawal, Refusal> {
    let path = "body/withdrawal";
    let info = described(spec, encoded, path)?;
    let same = |text: &Result<String, CodecError>, wanted: &Address, field| {
        let found = text.clone().and_then(|text| spec.family.address(&text));
        if found.map_err(|why| malformed(path, why))? == *wanted {
            return Ok(());
        }
        Err(Refusal::WithdrawalMismatch { field })
    };
    info.sole.clone().map_err(|why| malformed(path, why))?;
    same(&info.currency, &owned.currency, "currency")?;
    same(&info.recipient, &owned.recipient, "recipient")?;
    parsed(spec, encoded, info, (owned, path))
}

/// Parses the withdrawal that the allocator recorded for the request of `owned`. Refuses one whose execution would not
/// prove its payment, or that pays out of another depository. What it pays, and to whom, is the allocator's to say.
pub fn recorded(spec: &ChainSpec, encoded: &Bytes, owned: &Owned) -> Result<Withdrawal, Refusal> {
    let info = described(spec, encoded, RECORDED)?;
    parsed(spec, encoded, info, (owned, RECORDED))
}

/// The encoding by which the status of a recorded withdrawal is read, and the id by which a transaction of the
/// depository names it, if one does. Without the allocator's signatures.
pub fn unsigned(spec: &ChainSpec, payload: &Bytes) -> Result<(Bytes, Option<B256>), Refusal> {
    if let Some(codec) = spec.family.payloads {
        let encoded = codec.unsigned(payload);
        let encoded = encoded.map_err(|why| malformed(RECORDED, why))?;
        return Ok((encoded.into(), None));
    }
    let info = described(spec, payload, RECORDED)?;
    Ok((payload.clone(), Some(id(info.id, RECORDED)?)))
}

/// Refuses a withdraw request of which nobody could say how it ended: the hub takes its amount, and were it not executed,
/// nothing would give that back.
pub fn check_request(spec: &ChainSpec, request: &WithdrawRequest) -> Result<(), Refusal> {
    let codec = spec.family.payloads;
    let checked = codec.map_or(Ok(()), |codec| codec.check_request(&request.data));
    checked.map_err(|why| malformed("body/additionalData", why))
}

/// Where a withdrawal is that the allocator recorded, for refusals.
pub const RECORDED: &str = "the allocator's withdrawal";

fn described(spec: &ChainSpec, encoded: &Bytes, path: &str) -> Result<WithdrawalInfo, Refusal> {
    let codec = spec
        .family
        .withdrawals
        .ok_or_else(|| Refusal::WithdrawalsUnsupported(spec.id.as_str().into()))?;
    let withdrawal = codec.decode(encoded);
    Ok(codec.describe(&withdrawal.map_err(|why| malformed(path, why))?))
}

fn id(text: Result<String, CodecError>, path: &str) -> Result<B256, Refusal> {
    let id = text.map_err(|why| malformed(path, why))?;
    let id = id.to_lowercase().parse();
    id.map_err(|_| malformed(path, "its id is not 32 bytes"))
}

fn parsed(
    spec: &ChainSpec,
    encoded: &Bytes,
    info: WithdrawalInfo,
    (owned, path): (&Owned, &str),
) -> Result<Withdrawal, Refusal> {
    let unreadable = |why: CodecError| malformed(path, why);
    info.sole.map_err(unreadable)?;
    let amount = info.amount.and_then(|text| text::number(&text));
    let amount = amount.map_err(unreadable)?;
    if amount.is_zero() {
        return Err(Refusal::ZeroWithdrawal);
    }
    let id = id(info.id, path)?;
    let Some(spending) = info.spending else {
        return Ok(Withdrawal {
            id,
            amount,
            payload: encoded.clone(),
            named: Some(id),
            unproven: None,
        });
    };
    let payer = spec.family.address(&spending.payer).map_err(unreadable)?;
    if payer != owned.depository {
        let field = "depository";
        return Err(Refusal::WithdrawalMismatch { field });
    }
    Ok(Withdrawal {
        id,
        amount,
        payload: spending.payload,
        named: None,
        unproven: spending.unproven,
    })
}

/// The id under which the allocator records the withdrawal of `amount` for `owned`: the hash of its payload
/// parameters (guide: protocol 8.2). The spender is the owner's hub account. `additional` is by family name.
pub fn payload_id(
    spec: &ChainSpec,
    owned: &Owned,
    amount: Amount,
    additional: Option<&Map<String, Value>>,
) -> Result<B256, Refusal> {
    let request = payload_request(spec, owned, amount, additional);
    let params = payload_params(spec, &request);
    let message = params.and_then(|params| params.message());
    let message = message.map_err(|why| malformed("body/withdrawalAddressRequest", why))?;
    Ok(message.payload_id())
}

/// Refuses a depository of whose withdrawals nobody says how they ended: nothing is told of them, and no balance is set
/// apart for them.
pub fn check_withdraws(spec: &ChainSpec, depository: &Address) -> Result<(), Refusal> {
    match spec.family.withdraws_from {
        Some(withdraws) if !withdraws(depository) => {
            let what = format!("{} from depository {}", spec.id, depository.text());
            Err(Refusal::WithdrawalsUnsupported(what.into()))
        }
        _ => Ok(()),
    }
}

/// What the allocator is to be told of outputs that no signature covers: see
/// [`Family::unproven`](vm::Family::unproven).
pub fn unproven(spec: &ChainSpec, request: &PayloadRequest) -> Result<Option<Bytes>, Refusal> {
    let said = spec.family.unproven.map(|said| said(request)).transpose();
    let said = said.map_err(|why| malformed("body/additionalData", why))?;
    Ok(said.flatten())
}

/// The payload parameters of a withdrawal, in the spelling that the allocator hashes.
pub fn payload_params(
    spec: &ChainSpec,
    request: &PayloadRequest,
) -> Result<PayloadParams, CodecError> {
    let unsupported = || {
        CodecError(format!(
            "Withdrawals on chain {} are not supported",
            spec.id
        ))
    };
    let codec = spec.family.withdrawals.ok_or_else(unsupported)?;
    codec.normalize_payload(request)
}

/// Refuses what the allocator is not to be told: it would pay another currency, or nobody could say how it ended.
pub fn check_payload(spec: &ChainSpec, request: &PayloadRequest) -> Result<(), Refusal> {
    let check = spec.family.check_payload;
    let checked = check.map_or(Ok(()), |check| check(request));
    checked.map_err(|why| malformed("body/additionalData", why))
}

/// What the allocator is told of the withdrawal of `amount` for `owned`, as its family reads it. `additional` is by
/// family name.
pub fn payload_request(
    spec: &ChainSpec,
    owned: &Owned,
    amount: Amount,
    additional: Option<&Map<String, Value>>,
) -> PayloadRequest {
    PayloadRequest {
        chain_id: spec.hub_chain_id.to_string(),
        depository: owned.depository.text().to_owned(),
        currency: owned.currency.text().to_owned(),
        amount,
        spender: format!("{:#x}", owned.owner),
        recipient: owned.recipient.text().to_owned(),
        nonce: owned.nonce.to_string(),
        additional_data: additional.cloned(),
    }
}

/// Refuses a withdrawal that differs from the allocator's `recorded` one: a caller could claim that an invented one
/// expired, and get its money back.
pub fn check_recorded(withdrawal: &Withdrawal, recorded: &Bytes) -> Result<(), Refusal> {
    (withdrawal.payload == *recorded)
        .then_some(())
        .ok_or(Refusal::OtherWithdrawal)
}

/// Refuses a transaction in which `depository` executed nothing, or another withdrawal than the one of the id `named`.
pub fn check_shown(
    receipt: &Receipt,
    transaction: &TxRef,
    depository: &Address,
    named: Option<B256>,
) -> Result<(), Refusal> {
    let shown = receipt.executions.iter().any(|execution| {
        named.is_none_or(|id| execution.id == id) && execution.depository == *depository
    });
    shown
        .then_some(())
        .ok_or_else(|| Refusal::NotExecutedHere(transaction.text.as_ref().into()))
}

/// The named depository of a chain in the chains file's spelling, else the primary one. Refuses one whose withdrawals
/// are not read.
pub fn depository_of<'a>(spec: &'a ChainSpec, text: Option<&str>) -> Result<&'a Address, Refusal> {
    let Some(text) = text else {
        return depository(spec);
    };
    let unknown = || Refusal::OtherDepository {
        depository: text.into(),
        chain: spec.id.as_str().into(),
    };
    let named = spec.family.account(text).map_err(|_| unknown())?;
    let mut known = spec.depositories();
    let known = known.find(|known| **known == named).ok_or_else(unknown)?;
    if spec.family.sole_depository && spec.depository.as_ref() != Some(known) {
        let what = format!("{} from depository {}", spec.id, known.text());
        return Err(Refusal::WithdrawalsUnsupported(what.into()));
    }
    Ok(known)
}

/// The primary depository of a chain.
pub fn depository(spec: &ChainSpec) -> Result<&Address, Refusal> {
    spec.depository
        .as_ref()
        .ok_or_else(|| Refusal::NoDepository(spec.id.as_str().into()))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;
    use vm::{Execution, Spending, WithdrawalCodec, WithdrawalInfo};

    use super::*;
    use crate::attest::fixtures;

    /// Withdrawals that are transactions of the account which their encoding names.
    struct Spends;

    impl WithdrawalCodec for Spends {
        fn encode(&self, _: &Value) -> Result<Vec<u8>, CodecError> {
            Err(CodecError("not encoded here".into()))
        }

        fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
            Ok(json!(String::from_utf8_lossy(encoded)))
        }

        fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
            WithdrawalInfo {
                id: Ok(B256::repeat_byte(9).to_string()),
                currency: Ok(fixtures::NATIVE.into()),
                amount: Ok("500".into()),
                recipient: Ok(fixtures::RECIPIENT.into()),
                sole: Ok(()),
                spending: Some(Spending {
                    payer: withdrawal.as_str().unwrap().into(),
                    payload: Bytes::from_static(b"recorded"),
                    unproven: Some(Bytes::from_static(b"unproven")),
                }),
            }
        }

        fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
            let told = request.additional_data.clone();
            Err(CodecError(format!("told {told:?}")))
        }

        fn request_data(
            &self,
            _: &vm::protocol::request::WithdrawCall,
        ) -> Result<Vec<u8>, CodecError> {
            Ok(Vec::new())
        }
    }

    fn spending() -> ChainSpec {
        static FAMILY: LazyLock<Family> = LazyLock::new(|| Family {
            withdrawals: Some(&Spends),
            ..*fixtures::families("ethereum").unwrap()
        });
        ChainSpec {
            family: &FAMILY,
            ..fixtures::spec("ethereum")
        }
    }

    fn owned(spec: &ChainSpec) -> Owned {
        let request = AddressRequest {
            path: ("", ""),
            settlement: "relay",
            depository: None,
            currency: fixtures::NATIVE,
            withdrawer: fixtures::DEPOSITOR,
            withdrawer_chain: "ethereum",
            recipient: fixtures::RECIPIENT,
            nonce: "9",
        };
        Owned::new(spec, &request, &fixtures::families).unwrap()
    }

    #[test]
    fn withdrawal_that_spends_is_its_depositorys_and_what_the_allocator_recorded() {
        let spec = spending();
        let owned = owned(&spec);
        let encoded = |payer: &str| Bytes::copy_from_slice(payer.as_bytes());
        let own = encoded(owned.depository.text());
        let withdrawal = read(&spec, &own, &owned).unwrap();
        assert_eq!(withdrawal.named, None);
        assert_eq!(withdrawal.unproven, Some(Bytes::from_static(b"unproven")));
        assert_eq!(
            check_recorded(&withdrawal, &Bytes::from_static(b"recorded")),
            Ok(())
        );
        let other = check_recorded(&withdrawal, &own);
        assert_eq!(other, Err(Refusal::OtherWithdrawal));
        let foreign = read(&spec, &encoded(fixtures::RECIPIENT), &owned).unwrap_err();
        let mismatch = Refusal::WithdrawalMismatch {
            field: "depository",
        };
        assert_eq!(foreign, mismatch);
        let told = Map::from_iter([("family".to_owned(), json!("seven"))]);
        let refused = payload_id(&spec, &owned, U256::from(500), Some(&told));
        assert!(refused.unwrap_err().to_string().contains("seven"));
    }

    #[test]
    fn transaction_of_the_depository_shows_a_withdrawal_that_has_no_name_there() {
        let depository = fixtures::spec("ethereum").depository.unwrap();
        let (id, other) = (B256::repeat_byte(1), B256::repeat_byte(2));
        let tx = fixtures::tx(3);
        let shown = |by: Option<&Address>, named| {
            let mut read = fixtures::Read::new("ethereum", 3);
            let executed = by.cloned().map(|depository| Execution { depository, id });
            read.receipt().executions.extend(executed);
            check_shown(read.receipt(), &tx, &depository, named).is_ok()
        };
        let stranger = fixtures::families("ethereum")
            .unwrap()
            .address(fixtures::RECIPIENT)
            .unwrap();
        let table = [
            (Some(&depository), None, true),
            (Some(&depository), Some(id), true),
            (Some(&depository), Some(other), false),
            (Some(&stranger), None, false),
            (None, None, false),
        ];
        for (by, named, wanted) in table {
            assert_eq!(shown(by, named), wanted, "{by:?} {named:?}");
        }
    }

    /// The request that the reference recorded, and the id under which its allocator had a payload.
    #[test]
    fn payload_id_is_the_recorded_one() {
        let mut spec = fixtures::spec("ethereum");
        spec.hub_chain_id = U256::from(31337);
        let owner = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
        let request = AddressRequest {
            path: ("", ""),
            settlement: "relay",
            depository: None,
            currency: fixtures::NATIVE,
            withdrawer: owner,
            withdrawer_chain: "ethereum",
            recipient: owner,
            nonce: "0xd6c146a2be83ca2a8e19e7f8bc3e8217ecedabce9b8b62313e6035ab4b3ad55f",
        };
        let owned = Owned::new(&spec, &request, &fixtures::families).unwrap();
        let id = payload_id(&spec, &owned, U256::from(100), None).unwrap();
        let recorded = "0x30b8ddf89f6dc78320deac8183f274b0e82adc60e1dbe66ea76d7a4c2b0b7217";
        assert_eq!(id.to_string(), recorded);
        assert_ne!(payload_id(&spec, &owned, U256::from(101), None), Ok(id));
    }
}
