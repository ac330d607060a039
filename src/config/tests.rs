use std::collections::BTreeSet;

use secrecy::ExposeSecret;
use vm::trade::Scheme;

use super::{variables::SECRETS, *};

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

fn read(extra: &[(&str, &str)]) -> Result<Config, Mistakes> {
    let base = [("ENVIRONMENT", "mainnets.prod"), ("ECDSA_PRIVATE_KEY", KEY)];
    Config::from_variables(
        base.iter()
            .chain(extra)
            .map(|(k, v)| ((*k).into(), (*v).into())),
    )
}

#[test]
fn defaults_are_those_of_the_example_file() {
    let config = read(&[]).unwrap();
    assert_eq!(config.listen.host.to_string(), "0.0.0.0");
    assert_eq!(config.listen.port, 3000);
    assert_eq!(config.listen.ops.to_string(), "127.0.0.1:3002");
    assert_eq!(config.data_dir, PathBuf::from("./data"));
    assert_eq!(config.peer_timeout, Duration::from_secs(5));
    assert_eq!(config.finality_profile, FinalityProfile::Network);
    assert!(config.api_keys.is_none() && config.keyless_limit.is_none());
    assert!(config.peers.is_empty() && config.multisig.is_none());
    assert!(config.is_production());
}

#[test]
fn private_webhooks_are_allowed_only_in_so_many_words_and_never_in_production() {
    let set = |environment, text| {
        let config = read(&[
            ("ENVIRONMENT", environment),
            ("CHAINS_FILE", "chains.json"),
            ("HUB_FILE", "hub.json"),
            ("INTEGRATOR_HTTP_PORT", "1"),
            ("MARKET_FILE", "market.json"),
            ("SOLVER_PRIVATE_KEY", KEY),
            ("WEBHOOK_ALLOW_PRIVATE", text),
        ]);
        config.map(|config| config.plain_webhooks())
    };
    assert_eq!(set("test", "true"), Ok(true));
    assert_eq!(set("test", "false"), Ok(false));
    assert_eq!(set("mainnets.prod", "false"), Ok(false));
    for (environment, text) in [("mainnets.prod", "true"), ("test", "1"), ("test", "TRUE")] {
        assert!(set(environment, text).is_err(), "{environment} {text}");
    }
    assert!(!read(&[]).unwrap().plain_webhooks());
}

#[test]
fn the_oracle_that_settles_is_an_http_url_without_its_last_slash() {
    let url = |url| {
        let config = read(&[
            ("CHAINS_FILE", "chains.json"),
            ("HUB_FILE", "hub.json"),
            ("INTEGRATOR_HTTP_PORT", "1"),
            ("MARKET_FILE", "market.json"),
            ("SOLVER_PRIVATE_KEY", KEY),
            ("SOLVER_ORACLE_URL", url),
        ]);
        config.map(|config| config.integrator.unwrap().oracle.unwrap().url.to_string())
    };
    let expected = "https://oracle.example/v1";
    assert_eq!(url(" https://oracle.example/v1/ ").unwrap(), expected);
    for wrong in ["oracle.example", "file:///etc/passwd"] {
        let mistakes = url(wrong).unwrap_err().to_string();
        let expected = "SOLVER_ORACLE_URL: expected an http(s) URL";
        assert!(mistakes.contains(expected), "{mistakes}");
    }
}

#[test]
fn http_port_wins_over_port() {
    assert_eq!(read(&[("PORT", "1")]).unwrap().listen.port, 1);
    assert_eq!(
        read(&[("PORT", "1"), ("HTTP_PORT", "2")])
            .unwrap()
            .listen
            .port,
        2
    );
}

#[test]
fn every_mistake_is_reported_at_once() {
    let mistakes = read(&[
        ("HTTP_PORT", "70000"),
        ("HTTP_HOST", "here"),
        ("OPS_HTTP_HOST", "there"),
        ("OPS_HTTP_PORT", "0x1"),
        ("FINALITY_PROFILE", "soon"),
        ("SIGNING_MODULE", "crystal-ball"),
        ("API_KEYS", ":label"),
        ("PEERS", "ftp://x|key;https://y"),
        ("ORACLE_SIGNERS", "0x12"),
        ("ORACLE_SIGNERS_THRESHOLD", "many"),
        ("UNAUTHENTICATED_RATE_LIMIT_MAX", "0"),
        ("LOG_FORMAT", "xml"),
        ("PEER_REQUEST_TIMEOUT_MS", "60000"),
    ])
    .unwrap_err();
    let named: BTreeSet<_> = mistakes
        .0
        .iter()
        .map(|mistake| mistake.variable.as_str())
        .collect();
    let expected = [
        "API_KEYS",
        "FINALITY_PROFILE",
        "HTTP_HOST",
        "HTTP_PORT",
        "LOG_FORMAT",
        "OPS_HTTP_HOST",
        "OPS_HTTP_PORT",
        "ORACLE_SIGNERS",
        "ORACLE_SIGNERS_THRESHOLD",
        "PEERS",
        "PEER_REQUEST_TIMEOUT_MS",
        "SIGNING_MODULE",
        "UNAUTHENTICATED_RATE_LIMIT_MAX",
    ];
    assert_eq!(named, BTreeSet::from(expected));
}

#[test]
fn proxies_are_named_and_nobody_is_trusted_by_a_number_alone() {
    let proxies = |text| read(&[("TRUSTED_PROXIES", text)]).map(|config| config.listen.proxies);
    assert_eq!(proxies(" ").unwrap(), TrustedProxies::default());
    let two = proxies("10.0.0.0/8, fd00::1,2,forwarded").unwrap();
    assert_eq!(
        (two.networks.len(), two.hops, two.forwarded),
        (2, Some(2), true)
    );
    assert_eq!(proxies("10.0.0.7").unwrap().hops, None);
    for wrong in [
        "2",
        "forwarded",
        "10.0.0.0/33",
        "proxy.example",
        "10.0.0.1,0",
    ] {
        let mistakes = proxies(wrong).unwrap_err();
        assert!(mistakes.concern("TRUSTED_PROXIES"), "{wrong}");
    }
}

#[test]
fn limits_are_numbers_in_a_window() {
    let rates = |text| read(&[("RATE_LIMITS", text)]).map(|config| config.listen.rates);
    let found = rates("keyless.quotes=30/m, elevated.quotes=5/s").unwrap();
    let shown: Vec<_> = found
        .iter()
        .map(|r| (r.name.as_str(), r.max, r.window.as_secs()))
        .collect();
    assert_eq!(
        shown,
        [("keyless.quotes", 30, 60), ("elevated.quotes", 5, 1)]
    );
    for wrong in ["keyless.quotes", "a=1", "a=0/m", "a=1/d", "a=-1/m"] {
        assert!(rates(wrong).unwrap_err().concern("RATE_LIMITS"), "{wrong}");
    }
    assert!(read(&[("CONNECTIONS_PER_ADDRESS", "0")]).is_err());
}

#[test]
fn missing_environment_and_key_stop_the_start() {
    let mistakes = Config::from_variables([("ECDSA_PRIVATE_KEY".into(), " ".into())]).unwrap_err();
    let named: Vec<_> = mistakes
        .0
        .iter()
        .map(|mistake| mistake.variable.as_str())
        .collect();
    assert_eq!(named, ["ENVIRONMENT", "ECDSA_PRIVATE_KEY"]);
}

#[test]
fn force_names_known_keys_that_no_peer_is_shown() {
    let force = |force: &str, peers: &str| {
        let keys = ("API_KEYS", "k1:one;k2:two;k3:two");
        let read = read(&[keys, ("FORCE_API_KEYS", force), ("PEERS", peers)]);
        read.map(|config| config.claims.force)
            .map_err(|mistakes| mistakes.concern("FORCE_API_KEYS"))
    };
    assert_eq!(read(&[]).unwrap().claims.force, [] as [&str; 0]);
    assert_eq!(force("one", "https://a.example|k2"), Ok(vec!["one".into()]));
    let both = vec!["one".to_owned(), "two".to_owned()];
    assert_eq!(
        force("one; two;", "https://a.example|pass-through"),
        Ok(both)
    );
    assert_eq!(force("three", ""), Err(true));
    assert_eq!(force("k1", ""), Err(true));
    assert_eq!(force("one", "https://a.example|k1"), Err(true));
    assert_eq!(
        force("two", "https://b.example;https://a.example|k3"),
        Err(true)
    );
}

#[test]
fn tolerance_of_short_claims_is_a_share() {
    let read = |text: &str| {
        let read = read(&[("SHORT_CLAIM_TOLERANCE_BPS", text)]);
        read.map(|config| config.claims.short_tolerance_bps).ok()
    };
    assert_eq!(read(""), Some(100));
    assert_eq!(read("0"), Some(0));
    assert_eq!(read("10000"), Some(10_000));
    assert_eq!(read("10001"), None);
    assert_eq!(read("1%"), None);
}

#[test]
fn nonces_of_withdrawals_are_bound_where_real_money_is_at_stake_or_as_the_operator_says() {
    let bound = |environment, nonces: &str| {
        let own = [("ENVIRONMENT", environment), ("WITHDRAWAL_NONCES", nonces)];
        read(&own).map(|config| config.bound_nonces())
    };
    for (environment, nonces, expected) in [
        ("mainnets.prod", "", true),
        ("testnets.prod", "", false),
        ("mainnets.prod", "any", false),
        ("testnets.prod", "bound", true),
    ] {
        assert_eq!(bound(environment, nonces).unwrap(), expected);
    }
    let mistakes = bound("mainnets.prod", "free").unwrap_err();
    assert!(mistakes.to_string().contains("WITHDRAWAL_NONCES"));
}

#[test]
fn calls_of_quotes_are_a_number_above_zero() {
    let calls = |text| {
        let config = read(&[("QUOTE_CALLS_PER_SECOND", text)]);
        config.map(|config| config.listen.quote_calls.get())
    };
    assert_eq!((calls("").unwrap(), calls("25").unwrap()), (200, 25));
    assert!(calls("0").is_err() && calls("-1").is_err());
}

#[test]
fn api_keys_take_the_first_two_pieces_of_an_entry() {
    let config = read(&[("API_KEYS", "k1:one:more; k2 ;;k3:three")]).unwrap();
    let keys = config.api_keys.unwrap();
    let read: Vec<_> = keys
        .iter()
        .map(|key| (key.key.expose_secret(), key.label.as_str()))
        .collect();
    assert_eq!(read, [("k1", "one"), ("k2", ""), ("k3", "three")]);
}

#[test]
fn the_last_key_of_a_peer_counts() {
    let peers = read(&[(
        "PEERS",
        "https://a|1;https://b/x/|pass-through;https://a/|2;https://c",
    )])
    .unwrap()
    .peers;
    assert_eq!(peers.len(), 3);
    assert!(matches!(&peers[2].key, PeerKey::None));
    assert!(matches!(&peers[0].key, PeerKey::Own(key) if key.expose_secret() == "2"));
    assert!(matches!(&peers[1].key, PeerKey::PassThrough));
}

#[test]
fn a_threshold_above_the_number_of_signers_is_known() {
    let one = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
    for (threshold, unreachable) in [("0", false), ("1", false), ("2", true)] {
        let set = [
            ("ORACLE_SIGNERS", one),
            ("ORACLE_SIGNERS_THRESHOLD", threshold),
        ];
        let multisig = read(&set).unwrap().multisig.unwrap();
        assert_eq!(multisig.is_unreachable(), unreachable, "{threshold}");
    }
    let twice = format!("{one};{}", one.to_uppercase().replace("0X", "0x"));
    assert!(read(&[("ORACLE_SIGNERS", &twice)]).is_err());
}

#[test]
fn secrets_are_not_printed() {
    let config = read(&[
        ("API_KEYS", "s3cret:label"),
        ("INTEGRATOR_HTTP_PORT", "1"),
        ("MARKET_FILE", "market.json"),
        ("SOLVER_PRIVATE_KEY", KEY),
        ("SOLVER_ED25519_KEY", "s3cret"),
        ("SOLVER_PREVIOUS_KEYS", "s3cret,ed25519:s3cret"),
        (
            "PEERS",
            "https://me:s3cret@a/s3cret|s3cret;https://b/s3cret",
        ),
        ("BASE_RPC_URL", "https://a/s3cret"),
        ("RELAY_RPC_URL", "https://u:s3cret@a/"),
        ("BITCOIN_MAESTRO_API_KEY", "s3cret"),
        ("DATADOG_API_KEY", "s3cret"),
    ])
    .unwrap();
    for shown in [format!("{config:?}"), format!("{config:#?}")] {
        let hidden = !shown.contains("s3cret") && !shown.contains(&KEY[2..]);
        assert!(hidden && shown.contains("label"), "{shown}");
    }
}

#[test]
fn a_solver_has_a_key_of_each_scheme_and_former_ones_of_either() {
    let keys = |set: &'static [(&str, &str)]| {
        let mut all = vec![
            ("INTEGRATOR_HTTP_PORT", "1"),
            ("MARKET_FILE", "market.json"),
            ("SOLVER_PRIVATE_KEY", KEY),
        ];
        all.extend(set);
        let integrator = read(&all).unwrap().integrator.unwrap();
        let raw = |signing: &Signing| match signing {
            Signing::RawPrivateKey(key) => key.expose_secret().to_owned(),
            other => panic!("{other:?}"),
        };
        let former = integrator.previous_keys.iter();
        let former: Vec<_> = former.map(|key| (key.scheme, raw(&key.signing))).collect();
        (integrator.ed25519_signing.as_ref().map(raw), former)
    };
    assert_eq!(keys(&[]), (None, Vec::new()));
    let (ed25519, former) = keys(&[
        ("SOLVER_ED25519_KEY", "0x01"),
        (
            "SOLVER_PREVIOUS_KEYS",
            "0x02, ed25519:0x03,,ed25519:[4, 5],0x06",
        ),
    ]);
    assert_eq!(ed25519.as_deref(), Some("0x01"));
    let (secp256k1, of_ed25519) = (Scheme::Secp256k1, Scheme::Ed25519);
    let expected = [
        (secp256k1, "0x02"),
        (of_ed25519, "0x03"),
        (of_ed25519, "[4, 5]"),
        (secp256k1, "0x06"),
    ];
    assert_eq!(
        former,
        expected.map(|(scheme, key)| (scheme, key.to_owned()))
    );
}

#[test]
fn a_price_holds_for_a_minute_or_for_as_long_as_the_operator_says() {
    let with = |set: &'static [(&str, &str)]| {
        let mut all = vec![
            ("INTEGRATOR_HTTP_PORT", "1"),
            ("MARKET_FILE", "market.json"),
            ("SOLVER_PRIVATE_KEY", KEY),
        ];
        all.extend(set);
        read(&all)
            .map(|config| config.integrator.unwrap().quote_validity)
            .map_err(|mistakes| mistakes.concern("QUOTE_VALIDITY"))
    };
    assert_eq!(with(&[]), Ok(60));
    assert_eq!(with(&[("QUOTE_VALIDITY", "1")]), Ok(1));
    assert_eq!(with(&[("QUOTE_VALIDITY", "3600")]), Ok(3_600));
    for wrong in [
        &[("QUOTE_VALIDITY", "0")],
        &[("QUOTE_VALIDITY", "3601")],
        &[("QUOTE_VALIDITY", "a minute")],
    ] {
        assert_eq!(with(wrong), Err(true), "{wrong:?}");
    }
}

#[test]
fn the_dates_of_an_old_route_are_days() {
    let with = |date: &'static [(&str, &str)]| {
        let mut all = vec![
            ("INTEGRATOR_HTTP_PORT", "1"),
            ("MARKET_FILE", "market.json"),
            ("SOLVER_PRIVATE_KEY", KEY),
        ];
        all.extend(date);
        read(&all).map(|config| config.integrator.unwrap().requests_v2)
    };
    let usual = RequestsV2 {
        deprecated_at: 1_784_678_400,
        throttled_from: 1_788_220_800,
        sunset_at: 1_795_478_400,
    };
    assert_eq!(with(&[]).unwrap(), usual);
    let later = with(&[("REQUESTS_V2_SUNSET_AT", "2026-11-25")]).unwrap();
    assert_eq!(later.sunset_at, usual.sunset_at + 86_400);
    let wrong = with(&[("REQUESTS_V2_THROTTLED_FROM", "soon")]).unwrap_err();
    assert!(wrong.concern("REQUESTS_V2_THROTTLED_FROM"), "{wrong}");
}

#[test]
fn mistakes_repeat_no_secret() {
    let mistakes = read(&[
        ("API_KEYS", ":s3cret"),
        ("INTEGRATOR_HTTP_PORT", "1"),
        ("MARKET_FILE", "market.json"),
        ("SOLVER_PRIVATE_KEY", KEY),
        ("PEERS", "s3cret://s3cret|s3cret"),
        ("SIGNING_MODULE", "other"),
    ])
    .unwrap_err();
    assert_eq!(mistakes.0.len(), 3);
    assert!(!mistakes.to_string().contains("s3cret"), "{mistakes}");
}

#[test]
fn own_secrets_are_out_of_reach_of_lists() {
    let config = read(&[
        ("API_KEYS", "s3cret"),
        ("PEERS", "https://a|s3cret"),
        ("DATADOG_API_KEY", "s3cret"),
        ("SOLVER_ED25519_KEY", "s3cret"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("AWS_SESSION_TOKEN", "s3cret"),
        ("GOOGLE_APPLICATION_CREDENTIALS_JSON", "s3cret"),
        ("BASE_RPC_URL", "https://a/"),
    ])
    .unwrap();
    for name in SECRETS {
        assert_eq!(config.variables.get(name), None, "{name}");
    }
    assert_eq!(config.variables.get("BASE_RPC_URL"), Some("https://a/"));
}

#[test]
fn variables_set_in_vain_are_known() {
    assert!(read(&[]).unwrap().unused.is_empty());
    assert!(read(&[("DATADOG_API_KEY", " ")]).unwrap().unused.is_empty());
    let config = read(&[("DATADOG_ENDPOINT", "https://logs.example")]).unwrap();
    assert_eq!(config.unused, ["DATADOG_ENDPOINT"]);
    let key = ("DATADOG_API_KEY", "k");
    assert!(read(&[key]).unwrap().unused.is_empty());
    for here in ["development", "Development"] {
        let config = read(&[("ENVIRONMENT", here), key]).unwrap();
        assert_eq!(config.unused, ["DATADOG_API_KEY"]);
        assert!(config.log_intake.is_none());
    }
}

#[test]
fn lines_are_sent_where_the_endpoint_says() {
    let key = ("DATADOG_API_KEY", " k ");
    let intake = read(&[key]).unwrap().log_intake.unwrap();
    assert_eq!(intake.url.as_str(), "https://otlp.datadoghq.com/v1/logs");
    assert_eq!(intake.key.expose_secret(), "k");
    for url in ["https://logs.example/in", "http://127.0.0.1:4318/v1/logs"] {
        let intake = read(&[key, ("DATADOG_ENDPOINT", url)]).unwrap().log_intake;
        assert_eq!(intake.unwrap().url.as_str(), url);
    }
    for url in [
        "logs.example",
        "http://logs.example",
        "ftp://127.0.0.1/",
        "https://user:pass@logs.example/",
    ] {
        let mistakes = read(&[key, ("DATADOG_ENDPOINT", url)]).unwrap_err();
        assert!(mistakes.to_string().contains("DATADOG_ENDPOINT"), "{url}");
    }
    let theirs = ("OTEL_EXPORTER_OTLP_HEADERS", "dd-api-key=another");
    let mistakes = read(&[key, theirs]).unwrap_err();
    assert!(mistakes.to_string().contains(theirs.0), "{mistakes}");
    assert!(read(&[theirs]).is_ok());
    let nowhere = [("ECDSA_PRIVATE_KEY", KEY), key].map(|(k, v)| (k.into(), v.into()));
    assert!(Config::draft(nowhere).0.log_intake.is_none());
    let mistakes = read(&[("DATADOG_API_KEY", "s3cret\nx")]).unwrap_err();
    let shown = mistakes.to_string();
    assert!(
        shown.contains("DATADOG_API_KEY") && !shown.contains("s3cret"),
        "{shown}"
    );
}

#[test]
fn production_is_told_by_the_name() {
    let table = [
        ("production", true),
        ("prod", true),
        ("PROD", true),
        ("prod-eu", true),
        ("mainnets.prod", true),
        ("testnets.prod", true),
        ("mainnet", true),
        ("Mainnet-2", true),
        ("test", false),
        ("testnet", false),
        ("testnets.dev", false),
        ("staging", false),
        ("development", false),
    ];
    for (name, expected) in table {
        assert_eq!(is_production(name), expected, "{name}");
    }
}

#[test]
fn a_draft_is_there_in_spite_of_mistakes() {
    let (config, mistakes) = Config::draft([("HTTP_PORT".into(), "x".into())]);
    assert!(
        ["ENVIRONMENT", "ECDSA_PRIVATE_KEY", "HTTP_PORT"].map(|name| mistakes.concern(name))
            == [true; 3]
    );
    assert!(!mistakes.concern("PEERS"));
    assert_eq!(
        (config.listen.port, config.environment.as_str()),
        (3000, "")
    );
}

/// The variables that the code reads: the fields of [`Raw`], those that the bundled lists name,
/// and what the log filter reads.
fn variables_of_the_code() -> BTreeSet<String> {
    use serde_aux::serde_introspection::serde_introspect;
    let read = [
        serde_introspect::<Raw>(),
        serde_introspect::<listen::Texts>(),
    ];
    let mut names: BTreeSet<String> = read.concat().iter().map(|n| n.to_uppercase()).collect();
    names.insert("RUST_LOG".into());
    names.insert("<ID>_RPC_URL".into());
    names.insert("<ID>_RPC_QUORUM".into());
    let lists = [
        include_str!("../chains/mainnets.prod.json"),
        include_str!("../chains/testnets.prod.json"),
    ];
    for list in lists {
        let entries: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(list).unwrap();
        for entry in entries {
            let additional = entry
                .get("additionalData")
                .and_then(|value| value.as_object());
            names.extend(additional.into_iter().flat_map(variables_in));
        }
    }
    for hub in [
        include_str!("../chains/hub.mainnets.prod.json"),
        include_str!("../chains/hub.testnets.prod.json"),
    ] {
        names.extend(variables_in(&serde_json::from_str(hub).unwrap()));
    }
    names
}

fn variables_in(object: &serde_json::Map<String, serde_json::Value>) -> Vec<String> {
    let texts = object.values().filter_map(|value| value.as_str());
    texts
        .filter_map(|text| text.strip_prefix('$'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn example_file_names_exactly_what_the_code_reads() {
    let text = include_str!("../../config.example.env");
    let mut named = BTreeSet::new();
    for line in text.lines() {
        let line = line.strip_prefix('#').unwrap_or(line);
        if let Some((name, _)) = line.split_once('=')
            && !name.is_empty()
            && !name.contains(' ')
        {
            assert!(named.insert(name.to_owned()), "{name} stands there twice");
        }
    }
    assert_eq!(named, variables_of_the_code());
}

#[test]
fn example_file_with_a_key_is_a_configuration() {
    let text = include_str!("../../config.example.env");
    let variables = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, value) = line.split_once('=')?;
            let value = if name == "ECDSA_PRIVATE_KEY" {
                KEY
            } else {
                value
            };
            Some((name.to_owned(), value.to_owned()))
        });
    assert!(Config::from_variables(variables).is_ok());
}

#[test]
fn webhooks_go_into_private_networks_for_development_only() {
    let trading = [
        ("INTEGRATOR_HTTP_PORT", "0"),
        ("MARKET_FILE", "market.json"),
        ("SOLVER_PRIVATE_KEY", "0x01"),
    ];
    let open = |value: &'static str, environment: &'static str| {
        let more = [
            ("WEBHOOK_ALLOW_PRIVATE", value),
            ("ENVIRONMENT", environment),
        ];
        read(&[&trading[..], &more].concat())
    };
    let allowed = |config: Config| config.integrator.unwrap().webhook_allow_private;
    assert!(!allowed(read(&trading).unwrap()));
    assert!(!allowed(open("false", "mainnets.prod").unwrap()));
    assert!(allowed(open("true", "test").unwrap()));
    for (value, environment) in [("true", "mainnets.prod"), ("maybe", "test")] {
        let mistakes = open(value, environment).unwrap_err();
        assert!(mistakes.concern("WEBHOOK_ALLOW_PRIVATE"), "{mistakes}");
    }
}

const VERSION: &str = "projects/p/locations/eu/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";

fn in_gcp(more: &[(&str, &str)]) -> Result<Config, Mistakes> {
    let module = [
        ("SIGNING_MODULE", "gcp-kms"),
        ("GCP_KMS_KEY_VERSION", VERSION),
    ];
    read(&[&module, more].concat())
}

fn in_aws(more: &[(&str, &str)]) -> Result<Config, Mistakes> {
    let module = [
        ("SIGNING_MODULE", "aws-kms"),
        ("AWS_KMS_SIGNER_KEY_ID", "alias/oracle"),
        ("AWS_KMS_SIGNER_KEY_REGION", "eu-west-1"),
    ];
    read(&[&module, more].concat())
}

#[test]
fn an_unknown_signing_module_is_told_the_three() {
    let mistakes = read(&[("SIGNING_MODULE", "vault")])
        .unwrap_err()
        .to_string();
    for known in ["raw-private-key", "gcp-kms", "aws-kms"] {
        assert!(mistakes.contains(known), "{mistakes}");
    }
}

#[test]
fn a_key_in_google_cloud_is_a_full_resource_name() {
    let config = in_gcp(&[]).unwrap();
    let Signing::GcpKms(key) = &config.signing else {
        panic!("{:?}", config.signing);
    };
    assert_eq!((key.version.as_str(), &key.endpoint), (VERSION, &None));
    // The raw key is not used: it should not be there.
    assert_eq!(config.unused, ["ECDSA_PRIVATE_KEY"]);
    let short = VERSION.strip_suffix("/cryptoKeyVersions/1").unwrap();
    for wrong in [
        short,
        "k",
        &VERSION.replace("eu", ""),
        &VERSION.replace("keyRings", "keyring"),
        &VERSION.replace("/k/", "/k k/"),
        &format!("{VERSION}/2"),
        &format!("/{VERSION}"),
    ] {
        let mistakes = in_gcp(&[("GCP_KMS_KEY_VERSION", wrong)]).unwrap_err();
        assert!(mistakes.concern("GCP_KMS_KEY_VERSION"), "{wrong}");
    }
    let missing = read(&[("SIGNING_MODULE", "gcp-kms")]).unwrap_err();
    assert!(missing.concern("GCP_KMS_KEY_VERSION"), "{missing}");
}

#[test]
fn a_key_in_aws_has_a_region_and_the_credentials_of_the_environment() {
    let secret = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("AZURE_KEY", "s3cret"),
    ];
    let config = in_aws(&secret).unwrap();
    let Signing::AwsKms(key) = &config.signing else {
        panic!("{:?}", config.signing);
    };
    assert_eq!(
        (key.key.as_str(), key.region.as_str()),
        ("alias/oracle", "eu-west-1")
    );
    let credentials: Vec<_> = key.credentials.expose();
    let names = credentials.iter().map(|(name, _)| name.as_str());
    let names: BTreeSet<_> = names.filter(|name| !name.starts_with("AWS_KMS_")).collect();
    assert_eq!(
        names,
        BTreeSet::from(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
    );
    assert!(!format!("{config:?}").contains("s3cret"));
    let missing = read(&[("SIGNING_MODULE", "aws-kms")]).unwrap_err();
    assert!(missing.concern("AWS_KMS_SIGNER_KEY_ID"), "{missing}");
    assert!(missing.concern("AWS_KMS_SIGNER_KEY_REGION"), "{missing}");
    let wrong = in_aws(&[("AWS_KMS_SIGNER_KEY_REGION", "eu.example/")]).unwrap_err();
    assert!(wrong.concern("AWS_KMS_SIGNER_KEY_REGION"), "{wrong}");
}

#[test]
fn a_key_service_is_asked_over_tls_where_others_rely_on_it() {
    let allowed = |environment: &str, url: &str| {
        let more = |variable| [("ENVIRONMENT", environment), (variable, url)];
        let gcp = in_gcp(&more("GCP_KMS_ENDPOINT"));
        let aws = in_aws(&more("AWS_KMS_ENDPOINT"));
        assert_eq!(gcp.is_ok(), aws.is_ok(), "{url}");
        let named = |mistakes: Mistakes| mistakes.concern("GCP_KMS_ENDPOINT");
        assert!(gcp.map_or_else(named, |_| true), "{url}");
        aws.is_ok()
    };
    for (url, in_production) in [
        ("https://kms.example/", true),
        ("http://127.0.0.1:1", true),
        ("http://[::1]:1", true),
        ("http://localhost:1", true),
        ("http://10.0.0.1/", false),
        ("http://localhost.example/", false),
    ] {
        assert_eq!(allowed("mainnets.prod", url), in_production, "{url}");
        assert!(allowed("test", url), "{url}");
    }
    for wrong in ["kms.example", "ftp://kms.example", "https://"] {
        assert!(!allowed("test", wrong), "{wrong}");
    }
}

#[test]
fn a_solvers_key_may_be_in_a_key_service_of_its_own() {
    let with = |more: &[(&str, &str)]| {
        let base = [
            ("INTEGRATOR_HTTP_PORT", "1"),
            ("MARKET_FILE", "market.json"),
        ];
        read(&[&base, more].concat())
    };
    let gcp = ("SOLVER_SIGNING_MODULE", "gcp-kms");
    let aws = ("SOLVER_SIGNING_MODULE", "aws-kms");
    let version = ("SOLVER_GCP_KMS_KEY_VERSION", VERSION);
    let config = with(&[gcp, version, ("SOLVER_PRIVATE_KEY", KEY)]).unwrap();
    assert_eq!(config.unused, ["SOLVER_PRIVATE_KEY"]);
    assert!(matches!(config.signing, Signing::RawPrivateKey(_)));
    let solver = config.integrator.unwrap().solver_signing;
    assert!(matches!(solver, Signing::GcpKms(key) if key.version == VERSION));
    let named = [
        ("SOLVER_AWS_KMS_KEY_ID", "1234abcd"),
        ("SOLVER_AWS_KMS_KEY_REGION", "eu-west-1"),
    ];
    let config = with(&[&[aws][..], &named].concat()).unwrap();
    let solver = config.integrator.unwrap().solver_signing;
    assert!(matches!(solver, Signing::AwsKms(key) if key.key == "1234abcd"));
    for (set, variable) in [
        (vec![], "SOLVER_PRIVATE_KEY"),
        (
            vec![("SOLVER_SIGNING_MODULE", "crystal-ball")],
            "SOLVER_SIGNING_MODULE",
        ),
        (vec![gcp], "SOLVER_GCP_KMS_KEY_VERSION"),
        // The oracle's key is not the solver's.
        (
            vec![gcp, ("GCP_KMS_KEY_VERSION", VERSION)],
            "SOLVER_GCP_KMS_KEY_VERSION",
        ),
        (vec![aws, named[1]], "SOLVER_AWS_KMS_KEY_ID"),
        (vec![aws, named[0]], "SOLVER_AWS_KMS_KEY_REGION"),
        // Another key one day.
        (
            vec![aws, ("SOLVER_AWS_KMS_KEY_ID", "alias/solver"), named[1]],
            "SOLVER_AWS_KMS_KEY_ID",
        ),
        // The raw key is not used in silence.
        (
            vec![("SOLVER_PRIVATE_KEY", KEY), version],
            "SOLVER_SIGNING_MODULE",
        ),
    ] {
        let mistakes = with(&set).unwrap_err();
        let all: Vec<_> = mistakes.0.iter().map(|one| &one.variable[..]).collect();
        assert_eq!(all, [variable], "{mistakes}");
    }
}

const ARN: &str = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd";

/// A solver with a raw secp256k1 key.
fn solver(more: &[(&str, &str)]) -> Result<Config, Mistakes> {
    let base = [
        ("INTEGRATOR_HTTP_PORT", "1"),
        ("MARKET_FILE", "market.json"),
        ("SOLVER_PRIVATE_KEY", KEY),
    ];
    read(&[&base, more].concat())
}

#[test]
fn a_solvers_ed25519_key_may_be_in_a_key_service_of_its_own() {
    let gcp = ("SOLVER_ED25519_SIGNING_MODULE", "gcp-kms");
    let aws = ("SOLVER_ED25519_SIGNING_MODULE", "aws-kms");
    let version = ("SOLVER_ED25519_GCP_KMS_KEY_VERSION", VERSION);
    let named = [
        ("SOLVER_ED25519_AWS_KMS_KEY_ID", ARN),
        ("SOLVER_ED25519_AWS_KMS_KEY_REGION", "eu-west-1"),
    ];
    let unset = ("SOLVER_ED25519_SIGNING_MODULE", "raw-private-key");
    let key = |set: &[(&str, &str)]| {
        let config = solver(set).unwrap();
        config.integrator.unwrap().ed25519_signing
    };
    assert!(key(&[unset]).is_none());
    assert!(matches!(key(&[gcp, version]), Some(Signing::GcpKms(key)) if key.version == VERSION));
    let in_aws = key(&[&[aws][..], &named].concat());
    assert!(matches!(in_aws, Some(Signing::AwsKms(key)) if key.key == ARN));
    let raw = ("SOLVER_ED25519_KEY", "0x01");
    assert_eq!(solver(&[gcp, version, raw]).unwrap().unused, [raw.0]);
    for (set, variable) in [
        (vec![("SOLVER_ED25519_SIGNING_MODULE", "vault")], unset.0),
        (vec![gcp], version.0),
        // The other keys of the solver and of the oracle are no such keys.
        (
            vec![gcp, ("SOLVER_GCP_KMS_KEY_VERSION", VERSION)],
            version.0,
        ),
        (vec![aws, named[1]], named[0].0),
        (vec![named[1]], unset.0),
        (vec![aws, named[0]], named[1].0),
        (
            vec![aws, (named[0].0, "alias/solver"), named[1]],
            named[0].0,
        ),
        (vec![raw, version], unset.0),
    ] {
        let mistakes = solver(&set).unwrap_err();
        assert!(mistakes.concern(variable), "{variable}: {mistakes}");
    }
}

#[test]
fn former_keys_in_a_key_service_are_named_for_good() {
    let former = |list: &str| solver(&[("SOLVER_PREVIOUS_KEYS", list)]);
    let list = format!("gcp-kms:{VERSION}, ed25519:aws-kms:{ARN},0x02");
    let keys = former(&list).unwrap().integrator.unwrap().previous_keys;
    let [in_gcp, in_aws, raw] = &keys[..] else {
        panic!("{keys:?}");
    };
    assert_eq!(in_gcp.scheme, Scheme::Secp256k1);
    assert!(matches!(&in_gcp.signing, Signing::GcpKms(key) if key.version == VERSION));
    assert_eq!(in_aws.scheme, Scheme::Ed25519);
    let Signing::AwsKms(key) = &in_aws.signing else {
        panic!("{in_aws:?}");
    };
    assert_eq!((key.key.as_str(), key.region.as_str()), (ARN, "eu-west-1"));
    assert!(matches!(raw.signing, Signing::RawPrivateKey(_)));
    for wrong in [
        "gcp-kms:",
        "gcp-kms:key",
        "aws-kms:",
        "aws-kms:1234abcd",
        "aws-kms:alias/solver",
        "aws-kms:arn:aws:kms:eu-west-1:111122223333:alias/solver",
        "aws-kms:arn:aws:kms::111122223333:key/1234abcd",
        "aws-kms:arn:aws:s3:eu-west-1:111122223333:key/1234abcd",
    ] {
        let mistakes = former(wrong).unwrap_err();
        let all = mistakes.0.iter().map(|one| one.variable.as_str());
        assert_eq!(all.collect::<Vec<_>>(), ["SOLVER_PREVIOUS_KEYS"], "{wrong}");
    }
}

#[test]
fn a_shadow_needs_no_key_and_is_an_oracle_only() {
    let shadow = |set: &[(&str, &str)]| {
        let own = [("ENVIRONMENT", "mainnets.prod"), ("SHADOW", "1")];
        let all = own.iter().chain(set);
        let all = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::from_variables(all)
    };
    let config = shadow(&[("SHADOW_OF", "https://oracle.example/")]).unwrap();
    assert!(matches!(config.signing, Signing::Nobody));
    let of = config.shadow.unwrap().of.unwrap();
    assert_eq!(of.as_str(), "https://oracle.example/");
    assert_eq!(shadow(&[]).unwrap().shadow.unwrap().of, None);
    let key = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    assert_eq!(
        shadow(&[("ECDSA_PRIVATE_KEY", key)]).unwrap().unused,
        ["ECDSA_PRIVATE_KEY"]
    );
    for (set, wanted) in [
        (
            &[("SHADOW", "yes"), ("ECDSA_PRIVATE_KEY", key)][..],
            "SHADOW: expected 1 or 0",
        ),
        (
            &[("SHADOW_OF", "oracle.example")],
            "SHADOW_OF: expected an http(s) URL",
        ),
        (
            &[("SHADOW_OF", "file:///etc/passwd")],
            "SHADOW_OF: expected an http(s) URL",
        ),
        (
            &[
                ("SHADOW", "0"),
                ("SHADOW_OF", "https://o/"),
                ("ECDSA_PRIVATE_KEY", key),
            ],
            "SHADOW_OF: needs SHADOW=1",
        ),
        (
            &[("INTEGRATOR_HTTP_PORT", "1"), ("SOLVER_PRIVATE_KEY", key)],
            "SHADOW: a shadow settles nothing",
        ),
    ] {
        let mistakes = shadow(set).unwrap_err().to_string();
        assert!(mistakes.contains(wanted), "{wanted}: {mistakes}");
    }
    assert_eq!(read(&[("SHADOW", "0")]).unwrap().shadow, None);
}
