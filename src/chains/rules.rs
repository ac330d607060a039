//! What claims about the chains are judged by.

use serde_json::{Value, json};
use vm::FillRouters;

use super::{Chains, Opened};

impl Chains {
    /// What each chain is judged by.
    pub fn rules(&self) -> Vec<Value> {
        let of = |opened: &Opened| {
            let spec = &opened.chain.spec;
            let routers = match &spec.fill_routers {
                FillRouters::Any => Value::Null,
                FillRouters::Listed(listed) => json!(listed),
            };
            json!({
                "id": spec.id,
                "family": spec.family.name,
                "hubChainId": spec.hub_chain_id,
                "depositories": spec.depositories().collect::<Vec<_>>(),
                "finality": spec.finality,
                "fillRouters": routers,
                "additionalData": spec.additional,
                "required": opened.required,
            })
        };
        let keys = self.keys().map(|opened| {
            let mut rules = of(opened);
            // Who is asked, and with which secret, changes no rule.
            if let Some(Value::Object(additional)) = rules.get_mut("additionalData") {
                additional.remove("rpcApiKey");
            }
            rules
        });
        self.opened().map(of).chain(keys).collect()
    }
}
