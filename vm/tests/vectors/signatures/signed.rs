//! Signatures with the key of the settings file, and of key-management services.

use k256::ecdsa::SigningKey;
use serde_json::{Value, json};
use vm::{
    B256, Bytes, EvmAddress, U256,
    protocol::{
        message::{
            self, Authorization, Domain, ExecuteAndWithdraw, Execution, Fee, GenericMapping,
            Inclusion, PayloadParams, Trigger, TypedMessage,
        },
        signature::{Signature, account_of_spki},
    },
};

use crate::{
    harness::{Answer, Case, settings},
    wire::{bytes, field, number, said, word},
};

/// What the settings file says about the hub, and its signer.
struct Hub {
    hub: Value,
    key: SigningKey,
    signer: EvmAddress,
}

impl Hub {
    fn read() -> Result<Self, String> {
        let settings = settings("hub_config.json")?;
        let key = word(&settings, "signerPrivateKey")?;
        Ok(Self {
            key: SigningKey::from_slice(key.as_slice()).map_err(said)?,
            signer: account(&settings, "signerAddress")?,
            hub: settings.get("hub").cloned().ok_or("no hub")?,
        })
    }

    fn chain(&self, key: &str) -> Result<U256, String> {
        number(&self.hub, key)
    }

    fn contract(&self, key: &str) -> Result<EvmAddress, String> {
        account(&self.hub, key)
    }

    /// The signer's answer, its domain under `names` where the reference shows one.
    fn sign(
        &self,
        message: &impl TypedMessage,
        domain: &Domain,
        names: Option<(&str, &str)>,
    ) -> Answer {
        let digest = message.digest(domain);
        let made = self.key.sign_prehash_recoverable(digest.as_slice());
        let (signature, id) = made.map_err(said)?;
        let (r, s) = signature.split_bytes();
        let (r, s) = (B256::from_slice(&r), B256::from_slice(&s));
        let signature = Signature::from_scalars(r, s, id.is_y_odd()).map_err(said)?;
        if signature.recover(&digest) != Ok(self.signer) {
            return Err("another signer".into());
        }
        let mut answer = json!({
            "oracleSigner": lower(self.signer),
            "signature": signature.to_string(),
        });
        if let Some((chain, contract)) = names {
            answer[chain] = domain.chain().to_string().into();
            answer[contract] = lower(domain.contract()).into();
        }
        Ok(answer)
    }

    fn sign_execution(&self, execution: &Execution) -> Answer {
        let version = field(&self.hub, "oracleVersion")?;
        let chain = self.chain("evmChainId")?;
        let domain = Domain::oracle(version, chain, self.contract("oracleAddress")?);
        let names = ("oracleChainId", "oracleContract");
        self.sign(execution, &domain, Some(names))
    }

    fn sign_mapping(&self, mapping: &GenericMapping) -> Answer {
        let contract = self.contract("genericMappingAddress")?;
        let domain = Domain::generic_mapping(self.chain("evmChainId")?, contract);
        let names = ("genericMappingChainId", "genericMappingContract");
        self.sign(mapping, &domain, Some(names))
    }
}

fn account(of: &Value, key: &str) -> Result<EvmAddress, String> {
    message::address(field(of, key)?).map_err(said)
}

fn lower(account: EvmAddress) -> String {
    account.to_string().to_lowercase()
}

fn text(of: &Value, key: &str) -> Result<String, String> {
    field(of, key).map(str::to_owned)
}

fn list<'a>(of: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    let list = of.get(key).and_then(Value::as_array);
    list.ok_or_else(|| format!("no list {key}"))
}

/// The hub's chain id, which some messages carry as a number.
fn chain_number(of: &Value) -> Result<U256, String> {
    match of.get("chainId").and_then(Value::as_u64) {
        Some(number) => Ok(U256::from(number)),
        None => number(of, "chainId"),
    }
}

/// Our actions are bytes, and no caller sends one. Given a text that is no hex at all, the reference
/// puts `0x` in the place of its first two characters and signs the bytes of that text.
fn action(action: &Value) -> Result<Bytes, String> {
    let action = action.as_str().ok_or("an action that is no text")?;
    let Some(rest) = action.get(2..).filter(|_| !action.starts_with("0x")) else {
        return message::bytes(action).map_err(said);
    };
    if rest.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err("an action without 0x".into());
    }
    Ok(format!("0x{rest}").into_bytes().into())
}

pub fn read_execution(input: &Value) -> Result<Execution, String> {
    let actions = list(input, "actions")?.iter().map(action);
    Ok(Execution {
        idempotency_key: message::word(field(input, "idempotencyKey")?).map_err(said)?,
        actions: actions.collect::<Result<_, _>>()?,
    })
}

pub fn read_mapping(input: &Value) -> Result<GenericMapping, String> {
    let word = |key| message::word(field(input, key)?).map_err(said);
    Ok(GenericMapping {
        user: account(input, "user")?,
        id: word("id")?,
        data: bytes(input, "data")?,
        nonce: word("nonce")?,
    })
}

pub fn bad_input(case: &Case) -> Answer {
    match field(&case.input, "op")? {
        "execution" => execution(case),
        "mapping" => generic_mapping(case),
        other => Err(format!("no operation {other}")),
    }
}

pub fn execution(case: &Case) -> Answer {
    Hub::read()?.sign_execution(&read_execution(&case.input)?)
}

pub fn generic_mapping(case: &Case) -> Answer {
    Hub::read()?.sign_mapping(&read_mapping(&case.input)?)
}

pub fn payload_params(case: &Case) -> Answer {
    let (hub, input) = (Hub::read()?, &case.input);
    let contract = hub.contract("auroraAllocatorSpenderAddress")?;
    let domain = Domain::allocator_spender(hub.chain("auroraEvmChainId")?, contract);
    let params = PayloadParams {
        chain_id: chain_number(input)?,
        depository: text(input, "depository")?,
        currency: text(input, "currency")?,
        amount: number(input, "amount")?,
        spender: account(input, "spender")?,
        recipient: text(input, "recipient")?,
        data: bytes(input, "data")?,
        nonce: word(input, "nonce")?,
    };
    let names = ("allocatorSpenderChainId", "allocatorSpenderContract");
    hub.sign(&params, &domain, Some(names))
}

pub fn trigger(case: &Case) -> Answer {
    let (hub, input) = (Hub::read()?, &case.input);
    let trigger = Trigger {
        chain_id: chain_number(input)?,
        deposit_address_manager: account(input, "depositAddressManager")?,
        input_depository: bytes(input, "inputDepository")?,
        trigger_hash: word(input, "triggerHash")?,
    };
    hub.sign(&trigger, &Domain::trigger(hub.chain("evmChainId")?), None)
}

pub fn execute_and_withdraw(case: &Case) -> Answer {
    let (hub, input) = (Hub::read()?, &case.input);
    let contract = hub.contract("executorAddress")?;
    let domain = Domain::executor(hub.chain("evmChainId")?, contract);
    let fee = |fee: &Value| {
        Ok(Fee {
            recipient: account(fee, "recipient")?,
            amount: number(fee, "amount")?,
        })
    };
    let fees = list(input, "fees")?.iter().map(fee);
    let request = ExecuteAndWithdraw {
        in_chain_id: text(input, "inChainId")?,
        in_currency: bytes(input, "inCurrency")?,
        out_chain_id: text(input, "outChainId")?,
        out_currency: bytes(input, "outCurrency")?,
        out_amount_minimum: number(input, "outAmountMinimum")?,
        depository: bytes(input, "depository")?,
        order_address: account(input, "orderAddress")?,
        receiver: bytes(input, "receiver")?,
        data: bytes(input, "data")?,
        fees: fees.collect::<Result<_, String>>()?,
        nonce: word(input, "nonce")?,
        deadline: number(input, "deadline")?,
    };
    hub.sign(
        &request,
        &domain,
        Some(("executorChainId", "executorContract")),
    )
}

pub fn inclusion(case: &Case) -> Answer {
    let (hub, input) = (Hub::read()?, &case.input);
    let hash = |hash: &Value| message::word(hash.as_str().unwrap_or_default()).map_err(said);
    let hashes = list(input, "hashesToSign")?.iter().map(hash);
    let inclusion = Inclusion {
        chain_id: chain_number(input)?,
        allocator: account(input, "allocator")?,
        withdraw_request_hash: word(input, "withdrawRequestHash")?,
        hashes_to_sign: hashes.collect::<Result<_, _>>()?,
    };
    let domain = Domain::withdraw_request(hub.chain("evmChainId")?);
    hub.sign(&inclusion, &domain, None)
}

pub fn authorization(case: &Case) -> Answer {
    let (hub, input) = (Hub::read()?, &case.input);
    let contract = hub.contract("allocatorAddress")?;
    let domain = Domain::allocator(hub.chain("evmChainId")?, contract);
    let request = Authorization {
        chain_id: text(input, "chainId")?,
        depository: bytes(input, "depository")?,
        currency: bytes(input, "currency")?,
        amount: number(input, "amount")?,
        spender_chain_id: text(input, "spenderChainId")?,
        spender: bytes(input, "spender")?,
        receiver: bytes(input, "receiver")?,
        data: bytes(input, "data")?,
        nonce: word(input, "nonce")?,
    };
    let names = ("allocatorChainId", "allocatorContract");
    let mut answer = hub.sign(&request, &domain, Some(names))?;
    // The one domain whose chain is shown as a number.
    answer["allocatorChainId"] = u64::try_from(domain.chain()).map_err(said)?.into();
    Ok(answer)
}

pub fn kms(case: &Case) -> Answer {
    let input = &case.input;
    let signer = account_of_spki(&bytes(input, "spki")?).ok_or("not a key")?;
    if signer != account(input, "address")? {
        return Err("another key's address".into());
    }
    let signature = Signature::from_der(&bytes(input, "der")?, &word(input, "digest")?, signer);
    Ok(signature.map_err(said)?.to_string().into())
}
