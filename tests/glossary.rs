//! Holds the words of src/guide/glossary.md: one word per thing, and no file and no type is called by a word that
//! the guide has given up. Holds what guides name, too: files, variables, codes, commands and metrics that are there.
//! A program of its own: nothing of the daemon is in it.

#![allow(clippy::unwrap_used)]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use syn::visit::Visit;

/// Where files and types are looked at.
const ROOTS: &[&str] = &["src", "vm/src", "vm/tests", "tests", "benches"];
/// Other files whose words guides may name.
const SCRIPTS: &[&str] = &["config.example.env", ".ci/run", ".ci/long", ".ci/patches"];
/// What paths from the top begin with.
const TOP: &[&str] = &["src", "vm", "tests", "benches", ".ci"];
/// What files end in that guides name.
const EXTENSIONS: &[&str] = &[".rs", ".md", ".json", ".toml", ".sol", ".env"];
/// Labels that only a planned route answers with (guide: protocol 11.17).
const PLANNED: &[&str] = &["INVALID_SIGNATURE", "UNKNOWN_CUSTOM_ERROR_"];

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of the glossary's tables in sections whose title is `wanted`, cell by cell.
fn rows(wanted: impl Fn(&str) -> bool) -> Vec<[String; 2]> {
    let guide = std::fs::read_to_string(top().join("src/guide/glossary.md")).unwrap();
    let (mut rows, mut inside) = (Vec::new(), false);
    for line in guide.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            inside = wanted(title);
        }
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let head = |cell: &str| cell.starts_with("---") || cell == "Term" || cell == "Not";
        if inside
            && line.starts_with('|')
            && !head(cells[0])
            && let [word, meaning] = cells[..]
        {
            rows.push([word.to_owned(), meaning.to_owned()]);
        }
    }
    rows
}

/// Words that are given up → what is said instead.
fn retired() -> BTreeMap<String, String> {
    let rows = rows(|title| title == "Words that are given up");
    let words = rows.iter().flat_map(|[words, instead]| {
        let words = words.split(", ").map(|word| word.trim_matches('`'));
        words.map(|word| (word.to_owned(), instead.clone()))
    });
    words.collect()
}

/// `DepositTx`, `deposit_tx` → `deposit`, `tx`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            let last = words.last_mut().unwrap();
            last.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The types, traits and modules of a file.
#[derive(Default)]
struct Named(BTreeSet<String>);

impl<'ast> Visit<'ast> for Named {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.0.insert(item.ident.to_string());
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.0.insert(item.ident.to_string());
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.0.insert(item.ident.to_string());
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.0.insert(item.ident.to_string());
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.0.insert(item.ident.to_string());
        syn::visit::visit_item_trait(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.0.insert(item.ident.to_string());
        syn::visit::visit_item_mod(self, item);
    }
}

#[test]
fn files_and_types_are_called_by_words_of_the_glossary() {
    let retired = retired();
    assert!(retired.len() > 15, "{retired:?}");
    let (mut wrong, mut files) = (Vec::new(), 0);
    let mut judge = |path: &str, kind: &str, name: &str| {
        for word in words(name) {
            if let Some(instead) = retired.get(&word) {
                wrong.push(format!("{path}: {kind} {name}: not {word}, but {instead}"));
            }
        }
    };
    for entry in ROOTS
        .iter()
        .flat_map(|root| walkdir::WalkDir::new(top().join(root)))
    {
        let entry = entry.unwrap();
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let path = path.strip_prefix(top()).unwrap().to_str().unwrap();
        for part in path.trim_end_matches(".rs").split('/') {
            judge(path, "file", part);
        }
        let mut named = Named::default();
        named.visit_file(&syn::parse_file(&text).unwrap());
        named.0.iter().for_each(|name| judge(path, "type", name));
        files += 1;
    }
    assert!(files > 300, "{files} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_term_stands_in_the_glossary_once() {
    let rows = rows(|title| title != "Words that are given up");
    let mut known = BTreeSet::new();
    for [terms, meaning] in &rows {
        assert!(!meaning.is_empty(), "{terms}");
        for term in terms.split(", ") {
            assert!(known.insert(term), "{term} stands there twice");
        }
    }
    let retired = retired();
    let both: Vec<_> = known
        .iter()
        .filter(|term| retired.contains_key(**term))
        .collect();
    assert!(both.is_empty(), "terms that are given up: {both:?}");
    assert!(known.len() > 60, "{} terms", known.len());
}

#[test]
fn names_are_split_into_their_words() {
    for (name, split) in [
        ("DepositTx", "deposit tx"),
        ("tx_details", "tx details"),
        ("UniswapV3", "uniswap v3"),
        ("scene", "scene"),
        ("Overtaken", "overtaken"),
    ] {
        assert_eq!(words(name).join(" "), split);
    }
}

/// What guides may name.
struct Known {
    /// Files and directories below [`ROOTS`], from the top.
    tree: Vec<PathBuf>,
    /// All sources and [`SCRIPTS`], without this file.
    sources: String,
    /// Words in capitals: variables and codes.
    capitals: BTreeSet<String>,
    /// Subcommands of the program, with those below each.
    commands: BTreeMap<String, Vec<String>>,
}

impl Known {
    fn read() -> Self {
        let entries = ROOTS
            .iter()
            .flat_map(|root| walkdir::WalkDir::new(top().join(root)));
        let tree = entries.map(|entry| {
            let path = entry.unwrap().into_path();
            path.strip_prefix(top()).unwrap().to_owned()
        });
        let tree: Vec<_> = tree.collect();
        let is_source = |path: &&PathBuf| {
            path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("tests/glossary.rs")
        };
        let files = tree.iter().filter(is_source).map(PathBuf::as_path);
        let files = files.chain(SCRIPTS.iter().map(Path::new));
        let texts = files.map(|path| std::fs::read_to_string(top().join(path)).unwrap());
        let sources = texts.collect::<Vec<_>>().join("\n");
        let mut known: BTreeSet<_> = capitals(&sources).into_iter().map(str::to_owned).collect();
        for reasons in ["FailReason", "RefundFailReason"] {
            let reasons = enumeration("src/request/reason.rs", reasons).unwrap();
            let names = reasons.variants.iter().map(|it| it.ident.to_string());
            known.extend(names.map(|name| words(&name).join("_").to_uppercase()));
        }
        let command = enumeration("src/cli.rs", "Command").unwrap();
        let commands = command.variants.iter();
        let commands = commands.map(|variant| (command_name(variant), commands_below(variant)));
        Self {
            commands: commands.collect(),
            capitals: known,
            sources,
            tree,
        }
    }

    /// What `page` names and nobody has.
    fn missing<'a>(&self, page: &str, text: &'a str) -> Vec<&'a str> {
        let paths = paths(text)
            .into_iter()
            .filter(|path| !self.has_path(page, path));
        let capitals = capitals(text)
            .into_iter()
            .filter(|word| !self.has_word(word));
        let metrics = metrics(text).into_iter();
        let metrics = metrics.filter(|name| !self.sources.contains(&format!("\"{name}\"")));
        let commands = commands(text)
            .into_iter()
            .filter(|it| !self.has_command(it));
        paths
            .chain(capitals)
            .chain(metrics)
            .chain(commands)
            .collect()
    }

    /// From the top, beside the page, or, where it does not begin at the top, the end of some path.
    fn has_path(&self, page: &str, path: &str) -> bool {
        let beside = top().join(page).parent().unwrap().join(path);
        let from_top = TOP.contains(&path.split('/').next().unwrap());
        let below = || self.tree.iter().any(|known| known.ends_with(path));
        top().join(path).exists() || beside.exists() || !from_top && below()
    }

    /// `BASE_RPC_URL` is `<ID>_RPC_URL` of some chain, `REQUESTS_V2_` the beginning of several.
    fn has_word(&self, word: &str) -> bool {
        let of_chain = word.ends_with("_RPC_URL") || word.ends_with("_RPC_QUORUM");
        let begins = || self.capitals.iter().any(|known| known.starts_with(word));
        let whole = self.capitals.contains(word) || PLANNED.contains(&word);
        of_chain || whole || word.ends_with('_') && begins()
    }

    fn has_command(&self, command: &str) -> bool {
        let mut words = command.split_whitespace();
        let Some(below) = words.next().and_then(|first| self.commands.get(first)) else {
            return false;
        };
        let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let second = words
            .next()
            .filter(is_word)
            .filter(|word| !word.starts_with('-'));
        below.is_empty() || second.is_none_or(|word| below.iter().any(|known| known == word))
    }
}

/// An enum of a file; `None` without the file.
fn enumeration(path: &str, name: &str) -> Option<syn::ItemEnum> {
    let text = std::fs::read_to_string(top().join(path)).ok()?;
    let items = syn::parse_file(&text).unwrap().items.into_iter();
    let mut enums = items.filter_map(|item| match item {
        syn::Item::Enum(item) => Some(item),
        _ => None,
    });
    enums.find(|item| item.ident == name)
}

/// The name of a subcommand: the one that its attribute gives it, else its words.
fn command_name(variant: &syn::Variant) -> String {
    let lists = variant.attrs.iter().filter_map(|attribute| {
        let list = attribute.meta.require_list().ok()?;
        list.path
            .is_ident("command")
            .then(|| list.tokens.to_string())
    });
    let mut given = lists
        .filter_map(|tokens| Some(tokens.strip_prefix("name = ")?.trim_matches('"').to_owned()));
    let own = || words(&variant.ident.to_string()).join("-");
    given.next().unwrap_or_else(own)
}

/// The subcommands of a subcommand, by the type that it holds.
fn commands_below(variant: &syn::Variant) -> Vec<String> {
    let Some(syn::Type::Path(held)) = variant.fields.iter().next().map(|field| &field.ty) else {
        return Vec::new();
    };
    let names = held.path.segments.iter().map(|it| it.ident.to_string());
    let names: Vec<_> = names.collect();
    let [modules @ .., name] = &names[..] else {
        return Vec::new();
    };
    let file = modules.join("/");
    let mut held = ["src/cli", "src"].iter();
    let held = held.find_map(|root| enumeration(&format!("{root}/{file}.rs"), name));
    held.map_or_else(Vec::new, |held| {
        held.variants.iter().map(command_name).collect()
    })
}

/// The paths of a text: by a file's extension, or from the top. In a block of text, the map, also what ends in `/`.
fn paths(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || "_-./<>".contains(c);
    let (mut found, mut block) = (BTreeSet::new(), "");
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            block = language;
            continue;
        }
        let words = line.split(|c| !is_part(c));
        let words = words.map(|word| word.trim_end_matches('.'));
        found.extend(words.filter(|word| {
            let mut stems = EXTENSIONS.iter().filter_map(|end| word.strip_suffix(end));
            let is_file = stems.any(|stem| !stem.is_empty() && !stem.ends_with('/'));
            let first = word.split_once('/').map(|(first, _)| first);
            let from_top = first.is_some_and(|first| TOP.contains(&first));
            let named = is_file || from_top || block == "text" && word.ends_with('/');
            named && !word.contains('<') && !word.starts_with('/')
        }));
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The words in capitals of a text that have a `_`, or that are given a value (`PEERS=…`).
fn capitals(text: &str) -> BTreeSet<&str> {
    let pieces = text.split_inclusive(|c| !is_name(c));
    let named = pieces.filter_map(|piece| {
        let word = piece.trim_end_matches(|c| !is_name(c));
        let given = word.len() > 1 && piece.ends_with('=');
        let is_capital = word.starts_with(|c: char| c.is_ascii_uppercase())
            && !word.contains(|c: char| c.is_ascii_lowercase());
        (is_capital && (given || word.contains('_'))).then_some(word)
    });
    named.collect()
}

/// The metrics of a text.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c| !is_name(c));
    words.filter(|word| word.starts_with("intentd_")).collect()
}

/// What a text has between quotes behind the program's name: `solver parked`.
fn commands(text: &str) -> Vec<&str> {
    let quoted = |mark: &str, end: char| {
        let behind = text.split(mark).skip(1);
        behind
            .filter_map(move |rest| rest.split(end).next())
            .collect::<Vec<_>>()
    };
    [quoted("`intentd ", '`'), quoted("\"intentd ", '"')].concat()
}

#[test]
fn what_guides_name_is_there() {
    let known = Known::read();
    let guides = std::fs::read_dir(top().join("src/guide")).unwrap();
    let guides = guides.map(|entry| format!("src/guide/{}", entry.unwrap().file_name().display()));
    let (mut wrong, mut named) = (Vec::new(), 0);
    for page in guides.chain(["README.md", "config.example.env"].map(str::to_owned)) {
        let text = std::fs::read_to_string(top().join(&page)).unwrap();
        let missing = known.missing(&page, &text).into_iter();
        wrong.extend(missing.map(|name| format!("{page}: there is no {name}")));
        named += paths(&text).len() + capitals(&text).len();
        named += metrics(&text).len() + commands(&text).len();
    }
    assert!(named > 400, "{named} names");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_guide_names_and_nobody_has_is_found() {
    let known = Known::read();
    let breach = "`src/attest/gone.rs`, gone.rs and `src/gone/`; set `GONE_KEY` or `GONE=1`, run `intentd gone` or \
                  `intentd solver gone <x>`, and watch `intentd_gone_total`.\n```text\n  gone/  nothing\n```\n";
    let found = known.missing("README.md", breach);
    let gone = [
        "gone.rs",
        "gone/",
        "src/attest/gone.rs",
        "src/gone/",
        "GONE",
        "GONE_KEY",
        "intentd_gone_total",
        "gone",
        "solver gone <x>",
    ];
    assert_eq!(found, gone);
    let fine = "`src/attest/fill.rs`, bounded.rs, `vm/src/<name>/read.rs`, `/documentation/guide/x.md`; set `DATA_DIR`, \
                `BASE_RPC_URL`, `REQUESTS_V2_*` or `PEERS=…`, answered with `DEPOSIT_CHAIN_MISMATCH`; run `intentd solver \
                write-off`, `intentd openapi oracle` or `intentd lane`, and watch `intentd_solver_gap_usd`.\n\
                ```text\n  attest/  the judgements\n```\n";
    assert_eq!(known.missing("README.md", fine), [""; 0]);
}
