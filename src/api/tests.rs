//! Every code that a listener answers with has a page there.

use std::collections::BTreeSet;

use serde_json::Value;
use strum::VariantArray;
use syn::visit::Visit;

use super::{intents, oracle};
use crate::{
    attest::refusal::RETRYABLE,
    http::{
        ApiError, Errors,
        codes::{self, Codes, Retry},
        limit::Standing,
    },
    quote::code::Code,
};

const SURFACES: [Errors; 2] = [intents::error::ERRORS, oracle::ERRORS];

/// The literals of a file that look like codes, those of its tests left out.
#[derive(Default)]
struct Literals(BTreeSet<String>);

impl<'ast> Visit<'ast> for Literals {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let test = |attribute: &syn::Attribute| attribute.path().is_ident("cfg");
        if !item.attrs.iter().any(test) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        let text = literal.value();
        let capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        // The name of a format is no code.
        if text.len() > 3 && text.chars().all(capital) && text != "JSON" {
            self.0.insert(text);
        }
    }
}

/// The codes in the source files of `places`: files, or directories with theirs.
fn written(paths: &[&str]) -> BTreeSet<String> {
    let mut found = Literals::default();
    for path in paths {
        let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for entry in walkdir::WalkDir::new(top.join(path)) {
            let path = entry.unwrap().into_path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let rust = path.extension().is_some_and(|kind| kind == "rs");
            if rust && name != "tests.rs" && name != "codes.rs" && name != "payments.rs" {
                let text = std::fs::read_to_string(&path).unwrap();
                found.visit_file(&syn::parse_file(&text).unwrap());
            }
        }
    }
    assert!(!found.0.is_empty(), "{paths:?}");
    found.0
}

fn missing(codes: Codes, written: BTreeSet<String>) -> Vec<String> {
    let known = |text: &String| codes::find(codes, text).is_some_and(|code| code.text == text);
    written.into_iter().filter(|text| !known(text)).collect()
}

#[test]
fn every_code_in_the_source_has_a_page() {
    let [intents, oracle] = SURFACES.map(|errors| errors.codes);
    let server = [
        "http/body.rs",
        "http/framing.rs",
        "http/parse.rs",
        "http/service.rs",
        "http/socket.rs",
    ];
    let own = [
        "api/intents",
        "http/error.rs",
        "request/filter",
        "stream/protocol.rs",
    ];
    let oracles = ["api/oracle", "attest/refusal", "http/plain.rs"];
    for (codes, paths) in [
        (intents, &server[..]),
        (intents, &own),
        (oracle, &server),
        (oracle, &oracles),
    ] {
        let missing = missing(codes, written(paths));
        assert!(missing.is_empty(), "no page for {missing:?} of {paths:?}");
    }
    // What only the other surface says has none.
    assert!(codes::find(oracle, "NO_SWAP_ROUTES_FOUND").is_none());
    assert!(codes::find(intents, "ORDER_OPEN").is_none());
}

#[test]
fn a_code_has_one_row_that_says_all() {
    for errors in SURFACES {
        let mut known = BTreeSet::new();
        for code in errors.codes.iter().copied().flatten() {
            assert!(known.insert(code.text), "{} stands twice", code.text);
            for text in [code.happened, code.advice] {
                assert!(
                    text.len() > 10 && text.ends_with('.'),
                    "{}: {text}",
                    code.text
                );
            }
        }
        assert!(known.len() > 60);
    }
}

#[test]
fn rows_of_quotes_are_those_of_their_codes() {
    let own = |text: &str| intents::codes::QUOTES.iter().any(|row| row.text == text);
    for text in Code::VARIANTS.iter().map(|code| code.text()) {
        let servers = codes::SERVER.iter().any(|row| row.text == text);
        assert!(own(text) != servers, "{text}");
    }
    let known = |text: &str| Code::VARIANTS.iter().any(|code| code.text() == text);
    for row in intents::codes::QUOTES {
        assert!(known(row.text), "{}", row.text);
    }
    for row in intents::codes::UNANSWERED {
        assert!(!known(row.text), "{}", row.text);
    }
}

#[test]
fn pages_and_refusals_agree_on_what_may_be_retried() {
    let refused = [
        oracle::codes::DEPOSITS,
        oracle::codes::PAYMENTS,
        oracle::codes::WITHDRAWALS,
    ];
    for code in refused.into_iter().flatten() {
        let later = RETRYABLE.contains(&code.text);
        assert_eq!(code.retry == Retry::Later, later, "{}", code.text);
    }
    for text in RETRYABLE {
        let mut all = refused.into_iter().flatten();
        assert!(all.any(|code| code.text == *text), "{text}");
    }
}

fn errors() -> Vec<ApiError> {
    let standing = Standing {
        allowed: false,
        limit: 1,
        remaining: 0,
        reset_ms: 1,
    };
    vec![
        ApiError::refused("INVALID_FIELD", "why"),
        ApiError::Unauthorized,
        ApiError::Forbidden("quote"),
        ApiError::NoRoute {
            method: "GET".into(),
            path: "/x".into(),
        },
        ApiError::WrongMethod {
            method: "PUT".into(),
            path: "/x".into(),
            allowed: "GET".into(),
        },
        ApiError::Planned("GET /x".into()),
        ApiError::missing("REFUSED", "why"),
        ApiError::SlowBody,
        ApiError::conflict("REFUSED", "why"),
        ApiError::gone("REFUSED", "why"),
        ApiError::BodyTooLarge,
        ApiError::MediaType("text/plain".into()),
        ApiError::UpgradeRequired,
        ApiError::RateLimited(standing),
        ApiError::internal("why"),
        ApiError::unavailable("OVERLOADED", "why", "cause"),
        ApiError::Deadline,
    ]
}

#[test]
fn every_refusal_names_the_page_of_its_code() {
    for surface in SURFACES {
        for error in errors() {
            let (shown, retryable) = (error.to_string(), error.retryable());
            let answer = (surface.answer)(error);
            let body: Value = serde_json::from_slice(answer.body.bytes().unwrap()).unwrap();
            let docs = body["docs"].as_str().unwrap_or_default();
            let code = docs
                .strip_prefix("/documentation/errors/")
                .unwrap_or_default();
            let row = codes::find(surface.codes, code);
            let row = row.unwrap_or_else(|| panic!("{shown}: no page at {docs:?} of {body}"));
            for name in ["code", "errorCode"] {
                let said = body[name].as_str().unwrap_or(row.text);
                assert_eq!(said, row.text, "{body}");
            }
            assert_eq!(row.retry == Retry::Later, retryable, "{shown}");
        }
    }
}
