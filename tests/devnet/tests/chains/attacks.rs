//! Strangers' attempts on real nodes, as the README's command shows them.

use std::{process::Output, time::Duration};

use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(600);

async fn devnet(arguments: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_devnet"));
    let command = command
        .args(arguments)
        .env("TMPDIR", directory.path())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output());
    output.await.expect("it does not end").unwrap()
}

#[tokio::test]
async fn strangers_gain_nothing_and_change_nobodys_outcome() {
    let names = [
        "dust",
        "worthless-token",
        "wrong-currency",
        "dust-claim",
        "token-off",
        "junk-logs",
        "lying-nonce",
        "empty-logs",
    ];
    let done = devnet(&["--attacks", &names.join(",")]).await;
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let count = |what: &str| told.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("gained: nothing"), names.len(), "{told}");
    assert_eq!(count("the user beside him: "), names.len(), "{told}");
    for what in [
        "of his deposits 4 are parked: ",
        "3 x dust",
        "before the solver is paid: 400 SOLVER_SIGNATURE_REQUIRED",
        "somebody else's quote for the same: 200",
        "its recovery: 200",
        "161 deposits in one transaction; an execution has room for 150",
    ] {
        assert_eq!(count(what), 1, "{what}: {told}");
    }
}

#[tokio::test]
async fn unknown_attacks_are_answered_with_those_that_there_are() {
    let done = devnet(&["--attacks", "kindness"]).await;
    assert_eq!(done.status.code(), Some(1));
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        told.contains("no attack kindness") && told.contains("late-deposit"),
        "{told}"
    );
}
