//! What a Solana node says about a transaction: whatever it is, it ends in facts or in doubt, and no deposit is worth
//! more than what its instruction says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vm::{
    B256, Block, ChainEntry, Transaction,
    solana::{
        decode::{Rules, decode, unnamed},
        executed::Executed,
        raw::RawTransaction,
    },
};

fuzz_target!(|bytes: &[u8]| {
    let entry = serde_json::json!({
        "id": "solana", "hubChainId": "7", "depository": "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2",
    });
    let entry: ChainEntry = serde_json::from_value(entry).expect("an entry");
    let spec = entry.spec(&vm::solana::FAMILY, false).expect("a spec");
    let rules = Rules::new(&spec).expect("rules");
    let Ok(raw) = serde_json::from_slice::<RawTransaction>(bytes) else {
        return;
    };
    let asked = raw
        .transaction
        .signatures
        .first()
        .map(|first| first.bytes().to_vec());
    let Ok(executed) = Executed::join(&asked.unwrap_or_default(), raw) else {
        return;
    };
    let block = Block {
        number: executed.slot,
        hash: B256::ZERO,
        parent: B256::ZERO,
        time: executed.time.unwrap_or_default(),
    };
    let mint = unnamed(&rules, &executed);
    if let Transaction::Succeeded(receipt) = decode(&rules, &executed, block, mint) {
        for deposit in receipt.deposits.iter().flatten() {
            assert!(deposit.amount <= vm::U256::from(u64::MAX));
        }
    }
});
