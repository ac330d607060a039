//! One side of a trade: a network and a currency of it.

use std::sync::Arc;

use vm::{Address, ChainSpec};

use super::text;
use crate::market::{Currency, Network};

/// A currency on its network, where the solver has an account.
#[derive(Clone, Debug)]
pub struct Side<'m> {
    pub network: &'m Network,
    pub spec: Arc<ChainSpec>,
    /// The solver's account on the network.
    pub solver: Address,
    pub currency: &'m Currency,
    pub address: Address,
}

impl Side<'_> {
    /// Whether accounts of one side are accounts of the other.
    pub fn is_like(&self, other: &Side<'_>) -> bool {
        self.spec.family.name == other.spec.family.name
    }

    /// Whether the currency is its chain's native one.
    pub fn is_native(&self) -> bool {
        self.spec.family.native().ok().as_ref() == Some(&self.address)
    }

    /// Whether it is the wrapped form of the native one.
    pub fn is_wrapped(&self) -> bool {
        let wrapped = self.network.wrapped_native.as_deref();
        let wrapped = wrapped.and_then(|wrapped| text::currency(&self.spec, wrapped));
        wrapped.as_ref() == Some(&self.address)
    }

    /// Whether it and a currency of the same chain are the native one and its wrapped form, one for one.
    pub fn wraps(&self, other: &Side<'_>) -> bool {
        self.is_native() && other.is_wrapped() || self.is_wrapped() && other.is_native()
    }
}
