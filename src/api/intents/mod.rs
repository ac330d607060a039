//! The integrator API's routes: one file per subject, with its data types and short handlers. What is
//! promised, found or done is decided elsewhere.

mod about;
pub mod access;
mod chains;
pub mod charts;
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
mod row;
mod status;
mod transactions;

use std::{collections::HashMap, sync::Arc};

use futures::future::BoxFuture;
use vm::ChainSpec;

use crate::{
    http::{ApiError, Query, Response, Route, Shape},
    index::{submitted::Transactions, tail_states::TailStates},
    market::{Market, Network},
    price::PriceSource,
    quote::{pricing_chain::Capacity, pricing_chain::PricingChain, service::Quoter, swaps::Swaps},
    request::{
        filter::{Edition, described},
        render,
    },
    store::{listing::Listing, requests::Requests},
};

pub use self::about::ABOUT;
use self::row::{At, get, got, post, quoted, retiring};

/// What the handlers answer from.
pub struct State {
    pub market: Arc<Market>,
    /// By the network's name.
    pub chains: HashMap<String, PricingChain>,
    pub prices: Arc<dyn PriceSource>,
    pub swaps: Swaps,
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
    pub tail_states: Arc<TailStates>,
    /// The account that the solver signs its promises with.
    pub solver: String,
    /// Unix milliseconds.
    pub clock: fn() -> u64,
}

impl State {
    fn spec(&self, network: &Network) -> Option<&Arc<ChainSpec>> {
        self.chains.get(&network.name).map(|chain| &chain.spec)
    }

    /// The solver's account on a network.
    fn solver(&self, network: &Network) -> &str {
        let chain = self.chains.get(&network.name);
        chain.map_or(&self.solver, |chain| chain.account.text())
    }

    /// The network of a number as a caller sent it.
    fn network(&self, number: u64) -> Result<&Network, ApiError> {
        currencies::network(&self.market, number)
    }
}

/// The state as a handler gets it.
type Shared = Arc<State>;

type Answer = BoxFuture<'static, Result<Response, ApiError>>;

/// What `/quote/v2` and its kin take.
const QUOTE: Shape = Shape::of::<quotes::Body>();

/// The integrator API's table.
pub static ROUTES: &[Route<State>] = &[
    quoted(
        "/quote/v2",
        (
            "Quotes",
            "Quote a request",
            "Says what a request costs and which steps to take. Prices the request, simulates what the solver would \
             do for it, and keeps it as `waiting`. The steps are what the user signs, in their order. Nothing is \
             owed before a deposit; the price holds until `details.validUntil`.",
        ),
        (QUOTE, Shape::of::<quotes::Answer>()),
        |state, request| -> Answer { Box::pin(quotes::quote(state, request)) },
    ),
    quoted(
        "/quote",
        (
            "Quotes",
            "Quote a request (deprecated)",
            "Deprecated: use `POST /quote/v2`, which takes the same body and gives the same answer, but for the checks \
             of its steps: here they name `GET /intents/status`, the only one that clients before 3.0 know.",
        ),
        (QUOTE, Shape::of::<quotes::Answer>()),
        |state, request| -> Answer { Box::pin(quotes::deprecated(state, request)) },
    ),
    quoted(
        "/price",
        (
            "Quotes",
            "Price a request",
            "What a request would cost. As `POST /quote/v2`, but without steps, and nothing is kept: for amounts \
             that change while a user types. Quote before anything is signed.",
        ),
        (QUOTE, Shape::of::<quotes::PriceAnswer>()),
        |state, request| -> Answer { Box::pin(quotes::price(state, request)) },
    ),
    quoted(
        "/execute/swap/multi-input",
        (
            "Quotes",
            "Quote several inputs",
            "Quotes several inputs for one output, a request for each. As `POST /quote/v2` for each of `origins`, at \
             once: all of them are quoted, or none and nothing is kept. Each is a request of its own, filled or \
             given back by itself, and counts as one towards limits.",
        ),
        (
            Shape::of::<quotes::MultiBody>(),
            Shape::of::<quotes::MultiAnswer>(),
        ),
        |state, request| -> Answer { Box::pin(quotes::multi(state, request)) },
    ),
    get(
        "/intents/status/v3",
        (
            "Status",
            "Get the status of a request",
            "Where a request stands, for clients that poll: stop at `success`, `failure` or `refund`. A reorg may \
             take back what a status told.",
        ),
        (Query::of::<status::Asked>(), Shape::of::<status::V3>()),
        |state, request| -> Answer { Box::pin(status::rendered(state, request, render::v3)) },
    ),
    get(
        "/intents/status/v2",
        (
            "Status",
            "Get the status of a request (version 2)",
            "As version 3, with the statuses and field names that version 2 had: `submitted` is told as \
             `pending`.",
        ),
        (Query::of::<status::Asked>(), Shape::of::<status::V2>()),
        |state, request| -> Answer { Box::pin(status::rendered(state, request, render::v2)) },
    ),
    get(
        "/intents/status",
        (
            "Status",
            "Get the status of a request (version 1)",
            "As version 3, with the statuses that version 1 had: a deposit that was seen is `received`, a refund \
             is `fallback`.",
        ),
        (Query::of::<status::Asked>(), Shape::of::<status::V1>()),
        |state, request| -> Answer { Box::pin(status::rendered(state, request, render::v1)) },
    ),
    got(
        At {
            path: "/requests/v3",
            access: access::LISTING_V3,
        },
        (
            "Requests",
            "List requests",
            "Everybody's requests with all that is known of them, a page at a time. Needs a key. Quotes that nobody \
             acted on are left out unless `status=waiting`, or an id, asks for them. A page may be short and still \
             have a `continuation`.",
        ),
        (
            Query::by(|| described(Edition::V3)),
            Shape::of::<requests::ListV3>(),
        ),
        |state, request| -> Answer { Box::pin(requests::v3(state, request)) },
    ),
    retiring(
        retirement::PATH,
        (
            "Requests",
            "List requests (version 2, deprecated)",
            "Deprecated: use `GET /requests/v3`. The record as version 2 had it. The answers say in headers until \
             when it is served, and its limit shrinks every month.",
        ),
        (
            Query::by(|| described(Edition::V2)),
            Shape::of::<requests::ListV2>(),
        ),
        |state, request| -> Answer { Box::pin(requests::v2(state, request)) },
    ),
    got(
        At {
            path: "/requests",
            access: access::LISTING,
        },
        (
            "Requests",
            "List requests (version 1, deprecated)",
            "Deprecated: use `GET /requests/v3`. The record as version 2 has it, with the statuses and the \
             parameters of version 1.",
        ),
        (
            Query::by(|| described(Edition::V1)),
            Shape::of::<requests::ListV1>(),
        ),
        |state, request| -> Answer { Box::pin(requests::v1(state, request)) },
    ),
    post(
        "/transactions/index",
        (
            "Transactions",
            "Index a transaction",
            "The index looks for the deposits of the transaction at once; without this call it finds them a little \
             later. What the body says is believed only where the chain shows it.",
        ),
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
            "Submit a user's transaction",
            "Names the transaction that a user sent for a request, where the user's own transaction fulfils it: \
             swaps, sends, wraps. It counts where the chain shows that its sender and its call are those of the \
             quote.",
        ),
        (
            Shape::of::<transactions::Single>(),
            Shape::of::<transactions::Done>(),
        ),
        |state, request| -> Answer { Box::pin(transactions::single(state, request)) },
    ),
    got(
        At {
            path: "/transactions/status",
            access: access::TRANSACTION_STATUS,
        },
        (
            "Transactions",
            "Get the status of a transaction",
            "What became of a transaction that was submitted or seen. Where it belongs to a request, the answer \
             also has what `GET /intents/status/v3` says of it.",
        ),
        (
            Query::of::<transactions::Asked>(),
            Shape::of::<transactions::Standing>(),
        ),
        |state, request| -> Answer { Box::pin(transactions::status(state, request)) },
    ),
    get(
        "/chains",
        (
            "Chains",
            "List chains",
            "The chains that can be quoted, with their currencies and contracts, in the shape that clients build \
             their own configuration from.",
        ),
        (Query::of::<chains::Filter>(), Shape::of::<chains::Chains>()),
        |state, request| -> Answer { Box::pin(chains::list(state, request)) },
    ),
    get(
        "/chains/liquidity",
        (
            "Chains",
            "Get a chain's liquidity",
            "What the solver could pay now of each of its currencies on a chain.",
        ),
        (
            Query::of::<config::OneChain>(),
            Shape::of::<config::Liquidity>(),
        ),
        |state, request| -> Answer { Box::pin(config::liquidity(state, request)) },
    ),
    get(
        "/chains/health",
        (
            "Chains",
            "Get the health of chains",
            "Of one chain, or of all that are not switched off: whether it could be read for a quote now.",
        ),
        (
            Query::of::<config::AnyChain>(),
            Shape::of::<config::Health>(),
        ),
        |state, request| -> Answer { Box::pin(config::health(state, request)) },
    ),
    get(
        "/config/v2",
        (
            "Chains",
            "Get a route's configuration",
            "Whether a route can be quoted now, what the solver takes of a deposit, and what it can pay at most. \
             With `user` also the user's balance.",
        ),
        (
            Query::of::<config::Asked>(),
            Shape::of::<config::RouteConfig>(),
        ),
        |state, request| -> Answer { Box::pin(config::route(state, request)) },
    ),
    get(
        "/config",
        (
            "Chains",
            "Get a route's configuration (older name)",
            "The older name of `GET /config/v2`: the same query, the same answer.",
        ),
        (
            Query::of::<config::Asked>(),
            Shape::of::<config::RouteConfig>(),
        ),
        |state, request| -> Answer { Box::pin(config::route(state, request)) },
    ),
    post(
        "/currencies/v1",
        (
            "Currencies",
            "List currencies by asset",
            "The currencies that all parts of the filter fit. Those of one asset on different chains stand \
             together.",
        ),
        (
            Shape::of::<currencies::Filter>(),
            Shape::of::<currencies::Groups>(),
        ),
        |state, request| -> Answer { Box::pin(currencies::grouped(state, request)) },
    ),
    post(
        "/currencies/v2",
        (
            "Currencies",
            "List currencies",
            "The currencies that all parts of the filter fit.",
        ),
        (
            Shape::of::<currencies::Filter>(),
            Shape::of::<currencies::Flat>(),
        ),
        |state, request| -> Answer { Box::pin(currencies::flat(state, request)) },
    ),
    get(
        "/currencies/token/price",
        (
            "Currencies",
            "Get a currency's price",
            "What one whole unit is worth in dollars, for display: the number has as many digits as a double keeps. \
             Quotes decide on exact prices.",
        ),
        (Query::of::<prices::Token>(), Shape::of::<prices::Body>()),
        |state, request| -> Answer { Box::pin(prices::token(state, request)) },
    ),
    get(
        "/currencies/token/price/v2",
        (
            "Currencies",
            "Get a currency's exact price",
            "What one whole unit is worth in dollars, as a decimal text of all its digits.",
        ),
        (Query::of::<prices::Token>(), Shape::of::<prices::Exact>()),
        |state, request| -> Answer { Box::pin(prices::exact(state, request)) },
    ),
    get(
        "/swap-sources",
        (
            "Currencies",
            "List swap sources",
            "The exchanges that routes may use, by the names that the filters of a quote take (`includedSwapSources` \
             and the like), of one chain or of all.",
        ),
        (
            Query::of::<prices::OfChain>(),
            Shape::of::<prices::Sources>(),
        ),
        |state, request| -> Answer { Box::pin(prices::sources(state, request)) },
    ),
];
