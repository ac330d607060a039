//! What claims about the chains are judged by.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value, json};
use vm::{Bytes, ChainSpec, FillRouters};

use super::Chains;

/// What of a chain's `additionalData` decides how it is judged and which network it is, finality aside. The rest says
/// who is asked, with which credentials, and how the solver trades.
const JUDGED: [&str; 6] = [
    "contractAddress",
    "fastMode",
    "genesisHash",
    "isZksyncStack",
    "network",
    "signDataDomain",
];

/// What of the hub file says who is asked, or stands in the rules of its chains.
const ASIDE: [&str; 3] = [
    "additionalData",
    "auroraAdditionalData",
    "auroraPublicRpcUrl",
];

impl Chains {
    /// What claims are judged by as the chains file and the hub file say it: equal for everybody who has these files,
    /// whoever is asked about the chains, and in whichever order they stand there. Names of fields are sorted.
    pub fn rules(&self) -> Value {
        let listed = self.specs.iter().flatten();
        let listed = listed.map(|spec| (spec.id.as_str(), rules(spec)));
        let of = |spec: &Option<Arc<ChainSpec>>| spec.as_deref().map(rules);
        json!({
            "chains": listed.collect::<BTreeMap<_, _>>(),
            "hub": fields(&self.hub_entry, |name| !ASIDE.contains(&name)),
            "settlement": of(&self.hub.spec),
            "allocator": of(&self.allocator.spec),
        })
    }
}

fn rules(spec: &ChainSpec) -> Value {
    let routers: Option<BTreeSet<Bytes>> = match &spec.fill_routers {
        FillRouters::Any => None,
        FillRouters::Listed(listed) => {
            let listed = listed.iter();
            let bytes = listed.map(|router| Bytes::copy_from_slice(router.bytes()));
            Some(bytes.collect())
        }
    };
    json!({
        "id": spec.id,
        "family": spec.family.name,
        "hubChainId": spec.hub_chain_id,
        "depositories": spec.depositories().collect::<Vec<_>>(),
        "finality": spec.finality,
        "fillRouters": routers,
        "additionalData": fields(&spec.additional, |name| JUDGED.contains(&name)),
    })
}

/// The fields of `object` whose names count.
fn fields(object: &Map<String, Value>, counts: impl Fn(&str) -> bool) -> Map<String, Value> {
    let fields = object.iter().filter(|(name, _)| counts(name));
    let fields = fields.map(|(name, value)| (name.clone(), value.clone()));
    fields.collect()
}
