use super::*;

#[test]
fn bid_is_what_most_late_slots_take() {
    // Micro-lamports for a compute unit; lamports for a thousand of them.
    let of = |bids: &[u64]| bid(bids.to_vec());
    assert_eq!(of(&[]), LEAST);
    assert_eq!(of(&[0; 150]), LEAST);
    assert_eq!(of(&[0, 0, 0, 50_000]), 50);
    assert_eq!(of(&[50_001, 0, 0, 0]), 51);
    assert_eq!(of(&[1_000_000, 90_000, 80_000, 70_000, 60_000]), 90);
    assert_eq!(of(&[u64::MAX]), u64::MAX.div_ceil(1_000_000));
}

#[test]
fn answers_of_nodes_are_told_by_the_words_of_the_runtime() {
    let said = |why: &str| format!("Transaction simulation failed: {why}");
    for (why, verdict) in [
        ("Blockhash not found", Broadcast::Expired),
        (
            "This transaction has already been processed",
            Broadcast::Accepted,
        ),
        ("insufficient funds for fee", Broadcast::Unfunded),
        // Cut off.
        (
            "Attempt to debit an account but found no record o…",
            Broadcast::Unfunded,
        ),
    ] {
        assert_eq!(tried(&said(why)), verdict, "{why}");
    }
    let other = said("Error processing Instruction 3: custom program error: 0x1");
    assert_eq!(tried(&other), Broadcast::Rejected(other.clone()));
    assert_eq!(tried(""), Broadcast::Rejected(String::new()));
}
