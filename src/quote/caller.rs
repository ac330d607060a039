//! Who asks for a quote, and what that caller is told whose quote cannot be kept. Pure.

use super::code::{Code, Refused};
use crate::store::requests::RequestsError;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The label of the API key.
    pub key: Option<&'a str>,
    /// Stands for the key or, without one, the address.
    pub by: u64,
}

/// Why a quote was not kept.
pub fn unkept(error: RequestsError) -> Refused {
    if error == RequestsError::TooLarge {
        let what = "txs: too many quotes with much data that nobody acted on; try again in some \
                    minutes, or with less data";
        return Refused::new(Code::TooManyLargeQuotes, what);
    }
    tracing::error!(%error, "no quote: the request cannot be stored");
    Refused::new(Code::ServiceUnavailable, "the quote cannot be kept")
}
