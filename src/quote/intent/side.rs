//! A network and a currency of it.

use std::sync::Arc;

use vm::{Address, ChainSpec};

use super::text;
use crate::market::{Currency, Network};

/// See the module.
#[derive(Clone, Debug)]
pub struct Side<'m> {
    pub network: &'m Network,
    pub spec: Arc<ChainSpec>,
    pub currency: &'m Currency,
    pub address: Address,
}

impl Side<'_> {
    /// Whether the currency is its chain's native one.
    pub fn is_native(&self) -> bool {
        self.spec.family.native().ok().as_ref() == Some(&self.address)
    }

    /// Whether it is the wrapped form of the native one.
    pub fn is_wrapped(&self) -> bool {
        let wrapped = self.network.wrapped_native.as_deref();
        let wrapped = wrapped.and_then(|wrapped| text::address(&self.spec, wrapped));
        wrapped.as_ref() == Some(&self.address)
    }
}
