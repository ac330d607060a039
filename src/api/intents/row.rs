//! How the rows of the table are made: what those of a kind have in common.

use hyper::Method;

use super::{State, access, error, retirement};
use crate::http::{Access, Docs, Handler, Query, Route, Shape, error::Described};

/// The group of a route, its title, and what it does.
type Said = (&'static str, &'static str, &'static str);

const fn row<S>(
    method: Method,
    path: &'static str,
    access: Access,
    docs: Docs,
    handler: Handler<S>,
) -> Route<S> {
    Route {
        method,
        path,
        access,
        handler,
        docs: Some(docs),
    }
}

const fn docs((group, summary, text): Said, query: Query, answer: Shape) -> Docs {
    Docs {
        summary,
        text,
        group,
        query,
        body: None,
        answer,
        also: &[],
    }
}

/// A POST that anybody may send.
pub const fn post(
    path: &'static str,
    said: Said,
    (body, answer): (Shape, Shape),
    handler: Handler<State>,
) -> Route<State> {
    let docs = Docs {
        body: Some(body),
        ..docs(said, Query::NONE, answer)
    };
    row(Method::POST, path, Access::Counted, docs, handler)
}

/// What says no with a body of its own, which has more in it.
static REFUSED: [Described; 6] = [
    Described::of::<error::QuoteFailure>(
        "400",
        "There is no such quote; `errorCode` says why",
        false,
    ),
    Described::of::<error::QuoteFailure>(
        "401",
        "The key is not known, or `subsidizeFees` needs one",
        true,
    ),
    Described::of::<error::QuoteFailure>("403", "The key may not do this", true),
    Described::of::<error::QuoteFailure>(
        "429",
        "Too many requests, or too many quotes with much data that nobody acted on",
        true,
    ),
    Described::of::<error::QuoteFailure>("500", "A fault of the service's own", true),
    Described::of::<error::QuoteFailure>(
        "503",
        "Prices, chains or the store cannot be used now",
        true,
    ),
];

/// A quote or a price.
pub const fn quoted(
    path: &'static str,
    said: Said,
    (body, answer): (Shape, Shape),
    handler: Handler<State>,
) -> Route<State> {
    let docs = Docs {
        body: Some(body),
        also: &REFUSED,
        ..docs(said, Query::NONE, answer)
    };
    row(Method::POST, path, access::QUOTE, docs, handler)
}

/// What a route that is being retired answers besides.
static RETIRED: [Described; 2] = [
    Described::of::<retirement::Refused>("410", "It has been retired", true),
    Described::of::<retirement::Refused>("429", "Too many requests: fewer every month", true),
];

/// A listing that is being retired.
pub const fn retiring(
    path: &'static str,
    said: Said,
    (query, answer): (Query, Shape),
    handler: Handler<State>,
) -> Route<State> {
    let docs = Docs {
        also: &RETIRED,
        ..docs(said, query, answer)
    };
    row(Method::GET, path, access::LISTING, docs, handler)
}

/// A GET that anybody may send.
pub const fn get<S>(
    path: &'static str,
    said: Said,
    shapes: (Query, Shape),
    handler: Handler<S>,
) -> Route<S> {
    let at = At {
        path,
        access: Access::Counted,
    };
    got(at, said, shapes, handler)
}

/// A path with terms of its own.
pub struct At {
    pub path: &'static str,
    pub access: Access,
}

/// A GET with terms of its own.
pub const fn got<S>(
    At { path, access }: At,
    said: Said,
    (query, answer): (Query, Shape),
    handler: Handler<S>,
) -> Route<S> {
    row(
        Method::GET,
        path,
        access,
        docs(said, query, answer),
        handler,
    )
}
