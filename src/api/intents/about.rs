//! What the description of the integrator API says of the whole.

use crate::http::About;

/// Title, text and groups of the integrator API's description.
pub const ABOUT: About = About {
    title: "intentd integrator API",
    text: "Quotes what a user wants on another chain, says which transactions to sign, and tells how it \
           goes. Amounts are texts of digits in the currency's smallest unit. Every refusal has a stable \
           `errorCode`; what each means is told under `/documentation/errors`.",
    groups: &[
        ("Quotes", "What a request costs, and how to make it."),
        ("Status", "How one request goes, now or as it happens."),
        ("Requests", "What became of requests, by what is asked for."),
        (
            "Transactions",
            "Tells the service of transactions, and asks what is known of them.",
        ),
        ("Chains", "Where requests may go, and how much of them."),
        (
            "Currencies",
            "What can be traded, what it is worth, and who exchanges it.",
        ),
        ("Service", "Whether the service itself answers."),
    ],
};
