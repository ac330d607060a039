//! A node's answers about an EVM transaction, as JSON and as logs of any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vm::{
    B256, ChainId, ChainSpec, Finality, U256,
    ethereum::{
        FAMILY,
        decode::{Mined, Rules, decode},
        raw::{RawHeader, RawReceipt, RawTransaction},
    },
};

/// `[receipt, transaction, header]`
type Answers = (Option<RawReceipt>, Option<RawTransaction>, RawHeader);

fuzz_target!(|bytes: &[u8]| {
    let Ok((receipt, transaction, header)) = serde_json::from_slice::<Answers>(bytes) else {
        return;
    };
    let asked = receipt
        .as_ref()
        .map_or(B256::ZERO, |receipt| receipt.transaction_hash);
    let (Ok(Some(mined)), Some(block)) =
        (Mined::join(&asked, receipt, transaction), header.block())
    else {
        return;
    };
    let depository = FAMILY
        .address("0x5fbdb2315678afecb367f032d93f642f64180aa3")
        .ok();
    let rules = Rules::new(&ChainSpec {
        id: ChainId::new("tempo"),
        family: &FAMILY,
        hub_chain_id: U256::ZERO,
        depository,
        additional_depositories: Vec::new(),
        finality: Finality {
            blocks: 0,
            seconds: 0,
            tag: None,
        },
        watch_blocks: 0,
        fill_routers: vm::FillRouters::Any,
        additional: serde_json::Map::new(),
    });
    if let Ok(rules) = rules {
        let _ = decode(&rules, &mined, &block);
    }
});
