//! Holds the seam between the daemon and the VM families: outside `vm/` nobody knows a family by name, nobody speaks
//! in one family's words, and nobody builds transactions. A program of its own: nothing of the daemon is in it.

#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use quote::ToTokens;
use syn::{spanned::Spanned, visit::Visit};

/// What is EVM by definition, or whose names are the API's or the operator's own. Each entry is a path's beginning, with
/// the words that it may use, and why.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    ("src/hub", &["alloy::sol", "alloy::sol_types"], HUB),
    ("src/attest/", &["nonce", "nonces", "calldata"], HUB),
    ("src/api/oracle/", &["nonce"], HUB),
    (
        "src/api/oracle/",
        &["utxos"],
        "fields of the oracle's API are called so",
    ),
    (
        "src/solver/settle",
        &["alloy::sol", "alloy::sol_types"],
        HUB,
    ),
    (
        "src/config",
        &["nonce", "nonces"],
        "withdrawals at the hub have a nonce",
    ),
    (
        "src/run",
        &["nonces"],
        "withdrawals at the hub have a nonce",
    ),
    (
        "src/price/chainlink.rs",
        &["alloy::sol", "alloy::sol_types"],
        "a feed is an EVM contract",
    ),
    (
        "src/quote/body.rs",
        &["nonce", "compute unit", "compute units"],
        API,
    ),
    ("src/quote/answer.rs", &["max fee"], API),
    ("src/quote/intent/calls.rs", &["nonce"], API),
    ("src/quote/intent/later.rs", &["compute unit"], API),
    (
        "src/store/dump",
        &["nonce", "ethereum"],
        "exports of format 3",
    ),
    (
        "src/solver/account",
        &["nonce"],
        "names of metrics are the operator's",
    ),
];
const HUB: &str = "the hub is an EVM chain";
const API: &str = "fields of the integrator API";
const BODY: &str = "the inside of a transaction";

/// Words of one family. They are looked for in code, comments and texts.
const WORDS: &[&str] = &[
    "nonce",
    "nonces",
    "gas price",
    "max fee",
    "allowance",
    "allowances",
    "calldata",
    "wei",
    "gwei",
    "satoshi",
    "satoshis",
    "utxo",
    "utxos",
    "psbt",
    "psbts",
    "lamport",
    "lamports",
    "compute unit",
    "compute units",
];

/// What of alloy is known everywhere: numbers, bytes, hashes.
const ALLOY: &[&str] = &["primitives", "hex"];

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

struct Source {
    path: String,
    /// Without its tests, numbered from 1.
    lines: Vec<(usize, String)>,
    /// The modules of alloy that it names, with their lines.
    alloy: Vec<(usize, String)>,
}

/// The lines of a file's tests, and what it names of alloy.
#[derive(Default)]
struct Tests(Vec<(usize, usize)>, Vec<(usize, String)>);

impl Tests {
    fn look(&mut self, attributes: &[syn::Attribute], span: proc_macro2::Span) {
        let is_test = attributes.iter().any(|attribute| {
            let text = attribute.meta.to_token_stream().to_string();
            attribute.path().is_ident("test")
                || attribute.path().is_ident("cfg") && text.contains("test")
        });
        if is_test {
            self.0.push((span.start().line, span.end().line));
        }
    }
}

impl Tests {
    fn alloy(&mut self, tree: &syn::UseTree) {
        let ident = match tree {
            syn::UseTree::Path(path) => &path.ident,
            syn::UseTree::Name(name) => &name.ident,
            syn::UseTree::Rename(name) => &name.ident,
            syn::UseTree::Glob(_) => return,
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.alloy(tree));
            }
        };
        self.1.push((ident.span().start().line, ident.to_string()));
    }
}

impl<'ast> Visit<'ast> for Tests {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            _ => &Vec::new(),
        };
        self.look(attributes, item.span());
        syn::visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.look(&item.attrs, item.span());
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let syn::UseTree::Path(path) = &item.tree else {
            return;
        };
        if path.ident == "alloy" {
            self.alloy(&path.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments = path.segments.iter();
        if segments.next().is_some_and(|first| first.ident == "alloy")
            && let Some(module) = segments.next()
        {
            let line = module.span().start().line;
            self.1.push((line, module.ident.to_string()));
        }
        syn::visit::visit_path(self, path);
    }
}

/// The daemon's sources as they are built for production.
fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(top().join("src")) {
        let path: PathBuf = entry.unwrap().into_path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let path = path
            .strip_prefix(top())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let is_test = [
            "/tests/",
            "/tests.rs",
            "/fixtures/",
            "/fixtures.rs",
            "/conformance",
        ];
        if is_test.iter().any(|part| path.contains(part)) {
            continue;
        }
        let (lines, alloy) = production(&text);
        found.push(Source { path, lines, alloy });
    }
    assert!(found.len() > 200, "{} files", found.len());
    found
}

type Numbered = Vec<(usize, String)>;

/// The lines of a file without its tests, and the modules of alloy that they name.
fn production(text: &str) -> (Numbered, Numbered) {
    let mut tests = Tests::default();
    tests.visit_file(&syn::parse_file(text).unwrap());
    let Tests(tests, alloy) = tests;
    let kept = |line: usize| !tests.iter().any(|(from, to)| (*from..=*to).contains(&line));
    let lines = text.lines().enumerate();
    let lines = lines.map(|(at, line)| (at + 1, line.to_owned()));
    (
        lines.filter(|(at, _)| kept(*at)).collect(),
        alloy.into_iter().filter(|(at, _)| kept(*at)).collect(),
    )
}

/// The families' modules, as `vm/src` has them.
fn families() -> BTreeSet<String> {
    let folders = std::fs::read_dir(top().join("vm/src")).unwrap();
    let folders = folders.map(|folder| folder.unwrap().path());
    let families = folders.filter(|folder| {
        let entry = std::fs::read_to_string(folder.join("mod.rs")).unwrap_or_default();
        entry.contains("pub static FAMILY: Family")
    });
    families
        .map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// Whether a text has a word, by itself or as a part of a name (`fill_gas`, `MaxFee`).
fn has_word(line: &str, word: &str) -> bool {
    let mut spelled = String::new();
    let mut before = ' ';
    for letter in line.chars() {
        if letter.is_uppercase() && before.is_lowercase() {
            spelled.push(' ');
        }
        let letter_or_gap = if letter.is_alphanumeric() {
            letter
        } else {
            ' '
        };
        spelled.extend(letter_or_gap.to_lowercase());
        before = letter;
    }
    let words: Vec<_> = spelled.split(' ').filter(|word| !word.is_empty()).collect();
    let wanted: Vec<_> = word.split(' ').collect();
    words.windows(wanted.len()).any(|window| window == wanted)
}

fn is_allowed(path: &str, word: &str) -> bool {
    let mut exceptions = EXCEPTIONS.iter();
    exceptions.any(|(begin, words, _)| path.starts_with(begin) && words.contains(&word))
}

/// What a line outside `vm/` may not have.
fn found_in<'a>(line: &str, families: &'a BTreeSet<String>) -> Vec<&'a str> {
    let named = |family: &&String| {
        let names = [format!("vm::{family}"), format!("\"{family}-vm\"")];
        names.iter().any(|name| line.contains(name))
    };
    let mut found: Vec<&str> = families.iter().filter(named).map(String::as_str).collect();
    let body = ["Body::Call {", "Body::Own(", "trade::Body"];
    if body.iter().any(|body| line.contains(body)) {
        found.push(BODY);
    }
    found.extend(WORDS.iter().filter(|word| has_word(line, word)));
    found
}

#[test]
fn nobody_outside_vm_knows_a_family() {
    let families = families();
    assert!(families.len() >= 8, "{families:?}");
    let mut wrong = Vec::new();
    for Source { path, lines, alloy } in sources() {
        for (at, line) in &lines {
            let found = found_in(line, &families).into_iter();
            let found = found.filter(|word| !is_allowed(&path, word));
            wrong.extend(found.map(|word| format!("{path}:{at}: {word}: {}", line.trim())));
        }
        for (at, module) in &alloy {
            let name = format!("alloy::{module}");
            if !ALLOY.contains(&module.as_str()) && !is_allowed(&path, &name) {
                wrong.push(format!("{path}:{at}: {name}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} lines\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn each_breach_of_the_seam_is_found() {
    let families = families();
    for (breach, word) in [
        ("use vm::ethereum::steps;", "ethereum"),
        ("if family.name == \"solana-vm\" {", "solana"),
        ("let next = account.nonce();", "nonce"),
        ("let maxFee = 1;", "max fee"),
        ("/// What the spender's allowance is.", "allowance"),
        ("const FLOOR: u64 = 7; // wei", "wei"),
        ("/// In satoshis.", "satoshis"),
        ("let utxos = wallet.list();", "utxos"),
        ("Step::Psbt(bytes) => bytes,", "psbt"),
        ("let per_lamport = 1;", "lamport"),
        ("let computeUnits = 1;", "compute units"),
        ("let Body::Own(bytes) = &draft.body else {", BODY),
    ] {
        assert_eq!(found_in(breach, &families), [word], "{breach}");
    }
    for sound in [
        "use alloy::primitives::U256;",
        "let anonce = weird;",
        "use vm::trade::Draft;",
        "let body = Body { user };",
    ] {
        assert_eq!(found_in(sound, &families), Vec::<&str>::new(), "{sound}");
    }
    let text = "use alloy::{consensus::TxEip1559, primitives::U256};\nfn f() { alloy::rpc::f(); }\n\
                #[cfg(test)]\nmod tests {\n    use alloy::signers::local;\n    // nonce\n}\n";
    let (lines, alloy) = production(text);
    let alloy: Vec<_> = alloy
        .iter()
        .map(|(at, module)| (*at, module.as_str()))
        .collect();
    assert_eq!(alloy, [(1, "consensus"), (1, "primitives"), (2, "rpc")]);
    assert_eq!(lines.len(), 2);
}

#[test]
fn every_exception_is_needed() {
    let (families, sources) = (families(), sources());
    for (begin, words, _) in EXCEPTIONS {
        let mut found = BTreeSet::new();
        for source in sources
            .iter()
            .filter(|source| source.path.starts_with(begin))
        {
            let lines = source.lines.iter();
            found.extend(
                lines
                    .flat_map(|(_, line)| found_in(line, &families))
                    .map(str::to_owned),
            );
            found.extend(
                source
                    .alloy
                    .iter()
                    .map(|(_, module)| format!("alloy::{module}")),
            );
        }
        for word in *words {
            assert!(found.contains(*word), "{begin} has no {word}");
        }
    }
}
