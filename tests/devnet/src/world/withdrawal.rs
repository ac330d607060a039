//! The way of a balance at the hub back to a chain: set apart, signed by the allocator, paid.

use alloy::{
    primitives::{Address, B256, Bytes, U256, keccak256},
    rpc::types::TransactionReceipt,
    sol_types::{SolCall, SolStruct, SolValue},
};
use anyhow::Result;
use serde_json::{Value, json};
use vm::{ChainId, protocol::hub};

use super::{
    DevChain, Devnet,
    order::{Money, address, text},
};
use crate::{
    account::Account,
    contracts::{Allocator, Depository, SubmitWithdrawRequest, Token},
    node::Payload,
};

/// Somebody's wish to have a hub balance paid out at a site.
#[derive(Clone, Debug)]
pub struct Withdrawal<'a> {
    pub site: &'a DevChain,
    pub money: Money,
    /// Whose balance at the hub: an account of the chain called `owner_chain`.
    pub owner: &'a Account,
    pub owner_chain: &'a str,
    pub recipient: Address,
    pub nonce: U256,
    /// Unix seconds, until which the depository may pay.
    pub expiration: U256,
}

impl Withdrawal<'_> {
    /// The hub account that holds the money meanwhile.
    pub fn account(&self) -> Result<Address> {
        self.with_account(|account| account.address())
    }

    /// With a nonce that commits to it: who sees the signature can use it for nothing else.
    pub fn bound(mut self) -> Result<Self> {
        self.nonce = self.with_account(|account| account.bound_nonce("relay"))?;
        Ok(self)
    }

    fn with_account<T>(&self, of: impl FnOnce(&hub::WithdrawalAccount<'_>) -> T) -> Result<T> {
        Ok(of(&hub::WithdrawalAccount {
            chain: &ChainId::new(self.site.id),
            depository: &address(self.site.depository)?,
            currency: &address(self.money.currency)?,
            recipient: &address(self.recipient)?,
            owner: self.alias()?,
            nonce: self.nonce,
        }))
    }

    /// The owner's account at the hub.
    pub fn alias(&self) -> Result<Address> {
        let owner = address(self.owner.address())?;
        Ok(hub::alias(&ChainId::new(self.owner_chain), &owner))
    }

    /// What the allocator signs and the depository executes.
    pub fn request(&self) -> Depository::CallRequest {
        let Money { currency, amount } = self.money;
        let to = self.recipient;
        let call = if currency.is_zero() {
            Depository::Call {
                to,
                data: Bytes::new(),
                value: amount,
                allowFailure: false,
            }
        } else {
            Depository::Call {
                to: currency,
                data: Token::transferCall { to, amount }.abi_encode().into(),
                value: U256::ZERO,
                allowFailure: false,
            }
        };
        Depository::CallRequest {
            calls: vec![call],
            nonce: self.nonce,
            expiration: self.expiration,
        }
    }

    /// The withdrawal's id: the request's struct hash.
    pub fn id(&self) -> B256 {
        self.request().eip712_hash_struct()
    }

    /// Where the allocator keeps the withdrawal.
    pub fn payload_id(&self) -> Result<B256> {
        let request = SubmitWithdrawRequest {
            chainId: U256::from(self.site.node.chain_id),
            depository: text(self.site.depository),
            currency: text(self.money.currency),
            amount: self.money.amount,
            spender: self.alias()?,
            receiver: text(self.recipient),
            data: Bytes::new(),
            nonce: self.nonce.into(),
        };
        Ok(keccak256(request.abi_encode()))
    }

    /// Body of `withdrawal-initiation/v1`, with the owner's signature (guide: protocol 8.5).
    pub fn initiation(&self) -> Result<Value> {
        let amount = self.money.amount;
        let packed = (self.alias()?, amount, self.nonce).abi_encode_packed();
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
        body["expectedAmount"] = json!(self.money.amount.to_string());
        body
    }

    /// Body of `depository-withdrawals/v1`; `transaction` is the one that executed it.
    pub fn status(&self, transaction: Option<B256>) -> Value {
        let mut body = json!({
            "chainId": self.site.id,
            "withdrawal": Bytes::from(self.request().abi_encode()),
            "withdrawalAddressRequest": self.address_request(),
        });
        if let Some(transaction) = transaction {
            body["transactionId"] = json!(transaction);
        }
        body
    }

    fn address_request(&self) -> Value {
        json!({
            "chainId": self.site.id,
            "currency": text(self.money.currency),
            "withdrawer": text(self.owner.address()),
            "withdrawerChainId": self.owner_chain,
            "recipient": text(self.recipient),
            "withdrawalNonce": B256::from(self.nonce),
        })
    }
}

impl Devnet {
    /// The allocator records the withdrawal that somebody asked for.
    pub async fn allocate(&self, withdrawal: &Withdrawal<'_>) -> Result<TransactionReceipt> {
        let payload = withdrawal.request().abi_encode();
        self.record(withdrawal.payload_id()?, payload.into()).await
    }

    /// The allocator keeps `payload` under `id`, whatever it is.
    pub async fn record(&self, id: B256, payload: Bytes) -> Result<TransactionReceipt> {
        let hub = &self.hub;
        let set = Allocator::setPayloadCall {
            id,
            payload,
            toSign: Vec::new(),
        };
        let set = Payload::call(hub.allocator, &set);
        hub.node.transact(hub.deployer, set).await
    }

    /// The allocator signs, and `sender` has the depository pay; returns the transaction's hash.
    pub async fn execute(&self, withdrawal: &Withdrawal<'_>, sender: &Account) -> Result<B256> {
        let site = withdrawal.site;
        let request = withdrawal.request();
        let signature = site.sign_withdrawal(&self.allocator, &request)?;
        let receipt = site.withdraw(sender, request, signature).await?;
        anyhow::ensure!(receipt.status(), "the depository refused the withdrawal");
        Ok(receipt.transaction_hash)
    }
}

fn sha256(bytes: &[u8]) -> B256 {
    use sha2::Digest as _;
    B256::from_slice(&sha2::Sha256::digest(bytes))
}
