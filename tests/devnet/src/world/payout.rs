//! A balance at the hub on its way back to a chain of any family: set apart, recorded by the allocator, paid (guide:
//! protocol 8.5).

use alloy::{
    primitives::{Address, B256, Bytes, U256, keccak256},
    sol_types::SolValue,
};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use vm::{
    ChainId, Family,
    protocol::{
        hub,
        owner::{Kind, Operation},
    },
};

use super::order::address;
use crate::{account::Account, contracts::SubmitWithdrawRequest};

/// How the protocol names a chain.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name in orders and in the chains file.
    pub id: String,
    pub family: &'static Family,
    /// Its number at the hub.
    pub number: U256,
    pub depository: String,
    /// Its own currency.
    pub native: String,
}

/// A withdrawal in the form of its family.
#[derive(Clone, Debug)]
pub struct WithdrawalForm {
    /// What claims show (guide: protocol 8.1).
    pub encoded: Bytes,
    /// What the allocator records.
    pub payload: Bytes,
    /// Currency, receiver and data as the allocator spells them (guide: protocol 8.2).
    pub currency: String,
    pub receiver: String,
    pub data: Bytes,
    /// What claims say besides, by the family's name.
    pub additional: Option<Value>,
}

/// Somebody's wish to have a hub balance paid out.
#[derive(Clone, Debug)]
pub struct Payout<'a> {
    pub chain: Identity,
    pub currency: String,
    /// In the currency's smallest unit.
    pub amount: U256,
    /// Whose balance at the hub: an account of the chain called `owner_chain`.
    pub owner: &'a Account,
    pub owner_chain: &'a str,
    pub recipient: String,
    pub nonce: U256,
}

impl Identity {
    /// Of a chain with this entry in the chains file.
    pub fn of(entry: &Value) -> Result<Self> {
        let text = |field: &str| entry[field].as_str().with_context(|| format!("no {field}"));
        let family = vm::family(text("vmType")?).context("an unknown family")?;
        let settings = entry["additionalData"].as_object().cloned();
        let family = match family.entry {
            Some(rules) => (rules.network)(&settings.unwrap_or_default())?,
            None => family,
        };
        Ok(Self {
            id: text("id")?.to_owned(),
            number: text("hubChainId")?.parse()?,
            depository: text("depository")?.to_owned(),
            native: family.native()?.text().to_owned(),
            family,
        })
    }

    /// What the hub calls one of the chain's currencies.
    pub fn token_id(&self, currency: &str) -> Result<U256> {
        let currency = self.family.address(currency)?;
        Ok(hub::token_id(&ChainId::new(&self.id), &currency))
    }

    /// The hub account of what `depositor` deposited for an order, in a block of this time (unix seconds).
    pub fn order_account(&self, depositor: &str, time: u64, order: B256) -> Result<Address> {
        let account = hub::OrderAccount {
            chain: &ChainId::new(&self.id),
            depositor: &self.family.account(depositor)?,
            timestamp: U256::from(time),
            deposit: order,
        };
        Ok(account.address())
    }
}

impl Payout<'_> {
    /// The hub account that holds the money meanwhile.
    pub fn account(&self) -> Result<Address> {
        self.with_account(|account| account.address())
    }

    /// The nonce that commits to it: who sees the owner's signature can use it for nothing else.
    pub fn bound_nonce(&self) -> Result<U256> {
        self.with_account(|account| account.bound_nonce("relay"))
    }

    fn with_account<T>(&self, of: impl FnOnce(&hub::WithdrawalAccount<'_>) -> T) -> Result<T> {
        let family = self.chain.family;
        Ok(of(&hub::WithdrawalAccount {
            chain: &ChainId::new(&self.chain.id),
            depository: &family.address(&self.chain.depository)?,
            currency: &family.address(&self.currency)?,
            recipient: &family.address(&self.recipient)?,
            owner: self.alias()?,
            nonce: self.nonce,
        }))
    }

    /// The owner's account at the hub.
    pub fn alias(&self) -> Result<Address> {
        let owner = address(self.owner.address())?;
        Ok(hub::alias(&ChainId::new(self.owner_chain), &owner))
    }

    /// What the hub calls the money.
    pub fn token_id(&self) -> Result<U256> {
        self.chain.token_id(&self.currency)
    }

    /// Where the allocator keeps the withdrawal.
    pub fn payload_id(&self, form: &WithdrawalForm) -> Result<B256> {
        let request = SubmitWithdrawRequest {
            chainId: self.chain.number,
            depository: self.chain.depository.clone(),
            currency: form.currency.clone(),
            amount: self.amount,
            spender: self.alias()?,
            receiver: form.receiver.clone(),
            data: form.data.clone(),
            nonce: self.nonce.into(),
        };
        Ok(keccak256(request.abi_encode()))
    }

    /// Body of `withdrawal-initiation/v1`, with the owner's signature (guide: protocol 8.5).
    pub fn initiation(&self) -> Result<Value> {
        let packed = (self.alias()?, self.amount, self.nonce).abi_encode_packed();
        // The signed message is the sha256 of the hash's text, not of its bytes.
        let message = sha256(keccak256(packed).to_string().as_bytes());
        let mut body = self.initiated();
        body["signature"] = json!(self.owner.sign_message(message.as_slice())?);
        Ok(body)
    }

    /// Body of `withdrawal-initiated/v1`.
    pub fn initiated(&self) -> Value {
        let mut body = self.address_request();
        body["settlementChainId"] = json!("relay");
        body["expectedAmount"] = json!(self.amount.to_string());
        body
    }

    /// Body of `depository-withdrawals/v1`; `transaction` is the one that executed it.
    pub fn status(&self, form: &WithdrawalForm, transaction: Option<&str>) -> Value {
        let body = json!({
            "chainId": self.chain.id,
            "withdrawal": form.encoded,
            "withdrawalAddressRequest": self.address_request(),
        });
        besides(body, form, transaction)
    }

    /// Body of `depository-withdrawals/v2`, with the owner's signature (guide: protocol 6.3).
    pub fn owned_status(&self, form: &WithdrawalForm, transaction: Option<&str>) -> Result<Value> {
        let owner = format!("{:#x}", self.owner.address());
        let (amount, nonce) = (self.amount.to_string(), B256::from(self.nonce).to_string());
        let operation = Operation {
            kind: Kind::Withdrawal,
            chain_id: &self.chain.id,
            currency: &self.currency,
            amount: &amount,
            owner_chain_id: self.owner_chain,
            owner: &owner,
            recipient: &self.recipient,
            nonce: &nonce,
            additional: form.additional.as_ref(),
        };
        let signature = self.owner.sign_message(&operation.digest())?;
        let body = json!({
            "chainId": self.chain.id,
            "currency": self.currency,
            "amount": amount,
            "ownerChainId": self.owner_chain,
            "owner": owner,
            "recipient": self.recipient,
            "nonce": nonce,
            "ownerSignature": signature,
        });
        Ok(besides(body, form, transaction))
    }

    fn address_request(&self) -> Value {
        json!({
            "chainId": self.chain.id,
            "currency": self.currency,
            "withdrawer": format!("{:#x}", self.owner.address()),
            "withdrawerChainId": self.owner_chain,
            "recipient": self.recipient,
            "withdrawalNonce": B256::from(self.nonce),
        })
    }
}

fn sha256(bytes: &[u8]) -> B256 {
    use sha2::Digest as _;
    B256::from_slice(&sha2::Sha256::digest(bytes))
}

/// The body with what claims say besides: what the allocator was told, and which transaction executed the withdrawal.
fn besides(mut body: Value, form: &WithdrawalForm, transaction: Option<&str>) -> Value {
    if let Some(additional) = &form.additional {
        body["additionalData"] = additional.clone();
    }
    if let Some(transaction) = transaction {
        body["transactionId"] = json!(transaction);
    }
    body
}
