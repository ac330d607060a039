//! The codes of the integrator API's refusals and failures, as their pages tell them.

use crate::http::codes::{Code, later, never};

/// Those of quotes and prices ([`crate::quote::code`]).
pub const QUOTES: &[Code] = &[
    never(
        "AMOUNT_TOO_LOW",
        "The amount is below what can be carried, or its costs exceed it.",
        "Ask for a larger amount.",
    ),
    never(
        "CHAIN_DISABLED",
        "The chain is switched off for now.",
        "Use another chain. GET /chains tells which ones are on.",
    ),
    never(
        "UNSUPPORTED_CHAIN",
        "There is no chain of this number here.",
        "Use a number of GET /chains.",
    ),
    never(
        "EXTRA_TXS_NOT_SUPPORTED",
        "Calls on the destination are not possible with this request.",
        "Leave out txs, or use EXACT_INPUT or EXACT_OUTPUT on a chain that takes calls.",
    ),
    never(
        "INVALID_EXTRA_TXS",
        "The calls of txs do not fit the request.",
        "Correct txs: the values must not exceed the output, and each call needs to, data and value.",
    ),
    never(
        "INVALID_GAS_LIMIT_FOR_DEPOSIT_SPECIFIED_TXS",
        "The gas limit of the calls is missing or cannot be used.",
        "Send the gas limit that the message asks for.",
    ),
    never(
        "INSUFFICIENT_FUNDS",
        "The user does not hold what is to be deposited.",
        "Ask for a smaller amount, or fund the account first.",
    ),
    later(
        "INSUFFICIENT_LIQUIDITY",
        "The solver cannot pay so much of this currency now.",
        "Ask for a smaller amount or ask again later. GET /config/v2 tells what a route carries.",
    ),
    never(
        "INVALID_ADDRESS",
        "An address is none of its chain.",
        "Correct the field that the message names.",
    ),
    never(
        "INVALID_RECIPIENT",
        "The recipient is missing where one is needed, or is the zero address, a token's contract or an account of this \
         service.",
        "Send the account that is to be paid.",
    ),
    never(
        "INVALID_INPUT_CURRENCY",
        "The currency to pay in is none of the origin chain.",
        "Use a currency of POST /currencies/v2.",
    ),
    never(
        "INVALID_OUTPUT_CURRENCY",
        "The currency to be paid in is none of the destination chain.",
        "Use a currency of POST /currencies/v2.",
    ),
    never(
        "UNSUPPORTED_CURRENCY",
        "The currency is not traded or not priced here.",
        "Use a currency of POST /currencies/v2.",
    ),
    never(
        "INVALID_SLIPPAGE_TOLERANCE",
        "A slippage tolerance is no whole number from 0 to 10000.",
        "Send basis points as a text of digits.",
    ),
    later(
        "NO_SWAP_ROUTES_FOUND",
        "No exchange has an offer for this pair and amount.",
        "Ask for another amount or currency, or ask again later.",
    ),
    later(
        "NO_INTERNAL_SWAP_ROUTES_FOUND",
        "No exchange of the service has an offer for a part of the route.",
        "Ask for another amount or currency, or ask again later.",
    ),
    never(
        "UNSUPPORTED_ROUTE",
        "The request needs something that is not offered on this route.",
        "Read the message. It names the field or the pair that is not offered.",
    ),
    later(
        "PRICE_FETCH_FAILED",
        "There is no price that can be relied on now.",
        "Ask again in a few seconds.",
    ),
    later(
        "SERVICE_UNAVAILABLE",
        "A part of the service cannot be used now.",
        "Ask again in a few seconds.",
    ),
    later(
        "RPC_HTTP_ERROR",
        "A chain cannot be read right now.",
        "Ask again in a few seconds.",
    ),
    later(
        "ROUTE_TEMPORARILY_RESTRICTED",
        "The route is closed for now, by a limit or after losses.",
        "Ask for a smaller amount, use another route, or ask again later.",
    ),
    never(
        "SOLANA_TX_TOO_LARGE",
        "The Solana transaction would be larger than a wallet can send.",
        "Send maxRouteLength 4, then 3, so that the route is shorter.",
    ),
    never(
        "SWAP_IMPACT_TOO_HIGH",
        "The exchange would lose too much of the value.",
        "Ask for a smaller amount. overridePriceImpact takes the loss.",
    ),
    never(
        "UNSUPPORTED_EXECUTION_TYPE",
        "The request asks for a way of execution that is not offered.",
        "Leave out the field that the message names.",
    ),
    never(
        "USER_RECIPIENT_MISMATCH",
        "This kind of request pays only the user.",
        "Send no recipient, or the user as recipient.",
    ),
    never(
        "DESTINATION_TX_FAILED",
        "The transaction on the destination would fail.",
        "Read errorData: it has what the contract said. Correct the calls.",
    ),
    never(
        "ERC20_ROUTER_ADDRESS_NOT_FOUND",
        "The chain has no contract that makes such fills.",
        "Leave out the calls on this chain. The operator has to configure a router.",
    ),
    later(
        "SWAP_QUOTE_FAILED",
        "The exchange's offer could not be made into a transaction.",
        "Ask again in a few seconds.",
    ),
    later(
        "DISK_RESERVE",
        "The service takes no new quotes: its disk is nearly full.",
        "Ask again later. Requests that were quoted go on.",
    ),
    later(
        "TOO_MANY_LARGE_QUOTES",
        "Too many quotes with much data are open that nobody acted on.",
        "Act on one, wait until one is over, or send less data in txs.",
    ),
    later(
        "UNKNOWN_ERROR",
        "The service has a fault of its own.",
        "Ask again. Where it stays so, tell the operator the time and the route.",
    ),
];

/// All others.
pub const OTHERS: &[Code] = &[
    later(
        "REQUEST_TIMED_OUT",
        "The answer took longer than a request may take.",
        "Ask again. What was begun may have been done: ask for it before you repeat it.",
    ),
    never(
        "UNSUPPORTED_MEDIA_TYPE",
        "The body is no JSON by its own account.",
        "Send the header content-type: application/json.",
    ),
    never(
        "BODY_TOO_LARGE",
        "The body is larger than what is read.",
        "Send less in one request. The reference has the limit.",
    ),
    never(
        "REQUEST_NOT_FOUND",
        "No request is known under this id.",
        "Use the requestId of a quote's steps. A quote that nobody acted on is forgotten after its deadlines.",
    ),
    never(
        "INVALID_REQUEST_ID",
        "The request id is not 0x and 64 hex digits.",
        "Use the requestId of a quote's steps as it is.",
    ),
    never(
        "INVALID_TRANSACTION_HASH",
        "The text is no transaction id of its chain.",
        "Send the id as the chain's wallets and explorers spell it.",
    ),
    never(
        "INVALID_TRANSACTION",
        "The transaction that was told cannot be read.",
        "Send tx as a JSON text with txHash.",
    ),
    later(
        "TRANSACTION_NOT_FOUND",
        "The transaction is not known, or it is not in a block where only those count.",
        "Ask again after the next block. Check chain and hash where it stays so.",
    ),
    never(
        "INVALID_FILTERS",
        "The parameter filters cannot be used.",
        "Send a JSON array of objects, within the limits that the reference names.",
    ),
    never(
        "UNKNOWN_PARAMETER",
        "The route has no such parameter.",
        "Correct the name. The message has the nearest one.",
    ),
    never(
        "REMOVED_PARAMETER",
        "The parameter was removed with this version of the route.",
        "Use what the message names instead.",
    ),
    never(
        "API_KEY_NOT_OWNED",
        "Only the owner of a key may ask for this.",
        "Send the key in x-api-key. Where a parameter names a key, name that one or its label.",
    ),
    never(
        "INVALID_CONTINUATION",
        "The continuation is not one of an answer to this query.",
        "Send it with all other parameters unchanged, or begin without one.",
    ),
    never(
        "GONE",
        "The route has been retired.",
        "Use the route that the answer names as successor.",
    ),
    never(
        "EVENTS_GONE",
        "The events behind the last one that you saw are not kept any more.",
        "Begin without Last-Event-ID and ask where your requests stand.",
    ),
    never(
        "INVALID_EVENT_ID",
        "Last-Event-ID is no id of an event.",
        "Send the id of the last event that you saw, or none.",
    ),
    never(
        "TOO_MANY_SUBSCRIPTIONS",
        "One connection follows too many requests.",
        "Follow fewer requests with each connection, or all of a key's.",
    ),
    never(
        "INVALID_MESSAGE",
        "The WebSocket's message is no JSON object with a type.",
        "Send what the reference describes.",
    ),
    never(
        "INVALID_TYPE",
        "The message's type is neither subscribe nor unsubscribe.",
        "Send one of both.",
    ),
    never(
        "UNSUPPORTED_EVENT",
        "There are no such events.",
        "Send request.status.updated as event.",
    ),
    never(
        "KEY_REQUIRED",
        "Without filters.id a known API key is needed.",
        "Open the WebSocket with apiKey in its query, or name a request.",
    ),
];

/// Codes of the network's quotes (guide: protocol 11.8) that no route here answers with. They are listed for clients
/// that know them.
pub const UNANSWERED: &[Code] = &[
    never(
        "NO_QUOTES",
        "This service never answers so. On the network: no offer was found for the request.",
        "Expect NO_SWAP_ROUTES_FOUND, NO_INTERNAL_SWAP_ROUTES_FOUND or UNSUPPORTED_ROUTE instead.",
    ),
    never(
        "SANCTIONED_CURRENCY",
        "This service never answers so. On the network: the currency is not served.",
        "Expect UNSUPPORTED_CURRENCY for a currency that is not traded here.",
    ),
    never(
        "SANCTIONED_WALLET_ADDRESS",
        "This service never answers so. On the network: an account of the request is not served.",
        "There is nothing to do for it here.",
    ),
    never(
        "PERMIT_FAILED",
        "This service never answers so. On the network: the permit could not be made.",
        "There is nothing to do for it here: no step asks for a permit.",
    ),
];
