//! A chain with a depository: deposits, payments of solvers, withdrawals, and attacks on them.

use std::sync::Arc;

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    rpc::types::TransactionReceipt,
    sol_types::{SolStruct, eip712_domain},
};
use anyhow::Result;

use crate::{
    account::Account,
    artifact::Artifacts,
    contracts::{ApprovalProxy, Depository, FillRouter, Token},
    node::{Node, Payload, arguments},
    world::{Exchange, Money},
};

/// A chain where users deposit and solvers pay.
#[derive(Debug)]
pub struct DevChain {
    /// Its name in orders and in the chains file.
    pub id: &'static str,
    pub node: Node,
    pub depository: Address,
    pub router: Address,
    /// Takes its caller's tokens for fills through the router.
    pub proxy: Address,
    /// A plain ERC-20 with six decimals.
    pub token: Address,
    /// Where tokens are exchanged, if anywhere.
    pub exchange: Option<Exchange>,
    pub deployer: Address,
    artifacts: Arc<Artifacts>,
}

impl DevChain {
    /// Starts the chain and deploys everything.
    pub async fn start(
        id: &'static str,
        chain_id: u64,
        allocator: &Account,
        artifacts: Arc<Artifacts>,
    ) -> Result<Self> {
        let (node, deployer) = super::founded(chain_id).await?;
        let mut site = Self {
            id,
            node,
            depository: Address::ZERO,
            router: Address::ZERO,
            proxy: Address::ZERO,
            token: Address::ZERO,
            exchange: None,
            deployer,
            artifacts,
        };
        let owner = Depository::constructorCall {
            allocator: allocator.address(),
        };
        site.depository = site.deploy("Depository", &arguments(&owner)).await?;
        site.router = site.deploy("FillRouter", &[]).await?;
        let router = ApprovalProxy::constructorCall {
            router: site.router,
        };
        site.proxy = site.deploy("ApprovalProxy", &arguments(&router)).await?;
        site.token = site.deploy_token("Token").await?;
        Ok(site)
    }

    /// Deploys a contract of `contracts/` with encoded constructor arguments.
    pub async fn deploy(&self, contract: &str, arguments: &[u8]) -> Result<Address> {
        self.node
            .deploy(self.deployer, contract, arguments, &self.artifacts)
            .await
    }

    /// Deploys one of the tokens of `Tokens.sol`; its symbol is its contract's name.
    pub async fn deploy_token(&self, contract: &str) -> Result<Address> {
        let symbol = Token::constructorCall {
            symbol: contract.to_owned(),
        };
        self.deploy(contract, &arguments(&symbol)).await
    }

    pub async fn mint(&self, token: Address, to: Address, amount: U256) -> Result<()> {
        let mint = Payload::call(token, &Token::mintCall { to, amount });
        self.node.transact(self.deployer, mint).await.map(drop)
    }

    pub async fn token_balance(&self, token: Address, owner: Address) -> Result<U256> {
        self.node.view(token, &Token::balanceOfCall { owner }).await
    }

    /// `depositNative`, credited to the sender.
    pub async fn deposit_native(
        &self,
        from: &Account,
        amount: U256,
        id: B256,
    ) -> Result<TransactionReceipt> {
        self.node
            .send(from.address(), self.native_deposit(id).value(amount))
            .await
    }

    /// The call that [`DevChain::deposit_native`] makes, for those who wrap it.
    pub fn native_deposit(&self, id: B256) -> Payload {
        let depositor = Address::ZERO;
        Payload::call(
            self.depository,
            &Depository::depositNativeCall { depositor, id },
        )
    }

    /// `approve`, then `depositErc20` credited to the sender; returns the deposit's receipt.
    pub async fn deposit_erc20(
        &self,
        from: &Account,
        token: Address,
        amount: U256,
        id: B256,
    ) -> Result<TransactionReceipt> {
        self.approve(from, token, self.depository, amount).await?;
        let deposit = Payload::call(
            self.depository,
            &Depository::depositErc20_0Call {
                depositor: Address::ZERO,
                token,
                amount,
                id,
            },
        );
        self.node.send(from.address(), deposit).await
    }

    pub async fn approve(
        &self,
        from: &Account,
        token: Address,
        spender: Address,
        amount: U256,
    ) -> Result<()> {
        let approve = Payload::call(token, &Token::approveCall { spender, amount });
        self.node.transact(from.address(), approve).await.map(drop)
    }

    /// A bare `transfer` into the depository; the id follows the calldata.
    pub async fn transfer_to_depository(
        &self,
        from: &Account,
        token: Address,
        amount: U256,
        id: Option<B256>,
    ) -> Result<TransactionReceipt> {
        let to = self.depository;
        let mut transfer = Payload::call(token, &Token::transferCall { to, amount });
        if let Some(id) = id {
            transfer = transfer.suffix(id);
        }
        self.node.send(from.address(), transfer).await
    }

    /// Pays the native currency straight to `recipient`, naming the order in the data.
    pub async fn pay_native(
        &self,
        solver: &Account,
        recipient: Address,
        amount: U256,
        order: B256,
    ) -> Result<TransactionReceipt> {
        let payment = Payload::pay(recipient, amount).suffix(order);
        self.node.send(solver.address(), payment).await
    }

    /// Pays a token straight to `recipient`, naming the order behind the calldata.
    pub async fn pay_erc20(
        &self,
        solver: &Account,
        Money { currency, amount }: Money,
        to: Address,
        order: B256,
    ) -> Result<TransactionReceipt> {
        let payment = Payload::call(currency, &Token::transferCall { to, amount }).suffix(order);
        self.node.send(solver.address(), payment).await
    }

    /// Payments and calls through the router, naming the order behind the calldata.
    pub async fn fill(
        &self,
        solver: &Account,
        calls: Vec<FillRouter::Call>,
        order: B256,
    ) -> Result<TransactionReceipt> {
        let value = calls.iter().map(|call| call.value).sum();
        let fill = Payload::call(self.router, &FillRouter::fillCall { calls })
            .value(value)
            .suffix(order);
        self.node.send(solver.address(), fill).await
    }

    /// The allocator's signature on a withdrawal request of this depository.
    pub fn sign_withdrawal(
        &self,
        allocator: &Account,
        request: &Depository::CallRequest,
    ) -> Result<Bytes> {
        let domain = eip712_domain! {
            name: "RelayDepository",
            version: "1",
            chain_id: self.node.chain_id,
            verifying_contract: self.depository,
        };
        allocator.sign_digest(request.eip712_signing_hash(&domain))
    }

    /// Executes a signed withdrawal request; anyone may send it.
    pub async fn withdraw(
        &self,
        from: &Account,
        request: Depository::CallRequest,
        signature: Bytes,
    ) -> Result<TransactionReceipt> {
        let execute = Depository::executeCall { request, signature };
        self.node
            .send(from.address(), Payload::call(self.depository, &execute))
            .await
    }
}
