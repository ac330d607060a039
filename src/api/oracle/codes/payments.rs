//! The codes of fills, refunds and recoveries.

use crate::http::codes::{Code, later, never};

/// What fills, refunds and recoveries are refused for.
pub const PAYMENTS: &[Code] = &[
    never(
        "AFTER_DEADLINE",
        "The transaction was executed after the order's deadline.",
        "It does not count for the order. The deposit can be refunded or recovered.",
    ),
    never(
        "ORDER_NOT_REFERENCED",
        "The transaction does not name the order.",
        "Use the transaction whose data ends with the order id.",
    ),
    never(
        "SEVERAL_ORDERS_REFERENCED",
        "The transaction names several orders, and a fill names exactly one.",
        "Pay each order in a transaction of its own.",
    ),
    never(
        "FILL_INSUFFICIENT",
        "The transaction pays less than the order's minimum.",
        "Use the transactions that pay all of it. The message has both amounts.",
    ),
    never(
        "FILL_ROUTER_NOT_LISTED",
        "The fill went through a router that does not count on its chain.",
        "Use a listed router. The operator's chains file names them in fillRouters.",
    ),
    never(
        "CALLS_MISSING",
        "The transaction does not make the calls that the order asks for.",
        "Make the calls in the fill, in their order.",
    ),
    never(
        "CALLS_UNSUPPORTED",
        "Calls on this chain cannot be verified.",
        "Use an order without calls there.",
    ),
    never(
        "REFUND_MISSING",
        "The claim names no refund for an input of the order.",
        "Add the refund information of the index that the message names.",
    ),
    never(
        "REFUND_REPEATED",
        "The claim names an input more than once.",
        "Name each input index once.",
    ),
    never(
        "REFUND_INVALID",
        "The refund is none that the order allows.",
        "Use one of the refund options of the order's input.",
    ),
    never(
        "REFUND_RECIPIENT_MISSING",
        "The order names nobody to refund the input to.",
        "It cannot be refunded by this order. It can be recovered by its depositor.",
    ),
    never(
        "REFUND_INSUFFICIENT",
        "The transaction gives back less than the order's minimum.",
        "Use the transaction that gives back enough. The message has both amounts.",
    ),
    never(
        "DEPOSIT_MISSING",
        "Nothing was deposited for the order.",
        "Name the deposit that pays for it.",
    ),
    never(
        "FEES_NOT_COVERED",
        "The order's fees exceed what is deposited.",
        "Use an order whose fees its deposits cover.",
    ),
    never(
        "TRANSACTION_FUNDS_ORDER",
        "The transaction is a deposit for the order: it pays nobody.",
        "Name the transaction that pays the recipient.",
    ),
    never(
        "SOLVER_SIGNATURE_REQUIRED",
        "The claim needs its solver's signature: the order asks for it, or the deposits fall short.",
        "Send solverSignature over the claim.",
    ),
    never(
        "SOLVER_SIGNATURE_INVALID",
        "The solver's signature of the claim is not its solver's.",
        "Sign the claim as it is sent, with the key of the order's solver.",
    ),
    later(
        "PAYMENT_VISIBLE",
        "The order's solver has begun to pay for the deposit.",
        "Wait for the payment. Ask again only where it failed.",
    ),
    later(
        "ORDER_OPEN",
        "The order may still be filled or refunded. The message says until when.",
        "Ask again after that time, or bring the solver's signature.",
    ),
    later(
        "ORDER_NOT_GIVEN_UP",
        "No entry says that the order will not be filled or refunded.",
        "Ask again when it has been given up or its deadlines are over.",
    ),
    later(
        "ORDER_REQUIRED",
        "A deposit that is less than seven days old is recovered only with its order.",
        "Send order and signature, or ask again when seven days have passed.",
    ),
    later(
        "ORDER_BALANCE_INSUFFICIENT",
        "The order's account at the hub holds less than is to be recovered.",
        "Have the deposit attested and executed first, then ask again.",
    ),
    later(
        "DEPOSIT_NOT_MINTED",
        "The hub has not minted the deposit yet: what the order's account holds is another's.",
        "Have the deposit attested and executed first, then ask again.",
    ),
    never(
        "ORDER_MISMATCH",
        "The deposit names another order.",
        "Send the order whose id the deposit names.",
    ),
    never(
        "DEPOSIT_NOT_FOUND",
        "The transaction has no deposit with this onchain id.",
        "Ask for the transaction's deposits to learn their onchain ids.",
    ),
    never(
        "DEPOSIT_WITHOUT_ORDER",
        "The deposit names no order.",
        "It is not recovered through an order.",
    ),
];
