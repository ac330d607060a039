//! The integrator API's routes: one file per subject, with its data types and short handlers. What is
//! promised, found or done is decided elsewhere.

pub mod access;
mod chains;
pub mod codes;
mod config;
mod currencies;
pub mod error;
pub mod events;
pub mod planned;
mod prices;
mod quotes;
mod requests;
pub mod retirement;
mod status;
mod transactions;

use std::{collections::HashMap, sync::Arc};

use futures::future::BoxFuture;
use hyper::Method;
use vm::ChainSpec;

use crate::{
    http::{Access, ApiError, Docs, Handler, Query, Response, Route, Shape, error::Described},
    index::{manual::Transactions, troubles::Troubles},
    market::{Market, Network},
    price::PriceSource,
    quote::{service::Quoter, swap::SwapRouting, venue::Capacity, venue::Venue},
    store::{listing::Listing, requests::Requests},
};

/// What the handlers answer from.
pub struct State {
    pub market: Arc<Market>,
    /// By the network's name.
    pub venues: HashMap<String, Venue>,
    pub prices: Arc<dyn PriceSource>,
    pub swaps: SwapRouting,
    pub capacity: Arc<dyn Capacity>,
    pub quoter: Quoter,
    pub requests: Requests,
    pub listing: Listing,
    pub retiring: retirement::Throttle,
    pub transactions: Arc<Transactions>,
    /// What providers said of balances a moment ago.
    pub recent: config::Recent,
    /// Which chains lagged a moment ago.
    pub looks: chains::Looks,
    /// Which chains the index reads now.
    pub troubles: Arc<Troubles>,
    /// The solver's address.
    pub solver: String,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
}

impl State {
    fn spec(&self, network: &Network) -> Option<&Arc<ChainSpec>> {
        self.venues.get(&network.name).map(|venue| &venue.spec)
    }

    /// The network of a number as a caller sent it.
    fn network(&self, number: u64) -> Result<&Network, ApiError> {
        let missing = || {
            let what = format!("chainId: {number} is not a chain of GET /chains");
            ApiError::refused("UNSUPPORTED_CHAIN", what)
        };
        self.market.by_number(number).ok_or_else(missing)
    }
}

/// The state as a handler gets it.
type Shared = Arc<State>;

type Answer = BoxFuture<'static, Result<Response, ApiError>>;

/// The integrator API's table.
pub static ROUTES: &[Route<State>] = &[
    quoted(
        "/quote/v2",
        (
            "Quotes",
            "Quotes a request: what it costs, and the steps to take",
        ),
        Shape::of::<quotes::Answer>(),
        |state, request| -> Answer { Box::pin(quotes::quote(state, request)) },
    ),
    quoted(
        "/quote",
        ("Quotes", "Deprecated: POST /quote/v2"),
        Shape::of::<quotes::Answer>(),
        |state, request| -> Answer { Box::pin(quotes::deprecated(state, request)) },
    ),
    quoted(
        "/price",
        ("Quotes", "What a request would cost; nothing is kept"),
        Shape::of::<quotes::PriceAnswer>(),
        |state, request| -> Answer { Box::pin(quotes::price(state, request)) },
    ),
    get(
        "/intents/status/v3",
        ("Status", "Where a request stands"),
        (Query::of::<status::Asked>(), Shape::of::<status::V3>()),
        |state, request| -> Answer { Box::pin(status::v3(state, request)) },
    ),
    get(
        "/intents/status/v2",
        ("Status", "Where a request stands, as version 2 said it"),
        (Query::of::<status::Asked>(), Shape::of::<status::V2>()),
        |state, request| -> Answer { Box::pin(status::v2(state, request)) },
    ),
    get(
        "/intents/status",
        ("Status", "Where a request stands, as version 1 said it"),
        (Query::of::<status::Asked>(), Shape::of::<status::V1>()),
        |state, request| -> Answer { Box::pin(status::v1(state, request)) },
    ),
    got(
        ("/requests/v3", access::LISTING_V3),
        ("Requests", "Requests by what is asked for; needs a key"),
        (
            Query::of::<requests::AskedV3>(),
            Shape::of::<requests::ListV3>(),
        ),
        |state, request| -> Answer { Box::pin(requests::v3(state, request)) },
    ),
    retiring(
        retirement::PATH,
        ("Requests", "Deprecated: GET /requests/v3"),
        (
            Query::of::<requests::AskedV2>(),
            Shape::of::<requests::ListV2>(),
        ),
        |state, request| -> Answer { Box::pin(requests::v2(state, request)) },
    ),
    got(
        ("/requests", access::LISTING),
        ("Requests", "Deprecated: GET /requests/v3"),
        (
            Query::of::<requests::AskedV1>(),
            Shape::of::<requests::ListV1>(),
        ),
        |state, request| -> Answer { Box::pin(requests::v1(state, request)) },
    ),
    post(
        "/transactions/index",
        ("Transactions", "Looks for a transaction's deposits now"),
        (
            Shape::of::<transactions::Index>(),
            Shape::of::<transactions::Done>(),
        ),
        |state, request| -> Answer { Box::pin(transactions::index(state, request)) },
    ),
    post(
        "/transactions/single",
        (
            "Transactions",
            "Names the transaction that a user sent for a request",
        ),
        (
            Shape::of::<transactions::Single>(),
            Shape::of::<transactions::Done>(),
        ),
        |state, request| -> Answer { Box::pin(transactions::single(state, request)) },
    ),
    got(
        ("/transactions/status", access::TRANSACTION_STATUS),
        ("Transactions", "What is known of a transaction"),
        (
            Query::of::<transactions::Asked>(),
            Shape::of::<transactions::Standing>(),
        ),
        |state, request| -> Answer { Box::pin(transactions::status(state, request)) },
    ),
    get(
        "/chains",
        ("Chains", "The chains that can be quoted"),
        (Query::of::<chains::Filter>(), Shape::of::<chains::Chains>()),
        |state, request| -> Answer { Box::pin(chains::list(state, request)) },
    ),
    get(
        "/chains/liquidity",
        ("Chains", "What the solver can pay on a chain"),
        (
            Query::of::<config::OneChain>(),
            Shape::of::<config::Liquidity>(),
        ),
        |state, request| -> Answer { Box::pin(config::liquidity(state, request)) },
    ),
    get(
        "/chains/health",
        ("Chains", "Whether a chain can be read now"),
        (
            Query::of::<config::AnyChain>(),
            Shape::of::<config::Health>(),
        ),
        |state, request| -> Answer { Box::pin(config::health(state, request)) },
    ),
    get(
        "/config/v2",
        ("Chains", "What a route can carry"),
        (
            Query::of::<config::Asked>(),
            Shape::of::<config::RouteConfig>(),
        ),
        |state, request| -> Answer { Box::pin(config::route(state, request)) },
    ),
    get(
        "/config",
        ("Chains", "What a route can carry: as /config/v2"),
        (
            Query::of::<config::Asked>(),
            Shape::of::<config::RouteConfig>(),
        ),
        |state, request| -> Answer { Box::pin(config::route(state, request)) },
    ),
    post(
        "/currencies/v1",
        ("Currencies", "Currencies, a list per asset"),
        (
            Shape::of::<currencies::Filter>(),
            Shape::of::<currencies::Groups>(),
        ),
        |state, request| -> Answer { Box::pin(currencies::grouped(state, request)) },
    ),
    post(
        "/currencies/v2",
        ("Currencies", "Currencies, one list"),
        (
            Shape::of::<currencies::Filter>(),
            Shape::of::<currencies::Flat>(),
        ),
        |state, request| -> Answer { Box::pin(currencies::flat(state, request)) },
    ),
    get(
        "/currencies/token/price",
        ("Currencies", "What one whole unit is worth in dollars"),
        (Query::of::<prices::Token>(), Shape::of::<prices::Body>()),
        |state, request| -> Answer { Box::pin(prices::token(state, request)) },
    ),
    get(
        "/currencies/token/price/v2",
        ("Currencies", "The same, as a text of all its digits"),
        (Query::of::<prices::Token>(), Shape::of::<prices::Exact>()),
        |state, request| -> Answer { Box::pin(prices::exact(state, request)) },
    ),
    get(
        "/swap-sources",
        ("Currencies", "The exchanges that routes may use"),
        (
            Query::of::<prices::OfChain>(),
            Shape::of::<prices::Sources>(),
        ),
        |state, request| -> Answer { Box::pin(prices::sources(state, request)) },
    ),
];

type Said = (&'static str, &'static str);

const fn post(
    path: &'static str,
    (group, summary): Said,
    (body, answer): (Shape, Shape),
    handler: Handler<State>,
) -> Route<State> {
    Route {
        method: Method::POST,
        path,
        access: Access::Counted,
        handler,
        docs: Some(Docs {
            summary,
            group,
            query: Query::NONE,
            body: Some(body),
            answer,
            also: &[],
        }),
    }
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

const fn quoted(
    path: &'static str,
    said: Said,
    answer: Shape,
    handler: Handler<State>,
) -> Route<State> {
    Route {
        method: Method::POST,
        path,
        access: access::QUOTE,
        handler,
        docs: Some(Docs {
            summary: said.1,
            group: said.0,
            query: Query::NONE,
            body: Some(Shape::of::<quotes::Body>()),
            answer,
            also: &REFUSED,
        }),
    }
}

/// What a route that is being retired answers besides.
static RETIRED: [Described; 2] = [
    Described::of::<retirement::Refused>("410", "It has been retired", true),
    Described::of::<retirement::Refused>("429", "Too many requests: fewer every month", true),
];

const fn retiring(
    path: &'static str,
    (group, summary): Said,
    (query, answer): (Query, Shape),
    handler: Handler<State>,
) -> Route<State> {
    Route {
        method: Method::GET,
        path,
        access: access::LISTING,
        handler,
        docs: Some(Docs {
            summary,
            group,
            query,
            body: None,
            answer,
            also: &RETIRED,
        }),
    }
}

const fn get(
    path: &'static str,
    said: Said,
    shapes: (Query, Shape),
    handler: Handler<State>,
) -> Route<State> {
    got((path, Access::Counted), said, shapes, handler)
}

const fn got(
    (path, access): (&'static str, Access),
    (group, summary): Said,
    (query, answer): (Query, Shape),
    handler: Handler<State>,
) -> Route<State> {
    Route {
        method: Method::GET,
        path,
        access,
        handler,
        docs: Some(Docs {
            summary,
            group,
            query,
            body: None,
            answer,
            also: &[],
        }),
    }
}
