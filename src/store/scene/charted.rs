//! What the scene's currency was worth.

use super::NETWORK;
use crate::{
    request::scene::USDC,
    store::{
        Key,
        rows::candle::{self, Candle, Series, Step},
    },
};

pub(super) fn charted() -> Vec<(Key, Vec<u8>)> {
    let series = Series {
        network: NETWORK,
        currency: USDC,
    };
    let dollar = 1_000_000_000_000_000_000;
    let last = Candle {
        at: 1_700_000_100,
        open: dollar,
        high: dollar + 2,
        low: dollar - 1,
        close: dollar + 1,
    };
    let page = |step| {
        let key = candle::key(step, series, last.at);
        (key, candle::encode(&[last]).unwrap())
    };
    Step::ALL.map(page).to_vec()
}
