//! The way of a balance at the hub back to a chain: set apart, signed by the allocator, paid.

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    rpc::types::TransactionReceipt,
    sol_types::{SolCall, SolStruct, SolValue},
};
use anyhow::Result;
use serde_json::Value;

use super::{
    DevChain, Devnet, Identity, Payout, WithdrawalForm,
    order::{FAMILY, Money, text},
};
use crate::{
    account::Account,
    contracts::{Allocator, Depository, Token},
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
        self.payout().account()
    }

    /// With a nonce that commits to it: who sees the signature can use it for nothing else.
    pub fn bound(mut self) -> Result<Self> {
        self.nonce = self.payout().bound_nonce()?;
        Ok(self)
    }

    /// The owner's account at the hub.
    pub fn alias(&self) -> Result<Address> {
        self.payout().alias()
    }

    fn payout(&self) -> Payout<'_> {
        let site = self.site;
        Payout {
            chain: Identity {
                id: site.id.to_owned(),
                family: FAMILY,
                number: U256::from(site.node.chain_id),
                depository: text(site.depository),
                native: text(Address::ZERO),
            },
            currency: text(self.money.currency),
            amount: self.money.amount,
            owner: self.owner,
            owner_chain: self.owner_chain,
            recipient: text(self.recipient),
            nonce: self.nonce,
        }
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

    fn form(&self) -> WithdrawalForm {
        let encoded = Bytes::from(self.request().abi_encode());
        WithdrawalForm {
            payload: encoded.clone(),
            encoded,
            currency: text(self.money.currency),
            receiver: text(self.recipient),
            data: Bytes::new(),
            additional: None,
        }
    }

    /// The withdrawal's id: the request's struct hash.
    pub fn id(&self) -> B256 {
        self.request().eip712_hash_struct()
    }

    /// Where the allocator keeps the withdrawal.
    pub fn payload_id(&self) -> Result<B256> {
        self.payout().payload_id(&self.form())
    }

    /// Body of `withdrawal-initiation/v1`, with the owner's signature.
    pub fn initiation(&self) -> Result<Value> {
        self.payout().initiation()
    }

    /// Body of `withdrawal-initiated/v1`.
    pub fn initiated(&self) -> Value {
        self.payout().initiated()
    }

    /// Body of `depository-withdrawals/v1`; `transaction` is the one that executed it.
    pub fn status(&self, transaction: Option<B256>) -> Value {
        let transaction = transaction.map(|hash| hash.to_string());
        self.payout().status(&self.form(), transaction.as_deref())
    }
}

impl Devnet {
    /// The allocator records the withdrawal that somebody asked for.
    pub async fn allocate(&self, withdrawal: &Withdrawal<'_>) -> Result<TransactionReceipt> {
        self.allocate_to(&withdrawal.payout(), &withdrawal.form())
            .await
    }

    /// The same of a chain of any family.
    pub async fn allocate_to(
        &self,
        payout: &Payout<'_>,
        form: &WithdrawalForm,
    ) -> Result<TransactionReceipt> {
        let id = payout.payload_id(form)?;
        self.record(id, form.payload.clone()).await
    }

    /// The allocator keeps `payload` under `id`, whatever it is.
    pub async fn record(&self, id: B256, payload: Bytes) -> Result<TransactionReceipt> {
        self.keep((id, payload), Vec::new()).await
    }

    /// The allocator keeps its signatures of a withdrawal that it recorded, each with the hash that is signed.
    pub async fn sign_to(
        &self,
        payout: &Payout<'_>,
        form: &WithdrawalForm,
        signatures: Vec<(B256, Bytes)>,
    ) -> Result<()> {
        let (id, hub) = (payout.payload_id(form)?, &self.hub);
        let hashes = signatures.iter().map(|(hash, _)| *hash).collect();
        self.keep((id, form.payload.clone()), hashes).await?;
        for (hash, signature) in signatures {
            let set = Allocator::setSignedCall {
                id,
                hash,
                signature,
            };
            let set = Payload::call(hub.allocator, &set);
            hub.node.transact(hub.deployer, set).await?;
        }
        Ok(())
    }

    async fn keep(
        &self,
        (id, payload): (B256, Bytes),
        hashes: Vec<B256>,
    ) -> Result<TransactionReceipt> {
        let hub = &self.hub;
        let set = Allocator::setPayloadCall {
            id,
            payload,
            toSign: hashes,
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
