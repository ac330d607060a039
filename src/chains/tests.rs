use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::{
    providers::{self, variable},
    *,
};

fn config(extra: &[(&str, &str)]) -> Config {
    let base = [
        ("ENVIRONMENT", "mainnets.prod"),
        ("ECDSA_PRIVATE_KEY", "0x01"),
    ];
    Config::from_variables(
        base.iter()
            .chain(extra)
            .map(|(k, v)| ((*k).into(), (*v).into())),
    )
    .unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

fn load(extra: &[(&str, &str)]) -> Result<Chains, Mistakes> {
    let runtime = runtime();
    let _guard = runtime.enter();
    Chains::load(&config(extra))
}

fn unasked(chains: &Chains) -> Chains {
    let runtime = runtime();
    let _guard = runtime.enter();
    chains.unasked().unwrap()
}

fn opened<'a>(chains: &'a Chains, id: &str) -> &'a Opened {
    chains.get(id).unwrap().chain.as_ref().unwrap()
}

#[test]
fn bundled_mainnets_hold_72_chains_with_their_finality() {
    let named = ["BASE_RPC_URL", "POLYGON_RPC_URL"].map(|name| (name, "https://a.example"));
    let chains = load(&named).unwrap();
    assert_eq!(chains.list().len(), 72);
    assert_eq!(opened(&chains, "polygon").chain.spec.finality.blocks, 50);
    assert_eq!(opened(&chains, "base").chain.spec.finality.blocks, 10);
    assert_eq!(opened(&chains, "base").chain.spec.finality.seconds, 60);
    assert_eq!(chains.hub_entry()["oracleVersion"], "2");
    // No provider is published for it, one is for the other, and the operator named none.
    for (id, variable) in [("tempo", "TEMPO_RPC_URL"), ("arbitrum", "ARBITRUM_RPC_URL")] {
        let why = chains.get(id).unwrap().chain.as_ref().err().unwrap();
        assert!(why.to_string().contains(variable), "{why}");
    }
}

/// The bundled lists of mainnets where nothing real is at stake.
const STAGING: [(&str, &str); 3] = [
    ("ENVIRONMENT", "staging"),
    ("CHAINS_FILE", "src/chains/mainnets.prod.json"),
    ("HUB_FILE", "src/chains/hub.mainnets.prod.json"),
];
const TWO: &str = "https://a.example,https://b.example";

fn why_not(chains: &Chains, id: &str) -> Option<Closed> {
    chains.get(id).unwrap().attested().err()
}

#[test]
fn real_money_rests_on_two_named_providers_or_on_the_operators_word() {
    let few = |named, id: &str| {
        Some(Closed::FewProviders {
            named,
            urls: variable(id, "RPC_URL"),
            quorum: variable(id, "RPC_QUORUM"),
        })
    };
    let (one, hub) = ("https://a.example", ("RELAY_RPC_URL", TWO));
    type Variables<'a> = &'a [(&'a str, &'a str)];
    let cases: &[(Variables<'_>, Option<Closed>)] = &[
        (&[("BASE_RPC_URL", TWO)], None),
        (&[("BASE_RPC_URL", one)], few(1, "base")),
        (&[("BASE_RPC_URL", one), ("BASE_RPC_QUORUM", "1")], None),
        (&[("BASE_RPC_URL", TWO), ("BASE_RPC_QUORUM", "1")], None),
        (&[("CHAINS", "base")], few(0, "base")),
        // One that the operator names may decide, the public endpoint never.
        (
            &[("CHAINS", "base"), ("BASE_RPC_QUORUM", "1")],
            few(0, "base"),
        ),
        (
            &[("CHAINS", "ethereum"), ("BASE_RPC_URL", TWO)],
            Some(Closed::NotServed),
        ),
    ];
    for (set, expected) in cases {
        let chains = load(&[set, &[hub][..]].concat()).unwrap();
        assert_eq!(why_not(&chains, "base"), *expected, "{set:?}");
        assert_eq!(chains.foundation(), Ok(()));
    }
    // The same of the settlement chain, which everything rests on.
    for (set, named) in [(&[][..], 0), (&[("RELAY_RPC_URL", one)][..], 1)] {
        let chains = load(&[set, &[("BASE_RPC_URL", TWO)]].concat()).unwrap();
        assert_eq!(chains.foundation().err(), few(named, "relay"));
    }
    let set = [("RELAY_RPC_URL", one), ("RELAY_RPC_QUORUM", "1")];
    assert_eq!(load(&set).unwrap().foundation(), Ok(()));
    assert!(matches!(
        load(&[]).unwrap().allocator().err(),
        Some(Closed::FewProviders { .. })
    ));
}

#[test]
fn keys_of_owners_rest_on_as_many_providers_as_statements() {
    let keys = |set: &[(&str, &str)]| {
        let chains = load(&[set, &[("RELAY_RPC_URL", TWO)]].concat()).unwrap();
        let ton = chains.get("ton").unwrap();
        assert!(ton.attested().is_err() && !ton.served);
        let asked = ton.keys.as_ref().unwrap().as_ref();
        let required = asked.map_or(0, |asked| asked.required);
        assert_eq!(chains.required("ton"), Some(required));
        ton.owner_keys().unwrap().err()
    };
    let few = |named| Closed::FewProviders {
        named,
        urls: "TON_RPC_URL".into(),
        quorum: "TON_RPC_QUORUM".into(),
    };
    let one = ("TON_RPC_URL", "https://a.example");
    assert_eq!(keys(&[]), Some(few(0)));
    assert_eq!(keys(&[one]), Some(few(1)));
    assert_eq!(keys(&[one, ("TON_RPC_QUORUM", "1")]), None);
    // What `CHAINS` names is attested; keys are not.
    assert_eq!(keys(&[("TON_RPC_URL", TWO), ("CHAINS", "base")]), None);
    let chains = load(&[]).unwrap();
    assert!(chains.get("base").unwrap().owner_keys().is_none());
    // What their signatures are judged by is among the rules.
    let rules = load(&[]).unwrap().rules().to_string();
    assert!(rules.contains(r#""signDataDomain":"relay.link""#));
    assert!(rules.contains(r#""genesisHash":"F6Op"#), "{rules}");
    let wrong = load(&[("TON_RPC_URL", "no url")])
        .err()
        .unwrap()
        .to_string();
    assert_eq!(wrong.matches("provider 1 is no URL").count(), 1, "{wrong}");
}

#[test]
fn rules_are_those_of_the_files_whoever_is_asked() {
    let rules = |set: &[(&str, &str)]| load(set).unwrap().rules();
    let asked = [
        ("BASE_RPC_URL", TWO),
        ("BASE_RPC_QUORUM", "1"),
        ("TON_RPC_URL", TWO),
        ("RELAY_RPC_URL", TWO),
        ("AURORA_RPC_URL", TWO),
        ("BITCOIN_RPC_URL", TWO),
        (
            "BITCOIN_ESPLORA_COMPATIBLE_API_URL",
            "https://index.example/api",
        ),
        ("BITCOIN_MAESTRO_API_KEY", "s3cret"),
        ("CHAINS", "base"),
    ];
    let own = rules(&[]);
    assert_eq!(rules(&asked), own);
    let listed = own["chains"].as_object().unwrap();
    assert!(listed.len() > 60, "{}", listed.len());
    assert_eq!(listed["base"]["finality"]["blocks"], 10);
    assert_eq!(own["settlement"]["id"], "relay");
    assert_eq!(own["allocator"]["id"], ALLOCATOR);
    assert_ne!(rules(&[("FINALITY_PROFILE", "strict")]), own);
}

#[test]
fn what_decides_a_judgement_is_among_the_rules_and_what_does_not_is_not() {
    let rules = |fields: &str, additional: &str| {
        let chains = with_file(&format!(
            r#"[{{"id":"x","vmType":"ethereum-vm","hubChainId":"1"{fields},"additionalData":{{"x":1{additional}}}}}]"#
        ));
        chains.unwrap().rules()["chains"]["x"].clone()
    };
    let own = rules("", "");
    for fields in [
        r#","depository":"0x5fbdb2315678afecb367f032d93f642f64180aa3""#,
        r#","fillRouters":["0x5fbdb2315678afecb367f032d93f642f64180aa3"]"#,
    ] {
        assert_ne!(rules(fields, ""), own, "{fields}");
    }
    for additional in [
        r#","finalizationBlocks":7"#,
        r#","finalizationTime":7"#,
        r#","finalityTag":"safe""#,
        r#","isZksyncStack":true"#,
        r#","fastMode":{}"#,
        r#","genesisHash":"x""#,
    ] {
        assert_ne!(rules("", additional), own, "{additional}");
    }
    for (fields, additional) in [
        (r#","httpRpcUrl":"http://a""#, ""),
        ("", r#","rpcApiKey":"s3cret""#),
        ("", r#","depositScan":"blocks""#),
    ] {
        assert_eq!(rules(fields, additional), own, "{fields}{additional}");
    }
    let two = [
        "0x5fbdb2315678afecb367f032d93f642f64180aa3",
        "0x000000000000000000000000000000000000000a",
    ];
    let [one, other] = [[two[0], two[1]], [two[1], two[0]]]
        .map(|[first, second]| rules(&format!(r#","fillRouters":["{first}","{second}"]"#), ""));
    assert_eq!(one, other);
}

/// Whoever judges over evidence names nobody.
#[test]
fn chains_are_open_and_served_for_evidence_whoever_is_named() {
    for set in [&[][..], &[("BASE_RPC_URL", TWO), ("CHAINS", "base")][..]] {
        let named = load(set).unwrap();
        let unasked = unasked(&named);
        assert_eq!(unasked.rules(), named.rules());
        assert_eq!(unasked.foundation(), Ok(()));
        let readable = |loaded: &&Loaded| vm::family(&loaded.vm_type).unwrap().open.is_some();
        let mut open = 0;
        for loaded in unasked.list().iter().filter(readable) {
            let opened = loaded.attested().unwrap();
            let spec = &opened.chain.spec;
            assert_eq!((opened.providers, opened.named), (0, false));
            assert_eq!(unasked.required(spec.id.as_str()), Some(0));
            open += 1;
        }
        assert!(open > 50, "{open}");
        assert!(unasked.attested_hub().is_ok() && unasked.allocator().is_ok());
        let ton = unasked.get("ton").unwrap();
        assert!(ton.attested().is_err() && ton.owner_keys().unwrap().is_ok());
        assert_eq!(unasked.providers(), 0);
    }
    let chains = load(&[("BASE_RPC_URL", TWO)]).unwrap();
    let required = |id: &str| chains.required(id);
    assert_eq!((required("base"), required("ethereum")), (Some(2), Some(0)));
    assert_eq!(required("elsewhere"), None);
}

#[test]
fn a_router_that_the_solver_fills_through_is_a_rule_also_where_nobody_is_asked() {
    let router = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
    for set in [&[][..], &[("BASE_RPC_URL", TWO)][..]] {
        let mut chains = load(set).unwrap();
        let own = chains.rules();
        chains.accept_router("base", router);
        assert_ne!(chains.rules(), own, "{set:?}");
        let unasked = unasked(&chains);
        let spec = &opened(&unasked, "base").chain.spec;
        let router = spec.family.address(router).unwrap();
        assert!(spec.fill_routers.accepts(&router));
    }
}

#[test]
fn public_endpoints_serve_development_and_testnets() {
    let testnets = [("ENVIRONMENT", "testnets.prod"), ("CHAINS", "sepolia")];
    for (set, id) in [(&testnets[..], "sepolia"), (&STAGING, "base")] {
        let set = [set, &[("CHAINS", id)]].concat();
        let chains = load(&set).unwrap();
        let opened = chains.get(id).unwrap().attested().unwrap();
        assert!(!opened.named);
        assert_eq!(chains.foundation(), Ok(()));
    }
}

#[test]
fn what_is_served_is_what_chains_names_or_has_a_named_provider() {
    let served = |extra: &[(&str, &str)]| {
        let chains = load(&[&STAGING, extra].concat()).unwrap();
        let served = chains.list().iter().filter(|loaded| loaded.served);
        served.map(|loaded| loaded.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(served(&[]), Vec::<String>::new());
    assert_eq!(served(&[("BASE_RPC_URL", TWO)]), ["base"]);
    assert_eq!(
        served(&[("BASE_RPC_URL", TWO), ("CHAINS", "zora, ethereum")]),
        ["ethereum", "zora"]
    );
    // Nobody waits for what this version cannot read.
    assert_eq!(served(&[("TON_RPC_URL", TWO)]), Vec::<String>::new());
    assert_eq!(served(&[("SOLANA_RPC_URL", TWO)]), ["solana"]);
    let unknown = load(&[("CHAINS", "base,bse")]).err().unwrap();
    assert!(
        unknown.to_string().contains("CHAINS: bse is not"),
        "{unknown}"
    );
}

#[test]
fn bundled_testnets_load() {
    let chains = load(&[("ENVIRONMENT", "testnets.prod")]).unwrap();
    assert_eq!(
        chains
            .list()
            .iter()
            .map(|c| c.id.as_str())
            .collect::<Vec<_>>(),
        ["base-sepolia", "sepolia"]
    );
}

#[test]
fn majority_is_the_default_and_the_operator_may_ask_for_more() {
    let three = "https://a.example,https://b.example, https://c.example/key";
    let chains = load(&[("BASE_RPC_URL", three)]).unwrap();
    assert_eq!(
        (
            opened(&chains, "base").required,
            opened(&chains, "base").providers
        ),
        (2, 3)
    );
    let chains = load(&[("BASE_RPC_URL", three), ("BASE_RPC_QUORUM", "3")]).unwrap();
    assert_eq!(opened(&chains, "base").required, 3);
    // One provider of two is no majority.
    let chains = load(&[("BASE_RPC_URL", "https://a.example,https://b.example")]).unwrap();
    assert_eq!(opened(&chains, "base").required, 2);
}

#[test]
fn chains_of_the_hub_file_have_quorums_and_finality_of_their_own() {
    let chains = load(&STAGING).unwrap();
    let allocator = chains.allocator().unwrap();
    // The published endpoint, which nobody chose.
    assert!(!allocator.named);
    let spec = &allocator.chain.spec;
    assert_eq!(spec.hub_chain_id, vm::U256::from(1_313_161_554));
    assert_eq!((spec.finality.blocks, spec.finality.seconds), (10, 60));
    let three = "https://a.example,https://b.example,https://c.example";
    let set = [("AURORA_RPC_URL", three), ("AURORA_RPC_QUORUM", "3")];
    let chains = load(&set).unwrap();
    let allocator = chains.allocator().unwrap();
    assert!((allocator.named, allocator.providers, allocator.required) == (true, 3, 3));
    let chains = load(&[("ENVIRONMENT", "testnets.prod")]).unwrap();
    let why = chains.allocator().err().unwrap();
    assert!(why.to_string().contains("auroraAllocatorAddress"), "{why}");

    let file = tempfile::NamedTempFile::new().unwrap();
    let hub = r#"{"id":"relay","evmChainId":"1","httpRpcUrl":"http://a/","auroraEvmChainId":"x",
        "additionalData":{"finalizationBlocks":2},"auroraAllocatorAddress":"0x1"}"#;
    std::fs::write(file.path(), hub).unwrap();
    let text = load(&[("HUB_FILE", file.path().to_str().unwrap())]);
    let text = text.err().unwrap().to_string();
    assert!(text.contains("allocator: hubChainId"), "{text}");
    std::fs::write(file.path(), hub.replace("\"x\"", "\"2\"")).unwrap();
    let chains = load(&[("HUB_FILE", file.path().to_str().unwrap())]).unwrap();
    assert_eq!(chains.hub().unwrap().chain.spec.finality.blocks, 2);
    let why = chains.allocator().err().unwrap().to_string();
    assert!(why.contains("AURORA_RPC_URL"), "{why}");
}

#[test]
fn quorum_below_a_majority_is_seen() {
    let urls = ["a", "b", "c", "d", "e"].map(|host| format!("https://{host}.example"));
    for (providers, quorum, minority) in [
        (1, "1", false),
        (2, "1", true),
        (2, "2", false),
        (3, "1", true),
        (3, "2", false),
        (4, "2", true),
        (4, "3", false),
        (5, "2", true),
    ] {
        let urls = urls[..providers].join(",");
        let chains = load(&[("BASE_RPC_URL", &urls), ("BASE_RPC_QUORUM", quorum)]).unwrap();
        let decides = opened(&chains, "base").minority_decides();
        assert_eq!(decides, minority, "{quorum} of {providers}");
    }
}

#[test]
fn every_provider_is_opened_for_trading_where_the_family_trades() {
    let three = "https://a.example,https://b.example, https://c.example/key";
    let bitcoin = ("BITCOIN_RPC_URL", "https://a.example");
    let hub = ("RELAY_RPC_URL", "https://b.example");
    let chains = load(&[("BASE_RPC_URL", three), bitcoin, hub]).unwrap();
    assert_eq!(opened(&chains, "base").trading_providers.len(), 3);
    assert_eq!(opened(&chains, "bitcoin").trading_providers.len(), 1);
    assert_eq!(chains.hub().unwrap().trading_providers.len(), 1);
}

#[test]
fn strict_profile_demands_the_finalized_tag() {
    let base = ("BASE_RPC_URL", "https://a.example");
    let chains = load(&[base, ("FINALITY_PROFILE", "strict")]).unwrap();
    assert_eq!(
        opened(&chains, "base").chain.spec.finality.tag,
        Some(vm::FinalityTag::Finalized)
    );
    let chains = load(&[base]).unwrap();
    assert_eq!(opened(&chains, "base").chain.spec.finality.tag, None);
    // A chain that names no final block would never be final.
    let chains = load(&[
        ("FINALITY_PROFILE", "strict"),
        ("BITCOIN_RPC_URL", "https://a.example"),
    ])
    .unwrap();
    assert_eq!(opened(&chains, "bitcoin").chain.spec.finality.tag, None);
}

#[test]
fn bitcoin_in_production_is_known_by_its_first_block() {
    let genesis = |environment: &str, id: &str, more: &str| {
        let text = format!(
            r#"[{{"id":"{id}","vmType":"bitcoin-vm","httpRpcUrl":"http://a","hubChainId":"1"{more}}}]"#
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let set = [
            ("ENVIRONMENT", environment),
            ("CHAINS_FILE", file.path().to_str().unwrap()),
            ("HUB_FILE", "src/chains/hub.mainnets.prod.json"),
            ("CHAINS", id),
        ];
        let chains = load(&set).unwrap();
        let opened = opened(&chains, id);
        let known = opened.chain.spec.additional.get("genesisHash");
        // Whoever starts it is told where nothing is known.
        assert_eq!(opened.checks_network, known.is_some(), "{environment} {id}");
        let lacks = chains.get(id).unwrap().lacks_network();
        assert_eq!(lacks, known.is_none(), "{environment} {id}");
        known.map(|hash| hash.as_str().unwrap()[..12].to_owned())
    };
    let mainnet = Some("000000000019".to_owned());
    assert_eq!(genesis("mainnets.prod", "bitcoin", ""), mainnet);
    assert_eq!(genesis("own.prod", "bitcoin", ""), mainnet);
    let own = r#","additionalData":{"genesisHash":"000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943"}"#;
    let testnet = Some("000000000933".to_owned());
    assert_eq!(genesis("mainnets.prod", "bitcoin", own), testnet);
    assert_eq!(genesis("testnets.prod", "bitcoin-testnet", ""), None);
    assert_eq!(genesis("test", "bitcoin", ""), None);
}

/// On another network an owner's account is somebody else's, or had another key.
#[test]
fn who_says_keys_of_owners_without_a_network_is_told() {
    let lacks = |environment: &str, (id, family): (&str, &str), additional: &str| {
        let text = format!(
            r#"[{{"id":"{id}","vmType":"{family}","httpRpcUrl":"http://a","hubChainId":"1","additionalData":{{{additional}}}}}]"#
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let set = [
            ("ENVIRONMENT", environment),
            ("CHAINS_FILE", file.path().to_str().unwrap()),
            ("HUB_FILE", "src/chains/hub.mainnets.prod.json"),
        ];
        let chains = load(&set).unwrap();
        let loaded = chains.get(id).unwrap();
        let keys = loaded.keys.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(loaded.lacks_network(), !keys.checks_network, "{id}");
        loaded.lacks_network()
    };
    let domain = r#""signDataDomain":"relay.link""#;
    let (ton, lighter) = (("ton", "ton-vm"), ("lighter", "lighter-vm"));
    assert!(lacks("test", ton, domain));
    assert!(lacks("test", lighter, ""));
    assert!(lacks("own.prod", ("another", "ton-vm"), domain));
    assert!(lacks("own.prod", ("another", "lighter-vm"), ""));
    // In production these names are the main networks'.
    assert!(!lacks("own.prod", ton, domain));
    assert!(!lacks("own.prod", lighter, ""));
    let genesis = format!(r#"{domain},"genesisHash":"x""#);
    assert!(!lacks("test", ton, &genesis));
    let contract = r#""contractAddress":"0x5fbdb2315678afecb367f032d93f642f64180aa3""#;
    assert!(!lacks("test", lighter, contract));
}

/// The index that an entry names is a provider like the others: it counts, and must be another machine.
#[test]
fn an_index_that_the_entry_names_votes_beside_the_nodes() {
    let index = (
        "BITCOIN_ESPLORA_COMPATIBLE_API_URL",
        "https://index.example/api",
    );
    let node = ("BITCOIN_RPC_URL", "https://a.example");
    let both = load(&[node, index]).unwrap();
    let bitcoin = opened(&both, "bitcoin");
    assert_eq!((bitcoin.providers, bitcoin.required), (2, 2));
    assert!(bitcoin.named && bitcoin.few.is_none() && bitcoin.chain.state.is_some());
    let alone = load(&[index]).unwrap();
    let bitcoin = opened(&alone, "bitcoin");
    assert_eq!((bitcoin.providers, bitcoin.named), (1, true));
    assert!(bitcoin.few.is_some());
    let without = load(&[node, ("BITCOIN_ESPLORA_COMPATIBLE_API_URL", "")]).unwrap();
    assert_eq!(opened(&without, "bitcoin").providers, 1);
    for wrong in ["https://a.example/api", "ftp://s3cret.example", "s3cret"] {
        let set = [node, ("BITCOIN_ESPLORA_COMPATIBLE_API_URL", wrong)];
        let mistakes = load(&set).err().unwrap().to_string();
        assert!(
            mistakes.contains("bitcoin") && !mistakes.contains("s3cret"),
            "{mistakes}"
        );
    }
    let half = [node, index, ("BITCOIN_BLOCKSTREAM_CLIENT_ID", "s3cret")];
    let mistakes = load(&half).err().unwrap().to_string();
    assert!(mistakes.contains("blockstreamClientSecret"), "{mistakes}");
    assert!(!mistakes.contains("s3cret"), "{mistakes}");
}

#[test]
fn impossible_providers_stop_the_start_without_showing_their_secrets() {
    let cases = [
        (
            "BASE_RPC_URL",
            "https://a.example/s3cret,https://a.example/s3cret",
            "twice",
        ),
        (
            "BASE_RPC_URL",
            "https://a.example/s3cret,https://a.example/other",
            "host of another",
        ),
        ("BASE_RPC_URL", "ftp://a.example/s3cret", "expected http"),
        ("BASE_RPC_URL", "s3cret", "no URL"),
    ];
    for (name, value, what) in cases {
        let text = load(&[(name, value)]).err().unwrap().to_string();
        assert!(
            text.contains(what) && text.contains(name),
            "{value}: {text}"
        );
        assert!(!text.contains("s3cret"), "{text}");
    }
    for quorum in ["0", "2", "x"] {
        let set = [
            ("BASE_RPC_URL", "https://a.example"),
            ("BASE_RPC_QUORUM", quorum),
        ];
        assert!(
            load(&set)
                .err()
                .unwrap()
                .to_string()
                .contains("BASE_RPC_QUORUM")
        );
    }
}

fn with_file(text: &str) -> Result<Chains, Mistakes> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    load(&[("CHAINS_FILE", file.path().to_str().unwrap())])
}

#[test]
fn bad_entries_are_named() {
    let entry = |fields: &str| {
        format!(
            r#"[{{"id":"x","vmType":"ethereum-vm","httpRpcUrl":"http://a","hubChainId":"1",{fields}}}]"#
        )
    };
    let cases = [
        (
            entry(r#""depository":"0x0000000000000000000000000000000000000000""#),
            "zero address",
        ),
        (entry(r#""depository":"zz""#), "depository"),
        (entry(r#""fillRouters":["0x1"]"#), "fillRouters: 0x1"),
        (
            entry(r#""additionalData":{"finalizationBlocks":"ten"}"#),
            "finalizationBlocks",
        ),
        (
            entry(r#""additionalData":{"finalityTag":"soon"}"#),
            "finalityTag",
        ),
        (entry(r#""hubChainId":"""#), "hubChainId"),
        ("{}".to_owned(), "array"),
        (
            r#"[{"id":"x","vmType":"gateway-vm"},{"id":"x","vmType":"gateway-vm"}]"#.to_owned(),
            "CHAINS_FILE: chain x stands there twice",
        ),
        (
            r#"[{"id":"x","vmType":"gateway-vm"},{"id":"X","vmType":"gateway-vm"}]"#.to_owned(),
            "CHAINS_FILE: chain X stands there twice",
        ),
    ];
    for (text, what) in cases {
        let error = with_file(&text)
            .err()
            .unwrap_or_else(|| panic!("{text} loads"))
            .to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
    // Without an id an entry is left out; an unknown family is listed but cannot be read.
    let chains =
        with_file(r#"[{"vmType":"ethereum-vm"},{"id":"g","vmType":"gateway-vm"}]"#).unwrap();
    assert_eq!(chains.list().len(), 1);
    assert!(chains.get("g").unwrap().chain.is_err());
}

#[test]
fn chains_of_a_family_share_no_number_where_they_serve_others() {
    let loads = |environment: &str, second: &str| {
        let first = r#"{"id":"one","vmType":"ethereum-vm","hubChainId":"7"}"#;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("[{first},{second}]")).unwrap();
        let (path, hub) = (file.path().to_str().unwrap(), STAGING[2]);
        load(&[("ENVIRONMENT", environment), ("CHAINS_FILE", path), hub])
    };
    let same = r#"{"id":"two","vmType":"ethereum-vm","hubChainId":"7"}"#;
    for environment in ["mainnets.prod", "testnets.prod"] {
        let text = loads(environment, same).err().unwrap().to_string();
        let wanted = "chains one and two have one hubChainId, 7";
        assert!(text.contains(wanted), "{environment}: {text}");
    }
    assert_eq!(loads("staging", same).unwrap().list().len(), 2);
    for other in [
        r#"{"id":"two","vmType":"ethereum-vm","hubChainId":"8"}"#,
        r#"{"id":"two","vmType":"gateway-vm","hubChainId":"7"}"#,
        r#"{"id":"two","vmType":"gateway-vm"},{"id":"three","vmType":"gateway-vm"}"#,
    ] {
        let found = loads("mainnets.prod", other);
        assert!(found.is_ok(), "{other}: {}", found.err().unwrap());
    }
}

#[test]
fn providers_and_quorum_are_found_by_id_whatever_the_file_calls_the_url() {
    let three = "https://a.example,https://b.example,https://c.example";
    let file = |url: &str| {
        let text = format!(r#"[{{"id":"x","vmType":"ethereum-vm",{url}"hubChainId":"1"}}]"#);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    };
    let required = |url: &str, extra: &[(&str, &str)]| {
        let file = file(url);
        let path = file.path().to_str().unwrap();
        let set: Vec<_> = [("CHAINS_FILE", path)]
            .iter()
            .chain(extra)
            .copied()
            .collect();
        load(&set).map(|chains| opened(&chains, "x").required)
    };
    let named = r#""httpRpcUrl":"$Y_RPC_URL","#;
    let both = [("Y_RPC_URL", three), ("X_RPC_QUORUM", "3")];
    assert_eq!(required(named, &both).unwrap(), 3);
    let by_url = [("Y_RPC_URL", three), ("Y_RPC_QUORUM", "3")];
    assert_eq!(required(named, &by_url).unwrap(), 3);
    let split = [
        ("Y_RPC_URL", three),
        ("Y_RPC_QUORUM", "3"),
        ("X_RPC_QUORUM", "2"),
    ];
    assert!(
        required(named, &split)
            .unwrap_err()
            .to_string()
            .contains("contradict")
    );
    assert_eq!(
        required("", &[("X_RPC_URL", three), ("X_RPC_QUORUM", "1")]).unwrap(),
        1
    );
}

#[test]
fn unknown_environment_without_files_says_which_are_known() {
    let text = load(&[("ENVIRONMENT", "nowhere")])
        .err()
        .unwrap()
        .to_string();
    assert!(
        text.contains("CHAINS_FILE") && text.contains("mainnets.prod"),
        "{text}"
    );
}

#[test]
fn variable_names_replace_what_is_not_a_letter_or_digit() {
    assert_eq!(variable("base-sepolia", "RPC_URL"), "BASE_SEPOLIA_RPC_URL");
    assert_eq!(
        variable("arbitrum_nova", "RPC_URL"),
        "ARBITRUM_NOVA_RPC_URL"
    );
}

/// The bundled lists name `$<ID>_RPC_URL` for every chain, and no id and no number at the hub twice.
#[test]
fn bundled_lists_follow_the_naming_rule() {
    for (_, chains, _) in files::BUNDLED {
        let list: Vec<Map<String, Value>> = serde_json::from_str(chains).unwrap();
        let mut seen = BTreeSet::new();
        for entry in list {
            let id = entry["id"].as_str().unwrap().to_owned();
            let expected = format!("${}", variable(&id, "RPC_URL"));
            assert_eq!(entry["httpRpcUrl"], expected);
            assert!(seen.insert(id));
            let number = &entry["hubChainId"];
            let number = format!("{} {number}", entry["vmType"]);
            assert!(seen.insert(number.clone()), "{number}");
        }
    }
}

/// A node whose first answer asks to be left alone, and which answers whatever comes then.
async fn asks_to_wait_once(listener: tokio::net::TcpListener) {
    answers(listener, true, "0x01".to_owned()).await;
}

/// A node that answers every call so; the first answer may ask to be left alone.
async fn answers(listener: tokio::net::TcpListener, mut first: bool, called: String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    while let Ok((mut socket, _)) = listener.accept().await {
        let mut asked = vec![0; 65_536];
        let read = socket.read(&mut asked).await.unwrap();
        let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
        let (status, body) = match std::mem::take(&mut first) {
            true => ("429 Too Many Requests\r\nretry-after: 30", "{}".to_owned()),
            false => {
                let calls = asked.split("\r\n\r\n").nth(1).unwrap();
                let calls: Vec<Value> = serde_json::from_str(calls).unwrap();
                let answers = calls.iter().map(|call| {
                    let result = match call["method"].as_str().unwrap() {
                        "eth_chainId" => "0x2105",
                        _ => called.as_str(),
                    };
                    serde_json::json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
                });
                ("200 OK", Value::from_iter(answers).to_string())
            }
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n",
            body.len()
        );
        let answer = format!("{head}content-type: application/json\r\n\r\n{body}");
        // Whoever reads no further may be gone.
        socket.write_all(answer.as_bytes()).await.ok();
    }
}

#[tokio::test]
async fn who_is_told_to_wait_for_strangers_is_asked_for_the_solver() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(asks_to_wait_once(listener));
    let chains =
        Chains::load(&config(&[&STAGING[..], &[("BASE_RPC_URL", &url)]].concat())).unwrap();
    let base = opened(&chains, "base");
    let to = vm::SETTLEMENT.native().unwrap();
    let ask = async |views: HeadCalls| views.any(&to, vm::Bytes::new()).await;
    for expected in ["HTTP status 429", "asked to wait"] {
        let refused = ask(base.asking_head_calls()).await.unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    assert!(ask(base.head_calls()).await.unwrap().is_ok());
    assert!(ask(base.asking_head_calls()).await.is_err());
    serving.abort();
}

/// A node that counts what it is asked, and may take one call at a time only.
async fn counts(listener: tokio::net::TcpListener, asked: Arc<AtomicUsize>, batches: bool) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    while let Ok((mut socket, _)) = listener.accept().await {
        let mut text = vec![0; 65_536];
        let read = socket.read(&mut text).await.unwrap();
        let text = String::from_utf8_lossy(&text[..read]).into_owned();
        let calls = text.split("\r\n\r\n").nth(1).unwrap();
        let calls: Value = serde_json::from_str(calls).unwrap();
        if calls.is_array() && !batches {
            let refused =
                b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            socket.write_all(refused).await.ok();
            continue;
        }
        let answer = |call: &Value| {
            asked.fetch_add(1, Relaxed);
            let base = call["method"] == "eth_chainId";
            let result = if base { "0x2105" } else { "0x01" };
            serde_json::json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
        };
        let body = match calls.as_array() {
            Some(calls) => calls.iter().map(answer).collect(),
            None => answer(&calls),
        };
        let body = body.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        socket.write_all(answer.as_bytes()).await.ok();
    }
}

/// A provider counts what its customer asks, over all lines: strangers leave it its customer.
#[tokio::test]
async fn what_strangers_ask_reaches_a_provider_so_often_a_second() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let serving = tokio::spawn(counts(listener, asked.clone(), true));
    let own = [
        ("BASE_RPC_URL", url.as_str()),
        ("QUOTE_CALLS_PER_SECOND", "40"),
    ];
    let chains = Chains::load(&config(&[&STAGING[..], &own].concat())).unwrap();
    let base = opened(&chains, "base");
    let to = vm::SETTLEMENT.native().unwrap();
    let ask = async |views: HeadCalls, times: usize| {
        let asked = (0..times).map(|_| views.any(&to, vm::Bytes::new()));
        futures::future::join_all(asked).await
    };
    let begun = std::time::Instant::now();
    let answers = ask(base.asking_head_calls(), 300).await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    let reached = asked.load(Relaxed);
    assert!(reached <= 20 * (1 + seconds), "{reached} in {seconds} s");
    assert!(answers.iter().any(Result::is_ok));
    let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
    let refused: Vec<_> = refused.map(ToString::to_string).collect();
    assert!(refused.len() > 100, "{}", refused.len());
    assert!(
        refused.iter().all(|why| why.contains("try again")),
        "{refused:?}"
    );
    // The other half is for keys, and index, oracle and solver have all they want.
    let keyed = asking::by(true, ask(base.asking_head_calls(), 5)).await;
    assert!(keyed.iter().all(Result::is_ok), "{keyed:?}");
    let own = ask(base.head_calls(), 100).await;
    assert!(own.iter().all(Result::is_ok));
    serving.abort();
}

/// What is asked together counts together, however it is sent: else the half of it is sent for nothing.
#[tokio::test]
async fn a_node_without_batches_answers_a_strangers_large_question() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let serving = tokio::spawn(counts(listener, asked.clone(), false));
    let own = [
        ("BASE_RPC_URL", url.as_str()),
        ("QUOTE_CALLS_PER_SECOND", "40"),
    ];
    let chains = Chains::load(&config(&[&STAGING[..], &own].concat())).unwrap();
    let views = opened(&chains, "base").asking_head_calls();
    let to = vm::SETTLEMENT.native().unwrap();
    let questions = vec![(to, vm::Bytes::new()); 30];
    let begun = std::time::Instant::now();
    let answers = asking::by(false, views.many(&questions)).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    // It took all that strangers have, and nothing is sent of what does not fit any more. All of it is back a second
    // later.
    let sent = asked.load(Relaxed);
    let answers = asking::by(false, views.many(&questions)).await;
    if begun.elapsed() < std::time::Duration::from_secs(1) {
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        assert_eq!(asked.load(Relaxed), sent);
    }
    serving.abort();
}

/// What is refused takes nothing from what strangers have left.
#[tokio::test]
async fn keys_take_of_the_strangers_half_what_is_left_of_it() {
    let run = async || {
        let allows = providers::paced(40.try_into().unwrap());
        let allowed = async |keyed, calls| asking::by(keyed, async { allows(calls) }).await;
        for _ in 0..7 {
            assert!(allowed(true, 5).await);
        }
        let left = [allowed(false, 20).await, allowed(false, 3).await];
        // A key has its half alone.
        let allows = providers::paced(40.try_into().unwrap());
        let allowed = async |keyed, calls| asking::by(keyed, async { allows(calls) }).await;
        let strangers = [allowed(false, 300).await, allowed(false, 10).await];
        let keys = [allowed(true, 20).await, allowed(true, 10).await];
        [left, strangers, keys]
    };
    // Ten are back after half a second: a slower run tells nothing.
    for _ in 0..100 {
        let begun = std::time::Instant::now();
        let allowed = run().await;
        if begun.elapsed() < std::time::Duration::from_millis(500) {
            assert_eq!(allowed, [[false, true], [true, false], [true, false]]);
            return;
        }
    }
    panic!("no run was quick enough");
}

#[tokio::test]
async fn what_strangers_ask_is_answered_shortly_or_not_at_all() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let long = format!("0x{}", "01".repeat(1 << 20));
    let serving = tokio::spawn(answers(listener, false, long));
    let chains =
        Chains::load(&config(&[&STAGING[..], &[("BASE_RPC_URL", &url)]].concat())).unwrap();
    let base = opened(&chains, "base");
    let to = vm::SETTLEMENT.native().unwrap();
    let ask = async |views: HeadCalls| views.any(&to, vm::Bytes::new()).await;
    let refused = ask(base.asking_head_calls()).await.unwrap_err();
    assert!(refused.to_string().contains("larger than any"), "{refused}");
    let answers = ask(base.head_calls()).await.unwrap().unwrap();
    assert_eq!(answers.len(), 1 << 20);
    serving.abort();
}

/// Where real money is at stake an order's router is believed only if the chains file lists it, or if it is
/// the operator's own solver's.
#[test]
fn fill_routers_are_listed_where_real_money_is_at_stake() {
    let router = "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0";
    let file = |list: &str| {
        format!(
            r#"[{{"id":"base","vmType":"ethereum-vm","hubChainId":"8453","httpRpcUrl":"{TWO}","depository":"{router}"{list}}}]"#
        )
    };
    let own = format!(r#","fillRouters":["{router}"]"#);
    let address = vm::ethereum::FAMILY.address(router).unwrap();
    for (environment, list, believed) in [
        ("mainnets.prod", "", false),
        ("mainnets.prod", r#","fillRouters":[]"#, false),
        ("mainnets.prod", own.as_str(), true),
        ("testnets.prod", "", true),
        ("development", "", true),
        ("development", r#","fillRouters":[]"#, false),
        ("development", own.as_str(), true),
    ] {
        let chains_file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(chains_file.path(), file(list)).unwrap();
        let set = [
            ("ENVIRONMENT", environment),
            ("CHAINS_FILE", chains_file.path().to_str().unwrap()),
            ("HUB_FILE", "src/chains/hub.mainnets.prod.json"),
        ];
        let mut chains = load(&set).unwrap();
        let accepts = |chains: &Chains| {
            let opened = chains.get("base").unwrap().chain.as_ref().unwrap();
            opened.chain.spec.fill_routers.accepts(&address)
        };
        assert_eq!(accepts(&chains), believed, "{environment} {list}");
        // And whoever starts it is told.
        assert_eq!(opened(&chains, "base").lacks_routers(), !believed);
        chains.accept_router("base", router);
        chains.accept_router("nowhere", router);
        assert!(accepts(&chains), "{environment} {list}");
        assert!(!opened(&chains, "base").lacks_routers());
    }
}
