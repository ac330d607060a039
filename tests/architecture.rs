//! Holds the map (src/guide/develop.md): who may use whom, which rooms are pure, and how large a function, a
//! file or a trait may grow. A program of its own: nothing of the daemon is in it.

#![allow(clippy::unwrap_used)]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use quote::ToTokens;
use syn::{spanned::Spanned, visit::Visit};

const FUNCTION_LINES: usize = 60;
const FILE_LINES: usize = 400;
const ARGUMENTS: usize = 5;
const TRAIT_METHODS: usize = 5;

/// Module → the modules of the daemon that it may name. `vm` is open to all; a module may always
/// name itself. What is not listed may not exist.
const MAY_USE: &[(&str, &[&str])] = &[
    ("config", &[]),
    ("telemetry", &[]),
    ("redact", &[]),
    ("format", &[]),
    ("json", &[]),
    ("request", &["format", "json"]),
    ("market", &[]),
    ("integrator", &[]),
    ("store", &["request", "integrator"]),
    ("sign", &[]),
    ("guide", &[]),
    ("http", &["redact", "json", "guide"]),
    ("stream", &["integrator", "request", "store", "http"]),
    ("chains", &["config"]),
    ("hub", &["chains"]),
    ("attest", &["store", "sign", "chains", "hub"]),
    ("price", &["market", "chains"]),
    // Prices over time and what was bought: nothing that decides rests on either.
    ("chart", &["request", "market", "price", "store", "format"]),
    (
        "index",
        // Of the oracle only its pure judgements: what is never attested is never called final.
        // Prices only for what is shown: nothing that the index decides rests on one.
        &["request", "market", "price", "store", "chains", "attest"],
    ),
    (
        "quote",
        &[
            "request", "market", "price", "format", "json", "store", "sign", "chains",
        ],
    ),
    (
        "solver",
        // Of the oracle only its pure judgements: what will be attested is decided by them alone.
        &[
            "request", "market", "price", "store", "sign", "chains", "attest",
        ],
    ),
    ("webhook", &["request", "integrator", "store"]),
    // The operator's verbs.
    (
        "admin",
        &[
            "store",
            "attest",
            "integrator",
            "webhook",
            "solver",
            "index",
        ],
    ),
    (
        "api",
        &[
            "attest",
            "chains",
            "hub",
            "http",
            "store",
            "request",
            "integrator",
            "market",
            "price",
            "chart",
            "index",
            "quote",
            "format",
            "json",
            "solver",
            "stream",
        ],
    ),
    ("run", ANY),
    ("cli", ANY),
];
const ANY: &[&str] = &["*"];

/// Files that may not wait, read a clock or touch the world.
const PURE: &[&str] = &[
    "src/attest/backing.rs",
    "src/attest/claim.rs",
    "src/attest/deposit.rs",
    "src/attest/exchange.rs",
    "src/attest/execution.rs",
    "src/attest/fill.rs",
    "src/attest/finality.rs",
    "src/attest/measured.rs",
    "src/attest/order.rs",
    "src/attest/owner.rs",
    "src/attest/paid.rs",
    "src/attest/plan",
    "src/attest/recover.rs",
    "src/attest/refund.rs",
    "src/attest/refusal.rs",
    "src/attest/refusal/",
    "src/attest/spelled.rs",
    "src/attest/statement",
    "src/attest/watch/verdict.rs",
    "src/attest/withdrawal.rs",
    "src/chart/candle.rs",
    "src/chart/tally.rs",
    "src/index/apply.rs",
    "src/integrator",
    "src/json",
    "src/market",
    "src/quote/answer.rs",
    "src/quote/body",
    "src/quote/breakdown.rs",
    "src/quote/code.rs",
    "src/quote/fees.rs",
    "src/quote/holds.rs",
    "src/quote/intent",
    "src/quote/joint.rs",
    "src/quote/late.rs",
    "src/quote/order.rs",
    "src/quote/record.rs",
    "src/quote/route.rs",
    "src/quote/usd.rs",
    "src/quote/verdicts.rs",
    "src/request/",
    "src/format.rs",
    "src/solver/breaker.rs",
    "src/solver/stakes.rs",
    "src/solver/claim.rs",
    "src/solver/claim/",
    "src/solver/claimable.rs",
    "src/stream/subscriptions.rs",
    "src/stream/protocol.rs",
    "src/stream/encoded_event.rs",
    "src/solver/exposure/ledger.rs",
    "src/solver/judge",
    "src/solver/settle/execution.rs",
    "src/webhook/fair_queue.rs",
    "src/webhook/guard.rs",
    "src/webhook/delivery_request.rs",
    "src/webhook/queue.rs",
    "src/webhook/schedule.rs",
    "src/webhook/sign.rs",
    "vm/src/protocol/",
    "vm/src/types.rs",
    "vm/src/seen.rs",
    "vm/src/spec.rs",
    "vm/src/ethereum/rpc_error.rs",
    "vm/src/ethereum/decode",
    "vm/src/ethereum/revert.rs",
    "vm/src/ethereum/trade/deposit_tx",
    "vm/src/ethereum/trade/swap/quoter.rs",
    "vm/src/ethereum/trade/swap/route.rs",
    "vm/src/ethereum/trade/swap/router.rs",
    "vm/src/ethereum/trade/steps",
    "vm/src/ethereum/trade/carried.rs",
    "vm/src/ethereum/trade/queue",
    "vm/src/ethereum/trade/versions",
    "vm/src/ethereum/trade/transaction.rs",
    "vm/src/ethereum/trade/inspect/",
    "vm/src/bitcoin/decode",
    "vm/src/bitcoin/payer.rs",
    "vm/src/bitcoin/raw.rs",
    "vm/src/bitcoin/signing.rs",
    "vm/src/bitcoin/spend",
    "vm/src/bitcoin/trade/attempt",
    "vm/src/bitcoin/trade/body.rs",
    "vm/src/bitcoin/trade/build",
    "vm/src/bitcoin/trade/choice",
    "vm/src/bitcoin/trade/select.rs",
    "vm/src/bitcoin/trade/spend_kind.rs",
    "vm/src/bitcoin/trade/version",
    "vm/src/bitcoin/trade/wire/said.rs",
    "vm/src/bitcoin/unproven.rs",
    "vm/src/bitcoin/withdrawal.rs",
    "vm/src/solana/decode.rs",
    "vm/src/solana/deposit.rs",
    "vm/src/solana/executed.rs",
    "vm/src/solana/payment.rs",
    "vm/src/solana/programs.rs",
    "vm/src/solana/raw.rs",
    "vm/src/solana/trade/attempt",
    "vm/src/solana/trade/body.rs",
    "vm/src/solana/trade/limits.rs",
    "vm/src/solana/trade/message.rs",
    "vm/src/solana/trade/mint",
    "vm/src/solana/trade/own.rs",
    "vm/src/solana/trade/pay",
    "vm/src/solana/trade/size.rs",
    "vm/src/solana/trade/steps",
    "vm/src/solana/trade/swap/answer.rs",
    "vm/src/solana/trade/swap/checked.rs",
    "vm/src/solana/transfer.rs",
];

/// The stages of a quote, first to last, with their files. A file uses only files of its own stage and of those before.
const QUOTE: &[(&str, &[&str])] = &[
    ("words", &["answer", "code", "usd"]),
    (
        "intent",
        &[
            "body",
            "body/multi",
            "intent",
            "intent/calls",
            "intent/later",
            "intent/side",
            "intent/sources",
            "intent/text",
        ],
    ),
    ("route", &["route", "holds"]),
    (
        "market data",
        &[
            "pricing_chain",
            "swaps",
            "verdicts",
            "context",
            "market_data",
        ],
    ),
    ("amounts", &["fees", "late", "amounts"]),
    (
        "fill",
        &[
            "fill",
            "simulate",
            "admission",
            "fee_on_transfer",
            "breakdown",
            "joint",
            "pricing",
        ],
    ),
    ("order", &["order"]),
    ("steps", &["steps"]),
    ("answer", &["record", "draft"]),
    ("service", &["multi", "toll", "reprice", "service"]),
];

const IMPURE_WORDS: &[&str] = &[
    "async ",
    ".await",
    "tokio::",
    "SystemTime",
    "Instant::now",
    "reqwest",
    "std::fs",
];

struct Source {
    path: String,
    text: String,
    syntax: syn::File,
}

fn sources(roots: &[&str]) -> Vec<Source> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for root in roots {
        for entry in walkdir::WalkDir::new(top.join(root)) {
            let path: PathBuf = entry.unwrap().into_path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let syntax = syn::parse_file(&text).unwrap();
            let path = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            found.push(Source { path, text, syntax });
        }
    }
    assert!(!found.is_empty());
    found
}

fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute
                    .meta
                    .to_token_stream()
                    .to_string()
                    .contains("test"))
    })
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Everything outside `#[cfg(test)]` that the rules are about.
#[derive(Default)]
struct Shape {
    uses: BTreeSet<String>,
    complaints: Vec<String>,
    test_lines: usize,
}

/// How many parameters a type stands for: of a tuple its elements, else one.
fn width(of: &syn::Type) -> usize {
    match of {
        syn::Type::Tuple(tuple) => tuple.elems.iter().map(width).sum(),
        syn::Type::Reference(to) => width(&to.elem),
        syn::Type::Paren(inner) => width(&inner.elem),
        _ => 1,
    }
}

impl Shape {
    fn function(&mut self, signature: &syn::Signature, whole: proc_macro2::Span) {
        let lines = whole.end().line - signature.span().start().line + 1;
        if lines > FUNCTION_LINES {
            self.complaints
                .push(format!("fn {} has {lines} lines", signature.ident));
        }
        let width = |argument: &syn::FnArg| match argument {
            syn::FnArg::Typed(typed) => width(&typed.ty),
            syn::FnArg::Receiver(_) => 1,
        };
        let count: usize = signature.inputs.iter().map(width).sum();
        if count > ARGUMENTS {
            self.complaints
                .push(format!("fn {} takes {count} arguments", signature.ident));
        }
    }

    fn uses_in_tree(&mut self, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => drop(self.uses.insert(path.ident.to_string())),
            syn::UseTree::Name(name) => drop(self.uses.insert(name.ident.to_string())),
            syn::UseTree::Rename(name) => drop(self.uses.insert(name.ident.to_string())),
            syn::UseTree::Group(group) => group.items.iter().for_each(|t| self.uses_in_tree(t)),
            syn::UseTree::Glob(_) => drop(self.uses.insert("*".into())),
        }
    }
}

impl<'ast> Visit<'ast> for Shape {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_test_only(&item.attrs) {
            self.test_lines += item.span().end().line - item.span().start().line + 1;
        } else {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test_only(&item.attrs) {
            self.function(&item.sig, item.span());
            syn::visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, item.span());
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let methods = item
            .items
            .iter()
            .filter(|item| matches!(item, syn::TraitItem::Fn(_)))
            .count();
        if methods > TRAIT_METHODS {
            self.complaints
                .push(format!("trait {} has {methods} methods", item.ident));
        }
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if let syn::UseTree::Path(path) = &item.tree
            && path.ident == "crate"
        {
            self.uses_in_tree(&path.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments = path.segments.iter();
        if segments.next().is_some_and(|first| first.ident == "crate")
            && let Some(second) = segments.next()
        {
            self.uses.insert(second.ident.to_string());
        }
        syn::visit::visit_path(self, path);
    }
}

fn shape(source: &Source) -> Shape {
    let mut shape = Shape::default();
    shape.visit_file(&source.syntax);
    shape
}

/// The paths that a file names outside its tests, in `use` lines and elsewhere.
#[derive(Default)]
struct Named(Vec<Vec<String>>);

impl Named {
    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.0.push(with(&name.ident)),
            syn::UseTree::Rename(name) => self.0.push(with(&name.ident)),
            syn::UseTree::Glob(_) => self.0.push(before.to_vec()),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.tree(before, tree));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test_only(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test_only(&item.attrs) {
            self.tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter();
        self.0
            .push(segments.map(|one| one.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }
}

/// The modules of a room by their place in it (`intent/text`; its root is the empty text), with what each uses of the
/// others. `room` is a folder, and `inside` its path in the crate.
fn uses_within(room: &str, inside: &str) -> BTreeMap<String, BTreeSet<String>> {
    let place = |path: &str| {
        let path = path.strip_prefix(room)?.strip_suffix(".rs")?;
        let place = path.strip_prefix('/').unwrap_or(path);
        Some(if place == "mod" { "" } else { place }.to_owned())
    };
    let top = room.split('/').take_while(|part| *part != "src");
    let root = top.map(|part| format!("{part}/")).collect::<String>() + "src";
    let files = sources(&[&root]).into_iter().filter_map(|source| {
        let is_inside =
            source.path.starts_with(&format!("{room}/")) || source.path == format!("{room}.rs");
        let test = is_test_file(&source.path) || source.path.contains("/fixtures");
        (is_inside && !test).then(|| (place(&source.path).unwrap(), source))
    });
    let files: BTreeMap<String, Source> = files.collect();
    let uses = files.iter().map(|(place, source)| {
        let mut named = Named::default();
        named.visit_file(&source.syntax);
        let used = named.0.iter().filter_map(|path| {
            let found = resolved(path, place, inside, |one| files.contains_key(one))?;
            (found != *place).then_some(found)
        });
        (place.clone(), used.collect())
    });
    uses.collect()
}

/// The module of the room that a path leads to, seen from the one at `place`.
fn resolved(
    path: &[String],
    place: &str,
    inside: &str,
    is_module: impl Fn(&str) -> bool,
) -> Option<String> {
    let parts = |text: &str| {
        let parts = text.split('/').filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    let (mut at, mut rest) = (parts(place), path);
    if rest.first()? == "crate" {
        rest = rest[1..].strip_prefix(&parts(inside)[..])?;
        at.clear();
    } else {
        let child = [&at[..], &rest[..1]].concat().join("/");
        if rest[0] != "super" && rest[0] != "self" && !is_module(&child) {
            return None;
        }
        while let Some(first) = rest
            .first()
            .filter(|part| ["super", "self"].contains(&part.as_str()))
        {
            if first == "super" {
                // Above the room.
                at.pop()?;
            }
            rest = &rest[1..];
        }
    }
    for part in rest {
        at.push(part.clone());
        if !is_module(&at.join("/")) {
            at.pop();
            break;
        }
    }
    Some(at.join("/"))
}

/// Modules of a room that use each other in a circle, and those that use them.
fn circle(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<&String> {
    let mut left: BTreeSet<&String> = uses.keys().collect();
    let is_leaf = |module: &&String, left: &BTreeSet<&String>| {
        uses[*module].iter().all(|used| !left.contains(used))
    };
    while let Some(leaf) = left.iter().copied().find(|module| is_leaf(module, &left)) {
        left.remove(leaf);
    }
    left.into_iter().collect()
}

/// The module of the daemon that a file belongs to; `None` for the crate's root and `main`.
fn module(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    let name = inside.split('/').next()?.trim_end_matches(".rs");
    (name != "lib" && name != "main").then_some(name)
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let mut wrong = Vec::new();
    for source in sources(&["src"])
        .iter()
        .filter(|source| !is_test_file(&source.path))
    {
        let Some(module) = module(&source.path) else {
            continue;
        };
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!(
                "{}: module {module} is not in the table",
                source.path
            ));
            continue;
        };
        for used in shape(source).uses {
            let known = MAY_USE.iter().any(|(name, _)| *name == used);
            if known && used != module && *allowed != ANY && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: {module} may not use {used}", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_quote_goes_from_stage_to_stage_and_asks_none_behind_it() {
    let uses = uses_within("src/quote", "quote");
    let stages = || QUOTE.iter().enumerate();
    let files = stages().flat_map(|(at, (_, files))| files.iter().map(move |file| (*file, at)));
    let ranks: BTreeMap<&str, usize> = files.collect();
    let mut wrong = Vec::new();
    let missing = ranks.keys().filter(|file| !uses.contains_key(**file));
    wrong.extend(missing.map(|file| format!("src/quote/{file}.rs is not there")));
    for (file, used) in uses.iter().filter(|(file, _)| !file.is_empty()) {
        let Some(rank) = ranks.get(file.as_str()) else {
            wrong.push(format!("src/quote/{file}.rs has no stage"));
            continue;
        };
        let behind = used
            .iter()
            .filter(|used| ranks.get(used.as_str()) > Some(rank));
        wrong.extend(
            behind.map(|used| format!("src/quote/{file}.rs uses {used}, which is behind it")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_of_a_room_use_each_other_in_no_circle() {
    for (room, inside) in [
        ("src/quote", "quote"),
        ("vm/src/ethereum/trade/swap", "ethereum/trade/swap"),
    ] {
        let uses = uses_within(room, inside);
        assert!(uses.len() > 5, "{room}: {uses:?}");
        assert!(uses.values().any(|used| !used.is_empty()), "{room}");
        assert_eq!(circle(&uses), Vec::<&String>::new(), "{room}");
    }
}

#[test]
fn paths_lead_to_the_modules_that_they_name() {
    let modules = ["", "a", "a/b", "c"];
    for (path, place, found) in [
        ("super::c::Thing", "a", Some("c")),
        ("super::Thing", "a", Some("")),
        ("super::super::c", "a/b", Some("c")),
        ("super::Thing", "a/b", Some("a")),
        ("b::thing", "a", Some("a/b")),
        ("self::b::Thing", "a", Some("a/b")),
        ("crate::room::a::b::thing", "c", Some("a/b")),
        ("crate::other::a", "c", None),
        ("std::fmt", "c", None),
        ("super::super::other", "a", None),
    ] {
        let path: Vec<_> = path.split("::").map(str::to_owned).collect();
        let resolved = resolved(&path, place, "room", |one| modules.contains(&one));
        assert_eq!(resolved.as_deref(), found, "{path:?} in {place}");
    }
    let uses = |all: &[(&str, &[&str])]| {
        let all = all.iter().map(|(one, used)| {
            let used = used.iter().map(|used| (*used).to_owned());
            ((*one).to_owned(), used.collect())
        });
        all.collect::<BTreeMap<String, BTreeSet<String>>>()
    };
    assert!(circle(&uses(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])).is_empty());
    let round = uses(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])]);
    assert_eq!(circle(&round), ["a", "b", "c"]);
}

#[test]
fn functions_files_and_traits_stay_small() {
    let mut wrong = Vec::new();
    for source in sources(&["src", "vm/src", "tests/devnet/src"]) {
        if is_test_file(&source.path) {
            continue;
        }
        let shape = shape(&source);
        wrong.extend(
            shape
                .complaints
                .iter()
                .map(|what| format!("{}: {what}", source.path)),
        );
        let lines = source.text.lines().count() - shape.test_lines;
        if lines > FILE_LINES {
            wrong.push(format!("{}: {lines} lines outside of tests", source.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_neither_wait_nor_read_a_clock() {
    let sources = sources(&["src", "vm/src"]);
    let mut wrong = Vec::new();
    for pure in PURE {
        let inside: Vec<_> = sources
            .iter()
            .filter(|source| source.path.starts_with(pure))
            .collect();
        assert!(!inside.is_empty(), "{pure} does not exist");
        for source in inside {
            let body = source.text.split("#[cfg(test)]").next().unwrap();
            let code = body
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                wrong.extend(
                    IMPURE_WORDS
                        .iter()
                        .filter(|word| line.contains(**word))
                        .map(|word| format!("{}: {word}: {}", source.path, line.trim())),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn families_are_named_only_in_vm_and_sled_only_in_the_store() {
    let mut wrong = Vec::new();
    for source in sources(&["src"])
        .iter()
        .filter(|source| !is_test_file(&source.path))
    {
        let body = source.text.split("#[cfg(test)]").next().unwrap();
        let code: Vec<_> = body
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        if code.iter().any(|line| line.contains("-vm\"")) {
            wrong.push(format!("{}: names a VM family", source.path));
        }
        let sled = code.iter().any(|line| {
            let line = line
                .replace("store::sled", "")
                .replace("sled::SledStore", "");
            line.contains("sled")
        });
        if sled && module(&source.path) != Some("store") {
            wrong.push(format!("{}: names sled", source.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The functions of a file that are tests.
#[derive(Default)]
struct Tests(BTreeSet<String>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let last = |attribute: &syn::Attribute| attribute.path().segments.last().cloned();
        let mut attributes = item.attrs.iter().filter_map(last);
        if attributes.any(|name| name.ident == "test") {
            self.0.insert(item.sig.ident.to_string());
        }
    }
}

/// What of a patch does not apply: the lines of a hunk that stay or go have to be in its file.
fn stale_hunks(patch: &str) -> Vec<String> {
    let (mut wrong, mut hunks) = (Vec::new(), Vec::new());
    let mut path = String::new();
    for line in patch.lines() {
        if let Some(named) = line.strip_prefix("+++ b/") {
            path = named.to_owned();
        } else if line.starts_with("@@ ") {
            hunks.push((path.clone(), Vec::new()));
        } else if !line.starts_with("--- ")
            && let Some((_, old)) = hunks.last_mut()
            && let Some(known) = line.strip_prefix([' ', '-'])
        {
            old.push(known);
        }
    }
    for (path, old) in &hunks {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        if old.is_empty() || !lines.windows(old.len()).any(|found| found == old) {
            wrong.push(format!("{path} has no lines\n{}", old.join("\n")));
        }
    }
    if hunks.is_empty() {
        wrong.push("no hunks".into());
    }
    wrong
}

#[test]
fn patches_of_the_machine_apply() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/economy/patches");
    let (mut wrong, mut patches) = (Vec::new(), 0);
    for entry in std::fs::read_dir(top).unwrap() {
        let path = entry.unwrap().path();
        let stale = stale_hunks(&std::fs::read_to_string(&path).unwrap());
        wrong.extend(stale.iter().map(|why| format!("{}: {why}", path.display())));
        patches += 1;
    }
    assert!(patches > 10, "{patches} patches");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn patches_that_strangers_between_families_have_to_find_are_there() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = std::fs::read_to_string(top.join(".ci/patches")).unwrap();
    let mut lines = script.lines();
    let named = lines.find_map(|line| line.strip_prefix("families=(")?.strip_suffix(')'));
    let named: Vec<_> = named.unwrap().split(' ').collect();
    assert!(named.len() > 2, "{named:?}");
    let missing = |name: &&str| {
        let path = format!("tests/economy/patches/{name}.patch");
        !top.join(path).is_file()
    };
    let missing: Vec<_> = named.into_iter().filter(missing).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// What is wrong with `path.rs::name, other_name`.
fn missing_tests(named: &str) -> Vec<String> {
    let path_and_names = named.split_once("::");
    let Some((path, names)) = path_and_names.filter(|(path, _)| path.ends_with(".rs")) else {
        return vec![format!("{named}: expected path.rs::name, other_name")];
    };
    let Ok(text) = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)) else {
        return vec![format!("{named}: there is no such file")];
    };
    let mut known = Tests::default();
    known.visit_file(&syn::parse_file(&text).unwrap());
    let names = names.split(", ").filter(|name| !known.0.contains(*name));
    names
        .map(|name| format!("{path}: there is no test {name}"))
        .collect()
}

#[test]
fn tests_that_the_guide_names_are_there() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide/attacks.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (mut wrong, mut directed, mut rows) = (Vec::new(), true, 0);
    for line in guide.lines() {
        // Behind it stand rows that whole programs show.
        directed &= line != "## The machine";
        if !line.starts_with("| ") || line.starts_with("| Tried |") {
            continue;
        }
        let cell = line
            .trim_end_matches(['|', ' '])
            .rsplit('|')
            .next()
            .unwrap();
        let pieces: Vec<_> = cell.split('`').collect();
        let is_name = |piece: &&&str| piece.contains("::") || directed && piece.contains(".rs");
        let bare = pieces.iter().step_by(2).filter(is_name);
        wrong.extend(bare.map(|piece| format!("{piece}: not in backticks")));
        let named: Vec<_> = pieces.iter().skip(1).step_by(2).filter(is_name).collect();
        wrong.extend(named.iter().flat_map(|named| missing_tests(named)));
        if directed && named.is_empty() {
            wrong.push(format!("no test: {line}"));
        }
        rows += usize::from(directed);
    }
    assert!(rows > 100, "{rows} rows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// README.md and the guides, as paths from the top.
fn pages() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![PathBuf::from("README.md")];
    for entry in std::fs::read_dir(top.join("src/guide")).unwrap() {
        pages.push(Path::new("src/guide").join(entry.unwrap().file_name()));
    }
    assert!(pages.len() > 5);
    pages
}

/// What a page says outside its blocks of code.
fn prose(path: &Path) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut code = false;
    let mut kept = Vec::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        if !code && !fence {
            kept.push(line.to_owned());
        }
    }
    kept
}

/// What links call a page's headings: letters, digits, `-` and `_` stay, spaces become `-`.
fn headings(path: &Path) -> BTreeSet<String> {
    let lines = prose(path).into_iter();
    let titles = lines.filter_map(|line| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let id: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        Some(id.to_lowercase())
    });
    titles.collect()
}

#[test]
fn links_of_readme_and_guides_lead_somewhere() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut wrong, mut links) = (Vec::new(), 0);
    for page in pages() {
        let text = prose(&page).join("\n");
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let file = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let known = top.join(&file).exists()
                && (heading.is_empty() || headings(&file).contains(heading));
            if !known {
                wrong.push(format!("{}: {link}", page.display()));
            }
            links += 1;
        }
    }
    assert!(links > 20, "{links} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The words of the map in `guide` below the line that begins with `root`.
fn mapped<'a>(guide: &'a str, root: &str) -> BTreeSet<&'a str> {
    let map = guide.split("```text\n").nth(1).unwrap();
    let map = map.split("```").next().unwrap();
    let lines = map.lines().skip_while(|line| !line.starts_with(root));
    let below = lines.skip(1).take_while(|line| line.starts_with(' '));
    below.flat_map(str::split_whitespace).collect()
}

/// The modules that the words of a map lack, as a file or as a directory.
fn unmapped<'a>(modules: &'a BTreeSet<String>, words: &BTreeSet<&str>) -> Vec<&'a String> {
    let is_mapped = |module: &str| {
        let mut forms = [".rs", "/"].iter().map(|end| format!("{module}{end}"));
        forms.any(|form| words.contains(form.as_str()))
    };
    let lacks = modules.iter().filter(|module| !is_mapped(module));
    lacks.collect()
}

#[test]
fn the_map_has_every_module() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(top.join("src/guide/develop.md")).unwrap();
    for (root, folder) in [("vm/", "vm/src"), ("src/", "src")] {
        let paths = std::fs::read_dir(top.join(folder)).unwrap();
        let paths = paths.map(|entry| entry.unwrap().path());
        let names = paths.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        let modules = names.filter(|name| name != "lib" && name != "main");
        let modules: BTreeSet<String> = modules.collect();
        assert!(modules.len() > 20, "{folder}: {modules:?}");
        let lacks = unmapped(&modules, &mapped(&guide, root));
        assert!(lacks.is_empty(), "{folder}: the map lacks {lacks:?}");
    }
}

#[test]
fn a_module_that_the_map_lacks_is_found() {
    let guide = "# A\n```text\nvm/  families\n  one.rs two/  one and two\nsrc/\n  three.rs  more\n```\nfour.rs\n";
    let modules: BTreeSet<String> = ["one", "two", "three", "four"].map(str::to_owned).into();
    assert_eq!(unmapped(&modules, &mapped(guide, "vm/")), ["four", "three"]);
    assert_eq!(
        unmapped(&modules, &mapped(guide, "src/")),
        ["four", "one", "two"]
    );
}

/// The sections that comments cite as `guide: protocol 4, 7.1 and 7.3`; an empty text for a citation of none.
fn cited(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let comments = lines.map(|line| line.trim_start_matches(['/', '!']).trim());
    let text = comments.collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for mark in ["guide: protocol", "guide's protocol"] {
        for behind in text.split(mark).skip(1) {
            let before = found.len();
            for word in behind.split_whitespace().filter(|word| *word != "and") {
                let number = word.trim_end_matches(|c: char| !c.is_ascii_digit());
                let is_number = |c: char| c.is_ascii_digit() || c == '.';
                if number.is_empty() || !number.chars().all(is_number) {
                    break;
                }
                found.push(number.to_owned());
                if !matches!(&word[number.len()..], "" | ",") {
                    break;
                }
            }
            if found.len() == before {
                found.push(String::new());
            }
        }
    }
    found
}

#[test]
fn citations_are_read_as_they_are_written() {
    for (text, found) in [
        ("// (guide: protocol 4, 7.1 and 7.3). Pure", "4 7.1 7.3"),
        ("//! by the guide's protocol 10.1. What", "10.1"),
        ("/// now (guide: protocol\n    /// 7.1); without 3", "7.1"),
        ("// guide: protocol 11.9, over 2 answers", "11.9"),
        ("// guide: protocol of old", ""),
    ] {
        assert_eq!(cited(text).join(" "), found, "{text}");
    }
    assert!(cited("// no guide").is_empty());
}

/// Whoever has the repository has every document that a comment names, and every section that it cites.
#[test]
fn comments_cite_what_is_here() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let titles = prose(Path::new("src/guide/protocol.md")).into_iter();
    let titles = titles.filter_map(|line| {
        let title = line.strip_prefix("##")?.trim_start_matches('#').trim();
        title.split(' ').next().map(str::to_owned)
    });
    let sections: BTreeSet<String> = titles.collect();
    let (mut wrong, mut citations) = (Vec::new(), 0);
    let files = [
        "src",
        "vm/src",
        "vm/tests",
        "vm/fuzz/fuzz_targets",
        "tests",
        "benches",
    ];
    for entry in files
        .iter()
        .flat_map(|root| walkdir::WalkDir::new(top.join(root)))
    {
        let path: PathBuf = entry.unwrap().into_path();
        let source = path.extension().is_some_and(|e| e == "rs" || e == "sol");
        if !source || path.ends_with("tests/architecture.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for section in cited(&text) {
            citations += 1;
            if !sections.contains(&section) {
                wrong.push(format!("{}: protocol has no {section:?}", path.display()));
            }
        }
        let comments = text
            .lines()
            .filter(|line| line.trim_start().starts_with("//"));
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        let words = comments.flat_map(|line| line.split(move |c| !is_part(c)));
        for named in words.filter(|word| word.ends_with(".md") && *word != ".md") {
            let known = top.join(named).exists() || top.join("src/guide").join(named).exists();
            if !known {
                wrong.push(format!("{}: there is no {named}", path.display()));
            }
        }
    }
    assert!(citations > 100, "{citations} citations");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
