//! The chain where balances are settled: hub, oracle contract, mapping and the allocator's views.

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    providers::Provider,
    rpc::types::{Filter, TransactionReceipt},
    sol_types::{SolEvent, SolInterface, SolStruct, eip712_domain},
    transports::{RpcError, TransportErrorKind},
};
use anyhow::{Context, Result};

use crate::{
    account::Account,
    artifact::Artifacts,
    contracts::{self, GenericMapping, Hub, Oracle},
    node::{Node, Payload, arguments},
};

/// The version in the oracle contract's signing domain.
pub const ORACLE_VERSION: &str = "2";

/// The settlement chain and its contracts.
#[derive(Debug)]
pub struct Settlement {
    pub node: Node,
    pub hub: Address,
    pub oracle: Address,
    pub mapping: Address,
    pub allocator: Address,
    pub executor: Address,
    pub deposit_addresses: Address,
    pub deployer: Address,
}

impl Settlement {
    /// Starts the chain and deploys everything.
    pub async fn start(
        chain_id: u64,
        signers: &[Address],
        threshold: usize,
        artifacts: &Artifacts,
    ) -> Result<Self> {
        let (node, deployer) = super::founded(chain_id).await?;
        let (threshold, signers) = (U256::from(threshold), signers.to_vec());
        let hub = node.deploy(deployer, "Hub", &[], artifacts).await?;
        let oracle = arguments(&Oracle::constructorCall {
            hub,
            version: ORACLE_VERSION.to_owned(),
            signers: signers.clone(),
            threshold,
        });
        let mapping = arguments(&GenericMapping::constructorCall { signers, threshold });
        let oracle = node.deploy(deployer, "Oracle", &oracle, artifacts).await?;
        let known = Payload::call(hub, &Hub::setOracleCall { oracle });
        node.transact(deployer, known).await?;
        Ok(Self {
            hub,
            oracle,
            mapping: node
                .deploy(deployer, "GenericMapping", &mapping, artifacts)
                .await?,
            allocator: node.deploy(deployer, "Allocator", &[], artifacts).await?,
            executor: node.deploy(deployer, "Executor", &[], artifacts).await?,
            deposit_addresses: node
                .deploy(deployer, "DepositAddressManager", &[], artifacts)
                .await?,
            deployer,
            node,
        })
    }

    /// What `owner` (an alias, order or withdrawal address) holds of a token at the hub.
    pub async fn balance(&self, owner: Address, id: U256) -> Result<U256> {
        self.node
            .view(self.hub, &Hub::balanceOfCall { owner, id })
            .await
    }

    /// Lets the oracle contract judge and apply an execution; the error tells why it refused.
    pub async fn submit(&self, execution: Execution) -> Result<TransactionReceipt> {
        let payload = Payload::call(
            self.oracle,
            &Oracle::executeCall {
                idempotencyKey: execution.idempotency_key,
                actions: execution.actions,
                signatures: execution.signatures,
            },
        );
        // The dry run has the revert's reason, which a failed transaction has not.
        self.node.try_call(self.deployer, payload.clone()).await?;
        self.node.transact(self.deployer, payload).await
    }

    /// What an oracle signs, in the domain of this chain's oracle contract and `version`.
    pub fn digest(&self, version: &str, idempotency_key: B256, actions: &[Bytes]) -> B256 {
        let domain = eip712_domain! {
            name: "RelayOracle",
            version: version.to_owned(),
            chain_id: self.node.chain_id,
            verifying_contract: self.oracle,
        };
        contracts::Execution {
            idempotencyKey: idempotency_key,
            actions: actions.to_vec(),
        }
        .eip712_signing_hash(&domain)
    }

    /// Whether an idempotency key has acted.
    pub async fn is_executed(&self, key: B256) -> Result<bool> {
        let call = Oracle::isExecutedCall {
            idempotencyKey: key,
        };
        self.node.view(self.oracle, &call).await
    }

    /// The transactions in which an idempotency key has acted: one at most.
    pub async fn executions(&self, key: B256) -> Result<Vec<B256>> {
        let filter = Filter::new()
            .from_block(0)
            .address(self.oracle)
            .event_signature(Oracle::Executed::SIGNATURE_HASH)
            .topic1(key);
        let logs = self.node.provider.get_logs(&filter).await?;
        logs.iter()
            .map(|log| log.transaction_hash.context("a log without transaction"))
            .collect()
    }
}

/// Why a settlement contract refused, where it said why.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    Oracle(Oracle::OracleErrors),
    Hub(Hub::HubErrors),
}

impl Refusal {
    /// The reason inside an error of [`Settlement::submit`] or [`Node::try_call`].
    pub fn of(error: &anyhow::Error) -> Option<Self> {
        let error = error.downcast_ref::<RpcError<TransportErrorKind>>()?;
        let data = error.as_error_resp()?.as_revert_data()?;
        let oracle = Oracle::OracleErrors::abi_decode(&data).map(Self::Oracle);
        oracle
            .or_else(|_| Hub::HubErrors::abi_decode(&data).map(Self::Hub))
            .ok()
    }

    /// The contract error's name.
    pub fn name(&self) -> &'static str {
        use Oracle::OracleErrors as Of;
        match self {
            Self::Oracle(Of::AlreadyExecuted(_)) => "AlreadyExecuted",
            Self::Oracle(Of::InvalidActionType(_)) => "InvalidActionType",
            Self::Oracle(Of::UnknownSigner(_)) => "UnknownSigner",
            Self::Oracle(Of::DuplicateSigner(_)) => "DuplicateSigner",
            Self::Oracle(Of::BelowThreshold(_)) => "BelowThreshold",
            Self::Hub(Hub::HubErrors::OnlyOracle(_)) => "OnlyOracle",
            Self::Hub(Hub::HubErrors::InsufficientBalance(_)) => "InsufficientBalance",
        }
    }
}

/// What an oracle attested, with everybody's signatures.
#[derive(Clone, Debug)]
pub struct Execution {
    pub idempotency_key: B256,
    pub actions: Vec<Bytes>,
    pub signatures: Vec<Bytes>,
}

impl Execution {
    /// Signs as `oracles`, as the oracle contract of `settlement` expects.
    pub fn signed(
        settlement: &Settlement,
        idempotency_key: B256,
        actions: Vec<Bytes>,
        oracles: &[&Account],
    ) -> Result<Self> {
        let digest = settlement.digest(ORACLE_VERSION, idempotency_key, &actions);
        let signatures = oracles
            .iter()
            .map(|oracle| oracle.sign_digest(digest))
            .collect::<Result<_>>()?;
        Ok(Self {
            idempotency_key,
            actions,
            signatures,
        })
    }
}
