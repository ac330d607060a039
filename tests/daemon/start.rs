//! The program as a process: what it says before it answers anybody, and how a signal ends it.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use tempfile::TempDir;

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

fn intentd(command: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_intentd"))
        .arg(command)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{err}")
}

fn file(place: &TempDir, name: &str, content: &Value) -> String {
    let path = place.path().join(name);
    fs::write(&path, content.to_string()).unwrap();
    path.display().to_string()
}

fn chains(place: &TempDir, tiers: Value) -> String {
    let chain = |[id, number, url]: [&str; 3], tiers: Value| {
        json!({
            "id": id, "vmType": "ethereum-vm", "httpRpcUrl": url, "hubChainId": number,
            "depository": "0x5fbdb2315678afecb367f032d93f642f64180aa3",
            "additionalData": {"fastMode": {"finalityTiers": tiers}},
        })
    };
    let list = json!([
        chain(["one", "1", "http://127.0.0.1:1/"], tiers),
        chain(["two", "2", "$TWO_RPC_URL"], json!({})),
    ]);
    file(place, "chains.json", &list)
}

fn hub(place: &TempDir, oracle: &str) -> String {
    let hub = json!({
        "id": "relay", "evmChainId": "31337", "oracleVersion": "2", "oracleAddress": oracle,
        "httpRpcUrl": "http://127.0.0.1:1/", "rateLimiter": {"address": ORACLE},
        "auroraAllocatorAddress": ORACLE, "auroraEvmChainId": "2",
        "auroraHttpRpcUrl": "http://127.0.0.1:1/",
    });
    file(place, "hub.json", &hub)
}

const ORACLE: &str = "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9";

/// A daemon of its own that takes any free ports.
fn variables<'a>(data: &'a str, chains: &'a str, hub: &'a str) -> [(&'static str, &'a str); 9] {
    [
        ("ENVIRONMENT", "test"),
        ("ECDSA_PRIVATE_KEY", KEY),
        ("DATA_DIR", data),
        ("CHAINS_FILE", chains),
        ("HUB_FILE", hub),
        ("HTTP_HOST", "127.0.0.1"),
        ("HTTP_PORT", "0"),
        ("OPS_HTTP_PORT", "0"),
        ("LOG_FORMAT", "json"),
    ]
}

#[test]
fn mistakes_of_every_kind_are_told_at_once() {
    let place = TempDir::new().unwrap();
    let chains = chains(&place, json!({"0x00": [{"maxAmount": "ten"}]}));
    let hub = hub(&place, "0x12");
    for command in ["check-config", "serve"] {
        let output = intentd(
            command,
            &[
                ("ENVIRONMENT", "test"),
                ("ECDSA_PRIVATE_KEY", "0x12345678"),
                ("HTTP_PORT", "70000"),
                ("RATE_LIMITS", "keyless.qoutes=1/m,keyless.quotes=1/m"),
                ("TWO_RPC_URL", "ftp://two"),
                ("CHAINS_FILE", &chains),
                ("HUB_FILE", &hub),
            ],
        );
        let text = said(&output);
        assert!(!output.status.success(), "{text}");
        for wanted in [
            "6 mistake(s)",
            "RATE_LIMITS: keyless.qoutes: no limit has this name",
            "HTTP_PORT: ",
            "ECDSA_PRIVATE_KEY: the private key must have 64 hex digits",
            "TWO_RPC_URL: chain two: provider 1: expected http",
            "HUB_FILE: oracleAddress: ",
            "CHAINS_FILE: chain one: ",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in {text}");
        }
        assert!(!text.contains("12345678"), "{text}");
    }
}

#[test]
fn a_good_configuration_is_shown_without_secrets() {
    let place = TempDir::new().unwrap();
    let (chains, hub) = (chains(&place, json!({})), hub(&place, ORACLE));
    let output = intentd(
        "check-config",
        &[
            ("ENVIRONMENT", "test"),
            ("ECDSA_PRIVATE_KEY", KEY),
            ("API_KEYS", "s3cret:label"),
            ("DATADOG_API_KEY", "s3cret"),
            ("CHAINS_FILE", &chains),
            ("HUB_FILE", &hub),
        ],
    );
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    for wanted in [
        "relay, 1 of 1 providers",
        "serves       one",
        "logs         standard error, https://otlp.datadoghq.com",
    ] {
        assert!(text.contains(wanted), "{wanted} is not in {text}");
    }
    assert!(
        !text.contains("s3cret") && !text.contains(&KEY[2..]),
        "{text}"
    );
}

/// Where real money is at stake, one provider's word is none: who checks his configuration reads it.
#[test]
fn one_provider_of_a_chain_and_of_the_hub_is_named_before_a_start() {
    let place = TempDir::new().unwrap();
    let (chains, hub) = (chains(&place, json!({})), hub(&place, ORACLE));
    let checked = |environment: &str| {
        let variables = [
            ("ENVIRONMENT", environment),
            ("ECDSA_PRIVATE_KEY", KEY),
            ("CHAINS", "one"),
            ("CHAINS_FILE", &chains),
            ("HUB_FILE", &hub),
        ];
        said(&intentd("check-config", &variables))
    };
    let (real, testing) = (checked("mainnet"), checked("test"));
    for variable in ["ONE_RPC", "RELAY_RPC"] {
        let wanted = format!(
            "1 named provider(s) of at least 2: name more in {variable}_URL, or let one decide with {variable}_QUORUM=1"
        );
        assert!(real.contains(&wanted), "{wanted} is not in {real}");
        assert!(!testing.contains(&wanted), "{testing}");
    }
}

/// Headers of EVM chains bear out which logs their blocks have; nothing does so elsewhere.
#[test]
fn lone_provider_whose_blocks_nothing_bears_out_is_named() {
    let place = TempDir::new().unwrap();
    let chain = |id: &str, family: &str, depository: &str| {
        json!({"id": id, "vmType": family, "httpRpcUrl": "http://127.0.0.1:1/", "hubChainId": "1",
               "depository": depository})
    };
    let [evm, solana] = [
        ("ethereum-vm", "0x5fbdb2315678afecb367f032d93f642f64180aa3"),
        ("solana-vm", "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2"),
    ];
    let list = json!([chain("one", evm.0, evm.1), chain("two", solana.0, solana.1)]);
    let network = |id: &str, number: u64, native: &str, decimals: u8| {
        let coin = json!({"address": native, "symbol": "COIN", "name": "COIN", "decimals": decimals,
                          "group": "coin", "class": "major", "solver": true,
                          "prices": [{"kind": "peg", "usd": "1"}]});
        json!({"name": id, "chainId": number, "displayName": id, "currencies": [coin]})
    };
    let market = json!([
        network("one", 1, "0x0000000000000000000000000000000000000000", 18),
        network("two", 2, "11111111111111111111111111111111", 9),
    ]);
    let chains = file(&place, "chains.json", &list);
    let market = file(&place, "market.json", &market);
    let hub = hub(&place, ORACLE);
    let variables = [
        ("ENVIRONMENT", "test"),
        ("ECDSA_PRIVATE_KEY", KEY),
        ("CHAINS_FILE", &chains),
        ("HUB_FILE", &hub),
        ("MARKET_FILE", &market),
        ("SOLVER_PRIVATE_KEY", KEY),
        ("SOLVER_ED25519_KEY", KEY),
        ("SOLVER_CHAIN", "one"),
        ("INTEGRATOR_HTTP_PORT", "0"),
    ];
    let text = said(&intentd("check-config", &variables));
    let named = |network: &str| {
        let mut lines = text.lines();
        let line = lines.find(|line| line.contains("market ") && line.contains(network));
        let line = line.unwrap_or_else(|| panic!("{text}"));
        line.contains("WARNING: one provider's word")
    };
    assert_eq!(["one", "two"].map(named), [false, true], "{text}");
}

/// The log of a start that ends because the store's directory is a file.
fn log(place: &Path, chains: &str, hub: &str, extra: &[(&str, &str)]) -> Vec<Value> {
    let taken = place.join("taken");
    fs::write(&taken, "").unwrap();
    let taken = taken.display().to_string();
    let base = [
        ("ENVIRONMENT", "test"),
        ("ECDSA_PRIVATE_KEY", KEY),
        ("DATA_DIR", &taken),
        ("CHAINS_FILE", chains),
        ("HUB_FILE", hub),
        ("LOG_FORMAT", "json"),
    ];
    let output = intentd("serve", &[&base, extra].concat());
    assert!(!output.status.success());
    let text = said(&output);
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn chains_that_cannot_be_read_and_variables_in_vain_are_logged_once() {
    let place = TempDir::new().unwrap();
    let (chains, hub) = (chains(&place, json!({})), hub(&place, ORACLE));
    let warnings = |extra: &[(&str, &str)]| {
        let mut lines = log(place.path(), &chains, &hub, extra);
        lines.retain(|line| line["level"] == "WARN");
        lines
    };
    // What nobody asked for is no warning; what somebody asked for and cannot be had is one.
    assert_eq!(warnings(&[]), Vec::<Value>::new());
    let wanted = warnings(&[("CHAINS", "two,one")]);
    assert_eq!(wanted.len(), 1, "{wanted:?}");
    assert_eq!(wanted[0]["closed"], "two: no provider: set TWO_RPC_URL");
    let set = warnings(&[
        ("TWO_RPC_URL", "http://127.0.0.1:1/"),
        ("DATADOG_ENDPOINT", "https://s3cret.example/"),
    ]);
    assert_eq!(set.len(), 1, "{set:?}");
    assert_eq!(set[0]["variable"], "DATADOG_ENDPOINT");
    assert!(!format!("{set:?}").contains("s3cret"));
}

/// By its address an operator knows which oracle it is; its key is nowhere.
#[test]
fn the_start_logs_once_whose_signatures_it_makes() {
    let place = TempDir::new().unwrap();
    let (chains, hub) = (chains(&place, json!({})), hub(&place, ORACLE));
    let other = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a";
    for (key, address) in [
        (KEY, "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"),
        (other, "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc"),
    ] {
        let lines = log(place.path(), &chains, &hub, &[("ECDSA_PRIVATE_KEY", key)]);
        let of_signer = lines
            .iter()
            .filter(|line| line["message"] == "signer loaded");
        let addresses: Vec<&Value> = of_signer.map(|line| &line["address"]).collect();
        assert_eq!(addresses, [&json!(address)], "{lines:?}");
        assert!(!format!("{lines:?}").contains(&key[2..]), "{lines:?}");
    }
}

#[test]
fn a_start_from_the_example_file_says_in_one_line_what_it_serves() {
    let place = TempDir::new().unwrap();
    let taken = place.path().join("taken");
    fs::write(&taken, "").unwrap();
    let taken = taken.display().to_string();
    let base = [
        ("ENVIRONMENT", "mainnets.prod"),
        ("ECDSA_PRIVATE_KEY", KEY),
        ("DATA_DIR", &taken),
        ("LOG_FORMAT", "json"),
    ];
    let lines = |extra: &[(&str, &str)]| {
        let text = said(&intentd("serve", &[&base, extra].concat()));
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let about = |line: &Value| line["level"] == "WARN" || line["serves"].is_string();
        lines.filter(about).collect::<Vec<_>>()
    };
    let nothing = lines(&[]);
    assert_eq!(nothing.len(), 1, "{nothing:?}");
    assert_eq!(
        (&nothing[0]["level"], &nothing[0]["serves"]),
        (&"WARN".into(), &"".into())
    );
    let not = nothing[0]["not"].as_str().unwrap();
    assert_eq!(not.split(", ").count(), 72, "{not}");
    assert!(
        nothing[0]["closed"]
            .as_str()
            .unwrap()
            .contains("RELAY_RPC_URL")
    );
    let two = "https://a.example,https://b.example";
    let good = lines(&[("BASE_RPC_URL", two), ("RELAY_RPC_URL", two)]);
    let (good, routers) = good.split_at(1);
    assert_eq!(
        (&good[0]["level"], &good[0]["serves"]),
        (&"INFO".into(), &"base".into())
    );
    // The bundled list names no routers: an operator has to.
    let text = routers[0]["message"].as_str().unwrap();
    assert!(text.contains("fillRouters"), "{text}");
    assert_eq!((routers.len(), &routers[0]["chains"]), (1, &"base".into()));
}

/// The daemon with so many files, and where it answers: the public listener, the operator's.
fn with_files(files: u32, place: &TempDir) -> (Child, [String; 2]) {
    let (chains, hub) = (chains(place, json!({})), hub(place, ORACLE));
    let data = place.path().join("data").display().to_string();
    let limited = format!(
        "ulimit -n {files} && exec {}",
        env!("CARGO_BIN_EXE_intentd")
    );
    let mut child = Command::new("sh")
        .args(["-c", &limited])
        .env_clear()
        .envs(variables(&data, &chains, &hub))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut address = |message: &str| loop {
        let line = lines.next().unwrap().unwrap();
        let line: Value = serde_json::from_str(&line).unwrap_or_default();
        if line["message"] == message {
            break line["address"].as_str().unwrap().to_owned();
        }
    };
    let ops = address("operations listening");
    let oracle = address("oracle listening");
    std::thread::spawn(move || lines.for_each(drop));
    (child, [oracle, ops])
}

fn status(address: &str, path: &str) -> Option<String> {
    let mut client = TcpStream::connect(address).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1).map(str::to_owned)
}

#[test]
fn more_connections_than_files_leave_the_store_and_the_operator_theirs() {
    let place = TempDir::new().unwrap();
    let (mut child, [oracle, ops]) = with_files(160, &place);
    let held: Vec<_> = (0..400)
        .map(|_| TcpStream::connect(&oracle).unwrap())
        .collect();
    // The listener is full; whoever operates it is not kept out until its connections time out, after ten seconds.
    let begun = Instant::now();
    let ready = status(&ops, "/readyz").unwrap();
    assert_eq!(ready, "503", "nobody answers for the chains here");
    let metrics = status(&ops, "/metrics").unwrap();
    assert_eq!(metrics, "200");
    assert!(begun.elapsed() < Duration::from_secs(8));
    drop(held);
    assert_eq!(status(&oracle, "/lives/v1").as_deref(), Some("200"));
    let term = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(term.unwrap().success());
    assert!(child.wait().unwrap().success(), "the store is whole");
    assert!(!place.path().join("data/store/in-doubt").exists());
}

#[test]
fn sigterm_lets_requests_under_way_finish() {
    // The last is what the end of a terminal sends.
    for signal in ["-TERM", "-INT", "-HUP"] {
        lets_requests_finish(signal);
    }
}

/// A daemon that listens, as `env` with this option starts it: the process, its address, and what it logs from then on.
fn with_signals(option: &str, place: &TempDir) -> (Child, String, impl Iterator<Item = Value>) {
    let (chains, hub) = (chains(place, json!({})), hub(place, ORACLE));
    let data = place.path().join("data").display().to_string();
    let mut child = Command::new("/usr/bin/env")
        .args([option, env!("CARGO_BIN_EXE_intentd")])
        .env_clear()
        .envs(variables(&data, &chains, &hub))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines =
        lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap_or_default());
    let listening = lines.find(|line| line["message"] == "oracle listening");
    let address = listening.unwrap()["address"].as_str().unwrap().to_owned();
    (child, address, lines)
}

/// As under `nohup`.
#[test]
fn a_daemon_that_is_started_with_sighup_ignored_outlives_its_terminal() {
    let place = TempDir::new().unwrap();
    let (mut child, address, mut lines) = with_signals("--ignore-signal=HUP", &place);
    let id = child.id().to_string();
    let send = |signal: &str| {
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.unwrap().success());
    };
    send("-HUP");
    // A daemon that drains stops listening at once.
    for _ in 0..100 {
        assert_eq!(status(&address, "/lives/v1").as_deref(), Some("200"));
    }
    send("-TERM");
    assert!(lines.any(|line| line["message"] == "stopped"));
    assert!(child.wait().unwrap().success());
}

/// As on a full disk: nothing would be tended any more, and whoever starts it again opens the store anew.
#[test]
fn a_daemon_whose_store_fails_ends_and_can_be_started_again() {
    let place = TempDir::new().unwrap();
    // The signal would end the process before the write fails.
    let (mut child, address, mut lines) = with_signals("--ignore-signal=XFSZ", &place);
    assert_eq!(status(&address, "/lives/v1").as_deref(), Some("200"));
    let nothing = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    prlimit(Some(Pid::from_child(&child)), Resource::Fsize, nothing).unwrap();
    let (ended, end) = mpsc::channel::<()>();
    let id = child.id().to_string();
    // A daemon that goes on ends in order: the test fails.
    let patience = std::thread::spawn(move || {
        if end.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            Command::new("kill").args(["-TERM", &id]).status().unwrap();
        }
    });
    let added = Command::new(env!("CARGO_BIN_EXE_intentd"))
        .args(["integrators", "add", "shop"])
        .env_clear()
        .env("DATA_DIR", place.path().join("data"))
        .env("ENVIRONMENT", "test")
        .env("ECDSA_PRIVATE_KEY", KEY)
        .output()
        .unwrap();
    assert!(!added.status.success(), "{}", said(&added));
    let failed = |line: &Value| line["message"] == "a store failed: the daemon ends";
    let line = lines.find(failed).expect("it goes on");
    assert_eq!(line["store"], "store");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(ended);
    patience.join().unwrap();
    let (mut child, address, mut lines) = with_signals("--default-signal=XFSZ", &place);
    assert_eq!(status(&address, "/lives/v1").as_deref(), Some("200"));
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status();
    assert!(sent.unwrap().success());
    assert!(lines.any(|line| line["message"] == "stopped"));
    assert!(child.wait().unwrap().success());
}

/// Sends this to a daemon with requests under way.
fn lets_requests_finish(signal: &str) {
    let place = TempDir::new().unwrap();
    // Whoever runs the tests may ignore it.
    let (mut child, address, mut lines) = with_signals("--default-signal=HUP", &place);
    let transaction = format!("0x{}", "11".repeat(32));
    let body = json!({"chainId": "one", "transactionId": transaction}).to_string();
    let head = format!(
        "POST /attestations/depository-deposits/v1 HTTP/1.1\r\nhost: a\r\n\
         content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let connected = (0..8).map(|_| TcpStream::connect(&address).unwrap());
    let mut clients: Vec<_> = connected.collect();
    for client in &mut clients {
        client.write_all(head.as_bytes()).unwrap();
        let mut told = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
        client.read_exact(&mut told).unwrap();
    }
    let mut idle = TcpStream::connect(&address).unwrap();
    let id = child.id().to_string();
    let send = || {
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.unwrap().success());
    };
    send();
    let draining = |line: &Value| line["message"].to_string().contains("shutting down");
    assert!(lines.any(|line| draining(&line)), "{signal}");
    // Whoever cannot wait cuts nothing short.
    send();
    assert_eq!(idle.read(&mut [0]).unwrap_or(0), 0);
    for mut client in clients {
        client.write_all(body.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        // Nobody is there to read the chain from; the answer is whole all the same.
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{answer}"
        );
        assert!(body.contains("\"code\":"), "{answer}");
    }
    assert!(lines.any(|line| line["message"] == "stopped"), "{signal}");
    assert!(child.wait().unwrap().success(), "{signal}");
}
