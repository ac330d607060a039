//! Holds the seam between the daemon and the VM families: outside `vm/` nobody knows a family by name, nobody speaks
//! in one family's words, and nobody builds transactions. A program of its own: nothing of the daemon is in it.

#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
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
    ("src/quote/answer.rs", &["max fee", "psbt"], API),
    ("src/quote/intent/calls.rs", &["nonce"], API),
    ("src/quote/intent/later.rs", &["compute unit"], API),
    (
        "src/quote/intent/later.rs",
        NUMBERS,
        "a chain that is not traded here is told from one that nobody has",
    ),
    (
        "src/api/intents/codes.rs",
        &["solana"],
        "a code of the integrator API is called so",
    ),
    ("src/api/oracle/codes.rs", &["ethereum"], FIRST),
    ("src/attest/refusal.rs", &["ethereum"], FIRST),
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
const FIRST: &str = "version 1 of the initiation takes one family's signatures";
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

/// What integrators call the chains of families but EVM.
const NUMBERS: &[&str] = &[
    "1337",
    "8253038",
    "9092725",
    "792703809",
    "9286185",
    "728126428",
    "224235520",
    "3586256",
    "543210",
];

/// What clients call families. `evm` is left out: it is also the name of the hub's numbers.
const SHORT: &[&str] = &["bvm", "svm", "hypevm", "tvm", "tonvm", "lvm", "xrpvm"];

/// How addresses of one family begin, where nothing else begins so.
const PREFIXES: &[&str] = &["bc1", "tb1", "bcrt1"];

/// What of alloy is known everywhere: numbers, bytes, hashes.
const ALLOY: &[&str] = &["primitives", "hex"];

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

type Numbered = Vec<(usize, String)>;

/// A file without its tests, numbered from 1.
struct Source {
    path: String,
    lines: Numbered,
    /// The modules of alloy that it names.
    alloy: Numbered,
    /// The texts and the whole numbers of its code.
    literals: Numbered,
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
        found.push(production(path, &text));
    }
    assert!(found.len() > 200, "{} files", found.len());
    found
}

/// A file as it is built for production.
fn production(path: String, text: &str) -> Source {
    let (file, mut tests, mut literals) =
        (syn::parse_file(text).unwrap(), Tests::default(), Vec::new());
    tests.visit_file(&file);
    said(file.into_token_stream(), &mut literals);
    let Tests(tests, alloy) = tests;
    let kept = |line: usize| !tests.iter().any(|(from, to)| (*from..=*to).contains(&line));
    let lines = text.lines().enumerate();
    let lines = lines.map(|(at, line)| (at + 1, line.to_owned()));
    Source {
        path,
        lines: lines.filter(|(at, _)| kept(*at)).collect(),
        alloy: alloy.into_iter().filter(|(at, _)| kept(*at)).collect(),
        literals: literals.into_iter().filter(|(at, _)| kept(*at)).collect(),
    }
}

/// The texts and the whole numbers of code, also inside macros and attributes. Comments are none.
fn said(tokens: TokenStream, found: &mut Numbered) {
    for token in tokens {
        let literal = match token {
            TokenTree::Literal(literal) => literal,
            TokenTree::Group(group) => {
                let first = group.stream().into_iter().next();
                let is_comment = group.delimiter() == Delimiter::Bracket
                    && first.is_some_and(|first| first.to_string() == "doc");
                if !is_comment {
                    said(group.stream(), found);
                }
                continue;
            }
            _ => continue,
        };
        let line = literal.span().start().line;
        match syn::Lit::new(literal) {
            syn::Lit::Str(text) => found.push((line, text.value())),
            syn::Lit::ByteStr(text) => {
                let text = String::from_utf8_lossy(&text.value()).into_owned();
                found.push((line, text));
            }
            syn::Lit::Int(number) => found.push((line, number.base10_digits().to_owned())),
            _ => {}
        }
    }
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

/// What a text or a number outside `vm/` may not have: what tells one family, or a chain of it, from others.
fn named_in<'a>(literal: &str, families: &'a BTreeSet<String>) -> Vec<&'a str> {
    let names = families.iter().map(String::as_str);
    let names = names.chain(NUMBERS.iter().copied());
    let names = names.chain(SHORT.iter().copied());
    let mut found: Vec<&str> = names.filter(|name| has_word(literal, name)).collect();
    found.extend(PREFIXES.iter().filter(|begin| literal.starts_with(**begin)));
    found
}

/// What a line outside `vm/` may not have.
fn found_in<'a>(line: &str, families: &'a BTreeSet<String>) -> Vec<&'a str> {
    let named = |family: &&String| line.contains(&format!("vm::{family}"));
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
    for source in sources() {
        let path = &source.path;
        let lines = source.lines.iter();
        let lines = lines.map(|(at, line)| (at, line, found_in(line, &families)));
        let literals = source.literals.iter();
        let literals = literals.map(|(at, text)| (at, text, named_in(text, &families)));
        for (at, text, found) in lines.chain(literals) {
            let found = found.into_iter().filter(|word| !is_allowed(path, word));
            wrong.extend(found.map(|word| format!("{path}:{at}: {word}: {}", text.trim())));
        }
        for (at, module) in &source.alloy {
            let name = format!("alloy::{module}");
            if !ALLOY.contains(&module.as_str()) && !is_allowed(path, &name) {
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
    let named = |code: &str| {
        let text = format!("/// Bitcoin.\nfn f() {{ {code}; }}");
        let source = production("src/f.rs".into(), &text);
        let literals = source.literals.iter();
        let found = literals.flat_map(|(_, text)| named_in(text, &families));
        found.collect::<Vec<_>>()
    };
    for (breach, word) in [
        ("use vm::ethereum::steps;", "ethereum"),
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
    for (breach, word) in [
        ("family.name == \"solana-vm\"", "solana"),
        ("network.name == \"bitcoin\"", "bitcoin"),
        ("matches!(short, Some(\"tonvm\"))", "tonvm"),
        ("number == 8_253_038_u64", "8253038"),
        ("format!(\"chain 792703809: {what}\")", "792703809"),
        ("text.starts_with(\"bc1\")", "bc1"),
    ] {
        assert_eq!(named(breach), [word], "{breach}");
    }
    for sound in ["\"skeleton\" == name", "8_253_039", "/* \"bitcoin\" */ 1"] {
        assert_eq!(named(sound), Vec::<&str>::new(), "{sound}");
    }
}

#[test]
fn tests_and_comments_are_left_out() {
    let text = "use alloy::{consensus::TxEip1559, primitives::U256};\nfn f() { alloy::rpc::f(); }\n\
                #[cfg(test)]\nmod tests {\n    use alloy::signers::local;\n    // nonce\n\
                const A: &str = \"tron\";\n}\n\
                /// Of Tron, \"tron\".\n#[error(\"no {0}\")] // tron\nstruct Never(#[doc = \"ton\"] u8);\n";
    let source = production("src/f.rs".into(), text);
    let alloy = source.alloy.iter();
    let alloy: Vec<_> = alloy.map(|(at, module)| (*at, module.as_str())).collect();
    assert_eq!(alloy, [(1, "consensus"), (1, "primitives"), (2, "rpc")]);
    assert_eq!(source.lines.len(), 5);
    assert_eq!(source.literals, [(10, "no {0}".to_owned())]);
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
            let literals = source.literals.iter();
            found.extend(
                literals
                    .flat_map(|(_, text)| named_in(text, &families))
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
