//! The descriptions as others' tools read them: two linters, a generator of clients, and the published
//! client, whose own sources are checked over types that are made of ours.

use std::{fs, path::Path, process::Command};

use devnet::tools;
use tempfile::TempDir;

const PACKAGES: [(&str, &str); 2] = [
    ("package.json", include_str!("package.json")),
    ("package-lock.json", include_str!("package-lock.json")),
];
/// Those of the published client, as its own test installs them.
const PUBLISHED: [(&str, &str); 2] = [
    ("package.json", include_str!("../sdk/package.json")),
    (
        "package-lock.json",
        include_str!("../sdk/package-lock.json"),
    ),
];
const README: &str = include_str!("../../../README.md");
const LISTENERS: [&str; 3] = ["integrator", "oracle", "operations"];
/// Of the network's service alone: for its own machines.
const FOREIGN: [&str; 3] = ["/loadforge.txt", "/conduit/install", "/provision/chain"];
/// Both linters have something to say of it.
const WRONG: &str =
    r#"{"openapi":"3.1.0","info":{"title":"Wrong"},"paths":{"/a":{"get":{"responses":{}}}}}"#;

/// What `intentd openapi` prints, without any configuration.
pub fn printed(listener: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_intentd"))
        .args(["openapi", listener])
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{listener}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A directory with these files, from which node finds the packages `modules` lists.
fn place(modules: (&str, &[(&str, &str)]), files: &[(&str, &str)]) -> TempDir {
    let packages = tools::packages(modules.0, modules.1).unwrap();
    let place = TempDir::new().unwrap();
    let link = place.path().join("node_modules");
    std::os::unix::fs::symlink(packages.join("node_modules"), link).unwrap();
    for (name, text) in files {
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    place
}

/// What a script or a tool prints that runs in `place`; it must be content.
fn done(place: &TempDir, words: &[&str]) -> String {
    let output = Command::new("node")
        .args(words)
        .current_dir(place.path())
        .output()
        .unwrap();
    let [told, why] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{words:?}\n{told}{why}");
    told
}

#[test]
fn two_linters_find_nothing() {
    let place = place(
        ("description", &PACKAGES),
        &[
            ("lint.mjs", include_str!("lint.mjs")),
            ("redocly.yaml", include_str!("redocly.yaml")),
            ("wrong.json", WRONG),
        ],
    );
    let mut words = vec!["lint.mjs".to_owned(), ".".to_owned()];
    for listener in LISTENERS {
        let file = format!("{listener}.json");
        fs::write(place.path().join(&file), printed(listener)).unwrap();
        words.push(file);
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    assert_eq!(done(&place, &words), "");
    let found = done(&place, &["lint.mjs", ".", "wrong.json"]);
    for linter in ["redocly", "spectral"] {
        assert!(
            found.contains(&format!("wrong.json: {linter}: ")),
            "{found}"
        );
    }
}

#[test]
fn generated_clients_compile() {
    let place = place(
        ("description", &PACKAGES),
        &[
            ("uses.ts", include_str!("uses.ts")),
            ("tsconfig.json", include_str!("client.tsconfig.json")),
        ],
    );
    for listener in LISTENERS {
        let (file, client) = (format!("{listener}.json"), format!("{listener}.ts"));
        fs::write(place.path().join(&file), printed(listener)).unwrap();
        let generator = "node_modules/oazapfts/dist/cli.js";
        done(&place, &[generator, &file, &client]);
    }
    done(&place, &["node_modules/typescript/bin/tsc", "-p", "."]);
}

/// The published package has its own TypeScript in its source maps.
#[test]
fn published_client_compiles_over_our_types() {
    let description = printed("integrator");
    let tools = place(
        ("description", &PACKAGES),
        &[
            ("sync.mjs", include_str!("sync.mjs")),
            ("integrator.json", description.as_str()),
        ],
    );
    let client = place(
        ("sdk", &PUBLISHED),
        &[
            ("tsconfig.json", include_str!("published.tsconfig.json")),
            ("src/uses.ts", include_str!("published.uses.ts")),
        ],
    );
    let package = "node_modules/@relayprotocol/relay-sdk";
    let package = client.path().join(package).display().to_string();
    let out = client.path().display().to_string();
    let missing = done(&tools, &["sync.mjs", "integrator.json", &package, &out]);
    for route in missing.lines() {
        let planned = README.contains(&format!(" {route}` |"));
        assert!(planned || FOREIGN.contains(&route), "{route} is not ours");
    }
    for file in [
        "src/client.ts",
        "src/actions/getQuote.ts",
        "src/types/api.ts",
    ] {
        assert!(Path::new(&out).join(file).exists(), "{file}");
    }
    let checker = tools.path().join("node_modules/typescript/bin/tsc");
    done(&client, &[&checker.display().to_string(), "-p", "."]);
}
