//! The README's first command, as a visitor runs it.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    os::unix::fs::symlink,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
};

const PATIENCE: Duration = Duration::from_secs(400);
/// The file of what is said on standard error, in a devnet's directory.
const COMPLAINTS: &str = "complaints";

/// A bitcoind, whose first build takes longer than any of these waits.
async fn bitcoind() {
    let made = tokio::task::spawn_blocking(devnet::tools::bitcoind).await;
    made.unwrap().unwrap();
}

/// A devnet, and the lines of its standard output.
type Running = (Child, Lines<BufReader<ChildStdout>>);

/// Whatever it leaves on disk when it is killed goes with the returned directory.
fn devnet(arguments: &[&str]) -> (Running, TempDir) {
    devnet_where(arguments, Vec::new())
}

/// The same where these variables are set.
fn devnet_where(arguments: &[&str], variables: Vec<(&str, OsString)>) -> (Running, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    // A file takes all that is said; a pipe that nobody reads stops the process when it is full.
    let complaints = File::create(directory.path().join(COMPLAINTS)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_devnet"))
        .args(arguments)
        .env("TMPDIR", directory.path())
        .envs(variables)
        .stdout(Stdio::piped())
        .stderr(complaints)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    ((child, lines), directory)
}

/// All that a devnet says until it ends, and its status.
async fn heard((mut child, mut lines): Running) -> (Vec<String>, ExitStatus) {
    let mut told = Vec::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            told.push(line);
        }
        child.wait().await.unwrap()
    };
    let status = tokio::time::timeout(PATIENCE, reading).await.unwrap();
    (told, status)
}

/// What a devnet has said on its standard error.
fn complaint(directory: &TempDir) -> String {
    fs::read_to_string(directory.path().join(COMPLAINTS)).unwrap()
}

#[tokio::test]
async fn story_goes_from_quotes_to_settlement() {
    bitcoind().await;
    let (running, directory) = devnet(&["--once"]);
    let (told, status) = heard(running).await;
    assert!(status.success(), "{}", complaint(&directory));
    let count = |what: &str| told.iter().filter(|line| line.contains(what)).count();
    // By hand: asked, shown and submitted by the story; six more for each chain of another family.
    assert_eq!(count("hub accepts 2 of 3"), 6 + 6 * 2);
    assert_eq!(count("oracle signs"), 3 * (6 + 6 * 2));
    assert_eq!(count("allocator records it"), 1 + 2);
    assert_eq!(count("hub rejects"), 4);
    // Requests: by the daemon, found on the hub by the key of what the oracles sign.
    assert_eq!(count("hub takes the deposit"), 3 + 6);
    assert_eq!(count("hub takes the fill"), 2 + 6);
    assert_eq!(count("hub takes the refund"), 1);
    assert_eq!(count("user sends approve"), 1);
    let end = told.iter().position(|line| line == "Evidence").unwrap();
    proved(&told[end + 1..]);
    let last = &told[end - 5..end - 1];
    let held = ["0.014 BTC", "4.001 SOL", "0.75 ETH", "425 USD"];
    for (line, held) in last.iter().zip(held) {
        assert!(line.ends_with(&format!("{held} = {held}")), "{last:?}");
    }
    lives(&told);
}

/// Links in `to` to all that `from` has, if there is such a directory, but bitcoinds.
fn linked(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with("bitcoind") {
            symlink(entry.path(), to.join(name)).unwrap();
        }
    }
}

/// The search path, and the cache of what is built, without a bitcoind.
fn without_bitcoind(directory: &Path) -> Vec<(&'static str, OsString)> {
    let path = env::var_os("PATH").unwrap();
    let programs = env::split_paths(&path)
        .enumerate()
        .map(|(place, programs)| {
            if !programs.join("bitcoind").exists() {
                return programs;
            }
            let others = directory.join(place.to_string());
            linked(&programs, &others);
            others
        });
    let path = env::join_paths(programs).unwrap();
    let cache = directory.join("cache");
    linked(&devnet::tools::cache_root().unwrap(), &cache);
    vec![("PATH", path), ("INTENTD_DEVNET_CACHE", cache.into())]
}

/// It neither builds one nor fails.
#[tokio::test]
#[ignore = "a minute: .ci/long"]
async fn story_goes_on_without_bitcoin_where_there_is_no_bitcoind() {
    let made = tokio::task::spawn_blocking(devnet::tools::anvil).await;
    made.unwrap().unwrap();
    let others = tempfile::tempdir().unwrap();
    let variables = without_bitcoind(others.path());
    let (running, directory) = devnet_where(&["--once"], variables);
    let (told, status) = heard(running).await;
    assert_eq!(status.code(), Some(0), "{}", complaint(&directory));
    let count = |what: &str| told.iter().filter(|line| line.contains(what)).count();
    assert_eq!(count("no bitcoind on PATH, and none was built yet"), 1);
    assert_eq!(count("the story goes on without Bitcoin"), 1);
    assert_eq!(count("hub accepts 2 of 3"), 6 + 6);
    assert_eq!(count("hub takes the deposit"), 3 + 2);
    assert_eq!(count(" BTC"), 0);
}

/// Each oracle has signed what was told by hand, at least, and all that it has signed is verified.
fn proved(lines: &[String]) {
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in lines {
        let counted = line.strip_suffix(" statements verified without a provider");
        let count = counted.and_then(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
        assert!(count.is_some_and(|count| count >= 6 + 6 * 2), "{line}");
    }
}

/// Each request goes through its states in their order, and the hub pays the solver what went in.
fn lives(told: &[String]) {
    let filled = ["waiting", "pending", "submitted", "success"];
    let refunded = ["waiting", "pending", "refund"];
    let acts = [
        ("1. ", &filled[..], "0 ETH -> 0.1 ETH"),
        ("2. ", &filled[..], "0 USD -> 25 USD"),
        ("3. ", &refunded[..], "0.1 ETH -> 0.15 ETH"),
        (
            "4. A request: ETH for BTC",
            &filled[..],
            "0.15 ETH -> 0.2 ETH",
        ),
        (
            "5. A request: BTC for ETH",
            &filled[..],
            "0 BTC -> 0.002 BTC",
        ),
        (
            "6. A request: ETH for SOL",
            &filled[..],
            "0.2 ETH -> 0.25 ETH",
        ),
        ("7. A request: SOL for ETH", &filled[..], "0 SOL -> 2 SOL"),
        (
            "8. A request: BTC for SOL",
            &filled[..],
            "0.002 BTC -> 0.004 BTC",
        ),
        ("9. A request: SOL for BTC", &filled[..], "2 SOL -> 4 SOL"),
    ];
    for (title, states, earned) in acts {
        let act: Vec<_> = told
            .iter()
            .skip_while(|line| !line.starts_with(title))
            .take_while(|line| !line.is_empty())
            .collect();
        let seen = act.iter().filter(|line| line.starts_with("  status "));
        let seen: Vec<_> = seen
            .map(|line| line.split_whitespace().nth(3).unwrap())
            .collect();
        // Chains may be faster than anybody looks.
        let mut later = states.iter();
        assert!(
            seen.iter().all(|seen| later.any(|state| state == seen)),
            "{act:?}"
        );
        let ends = (states.first(), states.last());
        assert_eq!((seen.first(), seen.last()), ends, "{act:?}");
        let hub = act.iter().filter(|line| line.contains("hub, solver"));
        let hub: Vec<_> = hub.collect();
        assert!(hub.len() == 1 && hub[0].ends_with(earned), "{hub:?}");
    }
}

/// What a visitor pastes works as it stands.
#[tokio::test]
async fn lines_to_paste_quote_send_and_follow_a_request() {
    bitcoind().await;
    let ((mut child, mut lines), directory) = devnet(&[]);
    let mut pasted = Vec::new();
    let reading = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.starts_with("curl ") || line.starts_with("node ") {
                pasted.push(line);
            } else if line.starts_with("Ctrl-C") {
                return true;
            }
        }
        false
    };
    let up = tokio::time::timeout(PATIENCE, reading).await.unwrap();
    assert!(up, "{}", complaint(&directory));
    assert!(!pasted.iter().any(|line| has_pattern(line)), "{pasted:?}");
    let first = |what: &str| pasted.iter().position(|line| line.contains(what)).unwrap();
    let send = first("node -e");
    assert!(paste(&pasted[first("/chains")]).await.contains("31001"));
    assert!(
        paste(&pasted[first("requestId=0x")])
            .await
            .contains("\"success\"")
    );
    let listed = paste(&pasted[first("/requests/v3")]).await;
    assert!(listed.contains("\"status\":\"refund\""), "{listed}");
    // It goes on for as long as it is let.
    let heard = pasted[first("/events")].replace("curl ", "curl --max-time 2 ");
    let heard = paste(&format!("{heard} || test $? = 28")).await;
    assert!(heard.contains("\"submitted\""), "{heard}");
    assert_eq!(paste(&pasted[send - 1]).await, "");
    assert!(paste(&pasted[send]).await.contains("\"result\":\"0x"));
    let success = async { while !paste(&pasted[send + 1]).await.contains("\"success\",") {} };
    tokio::time::timeout(PATIENCE, success).await.unwrap();
    let id = child.id().unwrap().to_string();
    let told = Command::new("kill").arg(id).status().await.unwrap();
    assert!(told.success());
    let ended = child.wait().await.unwrap();
    assert!(ended.success(), "{ended}: {}", complaint(&directory));
}

/// Whether a line has a character of patterns outside of quotes. Where no file has such a name, zsh does not run it.
fn has_pattern(line: &str) -> bool {
    let mut quote = None;
    line.chars().any(|letter| match quote {
        Some(end) => {
            if letter == end {
                quote = None;
            }
            false
        }
        None if letter == '\'' || letter == '"' => {
            quote = Some(letter);
            false
        }
        None => matches!(letter, '?' | '*' | '['),
    })
}

#[test]
fn patterns_are_found_outside_of_quotes_only() {
    for line in ["curl -s a?b=1", "curl 'a' b*", "curl \"a\"[0]"] {
        assert!(has_pattern(line), "{line}");
    }
    for line in ["curl 'a?b=1'", "curl \"a?b=$(node -p 'c[0]' d)\"", "curl a"] {
        assert!(!has_pattern(line), "{line}");
    }
}

/// What a shell prints for a line.
async fn paste(line: &str) -> String {
    let done = Command::new("sh")
        .args(["-c", line])
        .output()
        .await
        .unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[tokio::test]
async fn killed_devnet_leaves_no_chain_behind() {
    bitcoind().await;
    let ((mut child, mut lines), _directory) = devnet(&["--once"]);
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
    let ((mut child, _), directory) = devnet(&["--twice"]);
    assert_eq!(child.wait().await.unwrap().code(), Some(2));
    assert!(complaint(&directory).contains("usage: devnet [--once | --attacks"));
}
