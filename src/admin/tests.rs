use std::{os::unix::fs::PermissionsExt, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use vm::{B256, Block, ChainId, TxRef};

use super::*;
use crate::{
    attest::{
        journal::Journal,
        statement::{Mode, Statement},
    },
    sign::raw::RawKey,
    store::memory::MemoryStore,
};

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

struct Running {
    directory: tempfile::TempDir,
    journal: Arc<Journal>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

fn running() -> Running {
    let directory = tempfile::tempdir().unwrap();
    let signer = Arc::new(RawKey::parse(KEY).unwrap());
    let journal = Arc::new(Journal::new(Arc::new(MemoryStore::new()), signer));
    let shutdown = CancellationToken::new();
    let admin = Admin::bind(directory.path()).unwrap();
    let desk = Desk {
        journal: journal.clone(),
        webhooks: None,
    };
    let task = tokio::spawn(admin.serve(desk, shutdown.clone()));
    Running {
        directory,
        journal,
        shutdown,
        task,
    }
}

impl Running {
    async fn ask(&self, question: &Question) -> Result<Answer, AskError> {
        ask(self.directory.path(), question).await
    }

    async fn raw(&self, bytes: &[u8]) -> String {
        let socket = path(self.directory.path());
        let mut stream = UnixStream::connect(socket).await.unwrap();
        // The daemon may have stopped reading.
        let _cut = stream.write_all(bytes).await;
        let _cut = stream.shutdown().await;
        let mut answer = Vec::new();
        let _cut = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }
}

fn base() -> ChainId {
    ChainId::new("base")
}

#[tokio::test]
async fn halts_are_listed_and_cleared_once() {
    let running = running();
    let none = running.ask(&Question::Halts {}).await.unwrap();
    assert_eq!(none, Answer::Halts { halts: Vec::new() });
    running.journal.halt(&base(), "reorg", 7).await.unwrap();
    let Answer::Halts { halts } = running.ask(&Question::Halts {}).await.unwrap() else {
        panic!("no halts");
    };
    assert_eq!((halts.len(), halts[0].chain.as_str()), (1, "base"));
    assert_eq!((halts[0].halt.why.as_str(), halts[0].halt.at), ("reorg", 7));
    let clear = Question::ClearHalt {
        chain: "base".into(),
    };
    for cleared in [true, false] {
        let answer = running.ask(&clear).await.unwrap();
        assert_eq!(answer, Answer::Cleared { cleared });
        assert!(running.journal.halted(&base()).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn statements_are_shown_with_what_was_void() {
    let running = running();
    let block = Block {
        number: 7,
        hash: B256::repeat_byte(1),
        parent: B256::ZERO,
        time: 1,
    };
    let tx = TxRef {
        text: "0xab".into(),
        bytes: vec![0xab].into(),
        hint: None,
    };
    let digest = B256::repeat_byte(2);
    let statement = Statement::deposit(&base(), &tx, Mode::Slow, &block, digest);
    running.journal.sign(&statement, 3).await.unwrap();
    let question = Question::Statement {
        key: statement.key.clone(),
    };
    let Answer::Statement { entry, voids } = running.ask(&question).await.unwrap() else {
        panic!("no statement");
    };
    assert_eq!((entry.unwrap().digest, voids.len()), (digest, 0));
    running
        .journal
        .void(&statement.key, "gone", 4)
        .await
        .unwrap();
    let Answer::Statement { entry, voids } = running.ask(&question).await.unwrap() else {
        panic!("no statement");
    };
    assert_eq!((entry, voids[0].why.as_str()), (None, "gone"));
    assert_eq!(voids[0].entry.digest, digest);
}

#[tokio::test]
async fn garbage_is_refused_and_the_daemon_goes_on() {
    let running = running();
    let long = vec![b'a'; 100_000];
    let deep = "[".repeat(10_000);
    let cases: [&[u8]; 9] = [
        b"",
        b"\n",
        b"null\n",
        b"{\"ask\":\"nothing\"}\n",
        b"{\"ask\":\"halts\",\"more\":1}\n",
        b"{\"ask\":\"clear-halt\"}\n",
        b"\xff\xfe\x00\n",
        &long,
        deep.as_bytes(),
    ];
    for (at, case) in cases.into_iter().enumerate() {
        let answer = running.raw(case).await;
        // A writer that is cut off may not see its answer.
        let seen = answer.contains("\"answer\":\"refused\"") || case.len() > 16 << 10;
        assert!(seen, "case {at}: {answer}");
    }
    assert!(running.ask(&Question::Halts {}).await.is_ok());
}

#[tokio::test]
async fn only_the_user_may_open_the_socket_and_it_goes_with_the_daemon() {
    let running = running();
    let socket = path(running.directory.path());
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    running.shutdown.cancel();
    running.task.await.unwrap();
    assert!(!socket.exists());
    let unanswered = ask(running.directory.path(), &Question::Halts {}).await;
    assert!(
        matches!(unanswered, Err(AskError::NoDaemon(_))),
        "{unanswered:?}"
    );
}

#[tokio::test]
async fn a_socket_left_by_a_killed_daemon_is_replaced_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let socket = path(directory.path());
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let unanswered = ask(directory.path(), &Question::Halts {}).await;
    assert!(
        matches!(unanswered, Err(AskError::NoDaemon(_))),
        "{unanswered:?}"
    );
    drop(Admin::bind(directory.path()).unwrap());
    std::fs::write(&socket, "a file").unwrap();
    assert!(Admin::bind(directory.path()).is_err());
    assert_eq!(std::fs::read(&socket).unwrap(), b"a file");
}

#[tokio::test]
async fn an_oracle_knows_no_webhooks() {
    let running = running();
    let question = Question::Webhooks(webhooks::Question::List { label: None });
    let refused = running.ask(&question).await.unwrap_err();
    assert_eq!(refused.to_string(), "this daemon has no integrator API");
    let foreign = running
        .raw(b"{\"ask\":\"webhooks\",\"webhooks\":\"burn\"}\n")
        .await;
    assert!(foreign.contains("refused"), "{foreign}");
}
