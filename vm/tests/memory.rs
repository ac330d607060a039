//! What a provider's answer becomes in memory when it is decoded. A process of its own: its peak is measured.

#![cfg(target_os = "linux")]

use vm::ethereum::raw::{RawReceipt, RawTransaction};

/// The most memory that the process has had, in bytes.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line?.trim().trim_end_matches(" kB");
    Some(kilobytes.parse::<usize>().ok()? << 10)
}

#[test]
fn an_answer_takes_no_more_than_its_size_again() {
    let hash = format!("0x{}", "11".repeat(32));
    let items = |item: &str| format!("[{item}{}]", format!(",{item}").repeat(1_000_000));
    let odd = items(r#"{"":0}"#);
    let receipt = format!(
        r#"{{"transactionHash":"{hash}","blockHash":"{hash}","blockNumber":"0x1","status":"0x1","logs":[],"gasUsed":{odd},"effectiveGasPrice":{odd},"l1Fee":{odd}}}"#
    );
    let transaction = format!(
        r#"{{"hash":"{hash}","blockHash":null,"blockNumber":null,"from":"0x{}","to":null,"calls":{}}}"#,
        "22".repeat(20),
        items("{}")
    );
    let before = peak().unwrap();
    let receipt_read = serde_json::from_str::<RawReceipt>(&receipt).unwrap();
    assert!(receipt_read.spent().is_none());
    let read = serde_json::from_str::<RawTransaction>(&transaction).unwrap();
    assert!(read.calls.is_some_and(|calls| calls.0.is_some()));
    let more = peak().unwrap() - before;
    let size = receipt.len() + transaction.len();
    assert!(more < size + (4 << 20), "{more} bytes of {size}");
}
