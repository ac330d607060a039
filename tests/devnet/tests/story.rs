//! The README's first command, as a visitor runs it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{process::Stdio, time::Duration};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
};

const PATIENCE: Duration = Duration::from_secs(180);

/// Whatever it leaves on disk when it is killed goes with the returned directory.
fn devnet(arguments: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_devnet"))
        .args(arguments)
        .env("TMPDIR", directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines, directory)
}

async fn complaint(child: &mut Child) -> String {
    let mut text = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn story_settles_deposit_fill_refund_and_withdrawal() {
    let (mut child, mut lines, _directory) = devnet(&["--once"]);
    let mut told = Vec::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            told.push(line);
        }
        child.wait().await.unwrap()
    };
    let status = tokio::time::timeout(PATIENCE, reading).await.unwrap();
    assert!(status.success(), "{}", complaint(&mut child).await);
    let count = |what: &str| told.iter().filter(|line| line.contains(what)).count();
    assert_eq!(count("hub accepts 2 of 3"), 6);
    assert_eq!(count("oracle signs"), 18);
    assert_eq!(count("hub rejects"), 4);
    let last = &told[told.len() - 2..];
    assert!(last[0].contains("0.4 ETH = 0.4 ETH"), "{last:?}");
    assert!(last[1].contains("400 USD = 400 USD"), "{last:?}");
}

#[tokio::test]
async fn killed_devnet_leaves_no_chain_behind() {
    let (mut child, mut lines, _directory) = devnet(&["--once"]);
    let mut addresses = Vec::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("(chain id ") {
                let url = line.split_whitespace().nth(1).unwrap();
                let url = url::Url::parse(url).unwrap();
                addresses.push(url.socket_addrs(|| None).unwrap()[0]);
            }
            if line.starts_with("1. ") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap();
    assert_eq!(addresses.len(), 3);
    for address in &addresses {
        TcpStream::connect(address)
            .await
            .expect("the chain is not up");
    }
    child.kill().await.unwrap();
    let gone = async {
        for address in &addresses {
            while TcpStream::connect(address).await.is_ok() {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .expect("a chain outlived the devnet");
}

#[tokio::test]
async fn unknown_arguments_are_answered_with_the_usage() {
    let (mut child, _, _directory) = devnet(&["--twice"]);
    assert_eq!(child.wait().await.unwrap().code(), Some(2));
    assert!(
        complaint(&mut child)
            .await
            .contains("usage: devnet [--once]")
    );
}
