//! Holds the words of src/guide/glossary.md: one word per thing, and no file and no type is called by a word that
//! the guide has given up. A program of its own: nothing of the daemon is in it.

#![allow(clippy::unwrap_used)]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use syn::visit::Visit;

/// Where files and types are looked at.
const ROOTS: &[&str] = &["src", "vm/src", "vm/tests", "tests", "benches"];

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
