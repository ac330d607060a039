//! A configured chain: what can be asked about it, and whether what is answered may be attested.

use std::sync::Arc;

use vm::{
    Chain, ChainSpec, Family, FillRouters, OwnerKeys, U256, quorum::Quorum, trade::TradingProvider,
};

/// One configured chain.
pub struct Loaded {
    pub id: String,
    /// The family's name as written, also for families that this build does not have.
    pub vm_type: String,
    /// The chain's number at the hub; `None` where the entry has none that can be read.
    pub hub_chain_id: Option<U256>,
    /// The primary depository as written.
    pub depository: Option<String>,
    /// Whether this oracle attests what happens there: `CHAINS` names it, or, without `CHAINS`, the
    /// operator named providers for it.
    pub served: bool,
    /// The chain, or why it cannot be read.
    pub chain: Result<Opened, Closed>,
    /// Where signatures of owners are verified with what the chain has: who is asked for that, or why nobody is.
    /// `CHAINS` does not say, since nothing is attested about the chain.
    pub keys: Option<Result<Opened, Closed>>,
}

impl Loaded {
    /// The chain's family, on the network that the entry names if it can be read; `None` for one that this build does
    /// not have.
    pub fn family(&self) -> Option<&'static Family> {
        let opened = self.chain.as_ref().ok();
        let read = opened.map(|opened| opened.chain.spec.family);
        read.or_else(|| vm::family(&self.vm_type))
    }

    /// Whether somebody is asked about the chain, attested or traded on, or about keys of its owners, of whom nothing
    /// says that he is on its network.
    pub fn lacks_network(&self) -> bool {
        let read = self.chain.iter();
        let read = read.filter(|opened| self.served || opened.named);
        let mut asked = read.chain(self.keys.iter().flatten());
        asked.any(|opened| !opened.checks_network)
    }

    /// What the chain is judged by, where anybody is asked about it.
    pub(super) fn spec(&self) -> Option<Arc<ChainSpec>> {
        let mut opened = self.chain.iter().chain(self.keys.iter().flatten());
        opened.next().map(|opened| opened.chain.spec.clone())
    }

    /// The chain, or why nothing is attested about it.
    pub fn attested(&self) -> Result<&Opened, Closed> {
        if !self.served {
            return Err(Closed::NotServed);
        }
        attested(&self.chain)
    }

    /// Who says which keys owners sign with, or why nobody's word is taken.
    pub fn owner_keys(&self) -> Option<Result<OwnerKeys, Closed>> {
        let opened = attested(self.keys.as_ref()?);
        Some(opened.map(|opened| OwnerKeys {
            spec: opened.chain.spec.clone(),
            reader: opened.quorum.clone(),
        }))
    }
}

/// A chain that the hub file names.
pub(super) struct SettlementChain {
    /// What it is judged by; `None` where nobody can judge it.
    pub spec: Option<Arc<ChainSpec>>,
    /// The chain, or why it cannot be read.
    pub opened: Result<Opened, Closed>,
}

impl SettlementChain {
    pub fn of(opened: Opened) -> Self {
        Self {
            spec: Some(opened.chain.spec.clone()),
            opened: Ok(opened),
        }
    }

    pub fn closed(why: &str) -> Self {
        Self {
            spec: None,
            opened: Err(why.into()),
        }
    }
}

/// A chain that can be read.
#[derive(Clone)]
pub struct Opened {
    pub chain: Chain,
    pub quorum: Arc<Quorum>,
    /// Providers asked, and how many of them must agree.
    pub providers: usize,
    pub required: usize,
    /// Whether the operator named the providers; else it is the chain's public endpoint.
    pub named: bool,
    /// Whether each provider is noticed that is on another network than the entry means.
    pub checks_network: bool,
    /// Why nothing is attested on the word of these providers.
    pub few: Option<Closed>,
    /// The same providers in the same order, for trading; empty where the family has no trading.
    pub trading_providers: Vec<TradingProvider>,
    /// The same once more, for what strangers have asked, quotes above all: with permits, connections, a
    /// silence (after a provider's `Retry-After`), a shorter longest answer and a number of calls a second of
    /// their own, so that index and solver do not wait behind them.
    pub asking: Vec<TradingProvider>,
}

impl Opened {
    /// Whether one provider's answer is enough.
    pub fn single_decider(&self) -> bool {
        self.required == 1
    }

    /// Whether no fill through a router is attested there, although its orders could name one. Nobody is
    /// paid where there is no depository.
    pub fn lacks_routers(&self) -> bool {
        let spec = &self.chain.spec;
        let none = matches!(&spec.fill_routers, FillRouters::Listed(listed) if listed.is_empty());
        none && spec.family.orders.is_some() && spec.depository.is_some()
    }

    /// Whether two groups of its providers could agree on opposite answers: the operator asks for
    /// no majority.
    pub fn minority_decides(&self) -> bool {
        self.required <= self.providers / 2
    }
}

/// Why nothing is attested about a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// There is nobody to ask, or nobody who could understand the answers.
    #[error("{0}")]
    Unreadable(String),
    /// One provider is never enough to move anybody's money, unless the operator says so.
    #[error(
        "{named} named provider(s) of at least 2: name more in {urls}, or let one decide with {quorum}=1"
    )]
    FewProviders {
        named: usize,
        urls: String,
        quorum: String,
    },
    #[error("this oracle does not serve it: see CHAINS")]
    NotServed,
}

impl From<&str> for Closed {
    fn from(why: &str) -> Self {
        Self::Unreadable(why.to_owned())
    }
}

/// `chain`, where its providers are enough for a statement.
pub(super) fn attested(chain: &Result<Opened, Closed>) -> Result<&Opened, Closed> {
    let opened = chain.as_ref().map_err(Clone::clone)?;
    opened.few.clone().map_or(Ok(opened), Err)
}
