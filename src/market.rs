//! What can be traded: networks as the integrator API numbers them, their currencies, and where
//! prices and swaps come from. Data only, read from `MARKET_FILE` (JSON); nothing is opened here.

mod read;

use std::{collections::HashMap, fmt, num::NonZeroU64};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Map, Value};
use vm::{
    Family, SpecError, U256, spelled_alike,
    trade::{Limits, SwapContracts, SwapService},
};

pub use read::MarketError;

/// Everything that can be quoted.
#[derive(Clone, Debug, Default)]
pub struct Market {
    networks: Vec<Network>,
    by_number: HashMap<u64, usize>,
    by_name: HashMap<String, usize>,
}

/// One chain as integrators see it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Network {
    /// The name that orders and the chains file use.
    pub name: String,
    /// The number that the API uses (`8453`).
    pub chain_id: u64,
    pub display_name: String,
    /// What clients may read the chain through; never the operator's own providers.
    #[serde(default)]
    pub public_rpc_url: String,
    #[serde(default)]
    pub public_ws_url: String,
    #[serde(default)]
    pub explorer_name: String,
    #[serde(default)]
    pub explorer_url: String,
    #[serde(default)]
    pub icon_url: Option<String>,
    #[serde(default)]
    pub explorer_paths: Option<ExplorerPaths>,
    /// `#rrggbb`, for those who draw the chain.
    #[serde(default)]
    pub brand_color: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// What users should know of the chain now.
    #[serde(default)]
    pub status_message: Option<String>,
    #[serde(default)]
    pub multicall3: Option<String>,
    /// A chain that is switched off is listed and not quoted.
    #[serde(default)]
    pub disabled: bool,
    /// Left out of listings unless asked for by name.
    #[serde(default)]
    pub private: bool,
    /// The contract that makes fills of several payments or calls: `fill` and `sweep` as in
    /// `tests/devnet/contracts/FillRouter.sol`.
    #[serde(default)]
    pub fill_router: Option<String>,
    /// Those before it: what went through them, or does for an order that names one, is still attested.
    #[serde(default)]
    pub previous_fill_routers: Vec<String>,
    /// The contract that takes the solver's tokens for fills through the router; without it the router
    /// is paid in the native currency only. It must take its caller's tokens and nobody else's, and be
    /// unchangeable: the solver allows it everything.
    #[serde(default)]
    pub approval_proxy: Option<String>,
    /// The wrapped form of the native currency (WETH).
    #[serde(default)]
    pub wrapped_native: Option<String>,
    #[serde(default)]
    pub uniswap_v3: Option<SwapContracts>,
    /// Further exchanges with the same contracts, asked only for requests that say `useFallbacks` and
    /// that no first choice has an offer for.
    #[serde(default)]
    pub fallback_exchanges: Vec<SwapContracts>,
    /// Services that find ways through the chain's exchanges.
    #[serde(default)]
    pub aggregators: Vec<SwapService>,
    /// The first block that the index must look at; unset: the head at first start.
    #[serde(default)]
    pub index_from: Option<u64>,
    /// Whether headers say, by their bloom, which logs are in their blocks. Where there is one provider
    /// only, it is held to that; set it to false where the chain's headers do not.
    #[serde(default = "yes")]
    pub blooms: bool,
    /// Blocks on top of a fill before it counts as done.
    #[serde(default = "one")]
    pub fill_confirmations: u64,
    /// How much the solver may pay here.
    #[serde(default)]
    pub caps: Caps,
    /// Seconds between blocks: time estimates count in them, and so does the time that payments have before deadlines.
    /// Those of its family where the file is silent ([`Market::parse`]).
    #[serde(default, deserialize_with = "positive")]
    pub block_seconds: u64,
    /// Seconds without a block after which nothing is quoted; 0: never, where blocks are made on demand
    /// only. Unset: ten blocks, a minute at least, in production, else never.
    #[serde(default)]
    pub stalled_after: Option<u64>,
    /// What transactions may take and cost here, as the chain's family writes it: [`Network::limits`].
    #[serde(default, deserialize_with = "each_once")]
    pub limits: Map<String, Value>,
    /// The native currency first.
    pub currencies: Vec<Currency>,
}

/// An object in which no key stands twice.
fn each_once<'de, D: Deserializer<'de>>(object: D) -> Result<Map<String, Value>, D::Error> {
    struct EachOnce;

    impl<'de> Visitor<'de> for EachOnce {
        type Value = Map<String, Value>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut read = Map::new();
            while let Some((key, value)) = entries.next_entry::<String, Value>()? {
                if read.contains_key(&key) {
                    return Err(A::Error::custom(format!("{key} stands twice")));
                }
                read.insert(key, value);
            }
            Ok(read)
        }
    }

    object.deserialize_map(EachOnce)
}

/// Dollars that the solver may put at risk on a network.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Caps {
    /// That it may pay in an hour, besides what it has been paid for; unset: no limit.
    #[serde(default)]
    pub hourly: Option<Dollars>,
    /// The same to one recipient.
    #[serde(default)]
    pub hourly_per_user: Option<Dollars>,
    /// Fees at a time for fills that run somebody's code, until they succeed or their failure is paid for; as much
    /// for each API key, three times that for fills to accounts without code. Unset: a hundred.
    #[serde(default)]
    pub at_stake: Option<Dollars>,
}

/// Millionths of a dollar; a decimal text of dollars in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Dollars(pub u64);

impl TryFrom<String> for Dollars {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let short = digits(whole) && digits(fraction) && fraction.len() <= 6;
        let micro = || {
            let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
            let whole: u64 = whole.parse().ok()?;
            whole.checked_mul(1_000_000)?.checked_add(fraction)
        };
        let micro = short.then(micro).flatten();
        micro
            .map(Self)
            .ok_or_else(|| format!("not dollars, at most six decimals: {text}"))
    }
}

/// Smallest units of a currency; a decimal text in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Units(pub U256);

impl TryFrom<String> for Units {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| U256::from_str_radix(&text, 10).ok());
        let number = number.flatten().map(Self);
        number.ok_or_else(|| format!("not a whole number of smallest units: {text}"))
    }
}

/// What stands behind an explorer's address before an id.
#[derive(Clone, Debug, Deserialize)]
pub struct ExplorerPaths {
    pub transaction: String,
    pub address: String,
    pub token: String,
}

/// One currency of a network.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Currency {
    /// As the API spells it; the family's native sentinel for the native currency.
    pub address: String,
    pub symbol: String,
    pub name: String,
    pub decimals: u8,
    #[serde(rename = "logoURI", default)]
    pub logo_uri: Option<String>,
    /// Currencies of one group are one asset on several networks (`usdc`, `eth`).
    pub group: String,
    #[serde(default)]
    pub class: Class,
    /// The solver holds it: it can be delivered, and a deposit in it needs no swap.
    #[serde(default)]
    pub solver: bool,
    /// An approval must go through zero (USDT on mainnet).
    #[serde(default)]
    pub approval_reset: bool,
    /// Dollars of it that the solver may pay in an hour on its network; unset: no limit.
    #[serde(default)]
    pub hourly_cap: Option<Dollars>,
    /// Deposits of at most so many of its smallest units are acted on in their first block, before they are final: what
    /// a reorg then takes is the solver's loss. Unset: none.
    #[serde(default)]
    pub one_block_up_to: Option<Units>,
    /// How long a quote's price holds for deposits in it; unset: for `QUOTE_VALIDITY`, by the time of their block.
    #[serde(default)]
    pub price_holds: Option<PriceHolds>,
    /// In the order in which they are shown; in deals the worst of them counts. In production there must
    /// be two of different kinds.
    #[serde(default)]
    pub prices: Vec<PriceFeed>,
}

/// How long a quote's price holds where blocks are rare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PriceHolds {
    /// Seconds from the quote, 1 to 3600.
    pub seconds: u64,
    /// Seconds more, at most 7200, that a deposit may wait for its block when the network's quorum showed it waiting
    /// before. Unset: the time of its block counts.
    #[serde(default)]
    pub waiting: Option<u64>,
    /// Basis points of the deposit that a quote pays for that, at most 1000; with `waiting` no less than the prices of
    /// both currencies' classes may move by meanwhile, unless they are of one group.
    #[serde(default)]
    pub spread: u64,
}

/// What a currency is to those who price risk (guide: protocol 11.9: 1, 6 or 15 basis points).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    Stable,
    Major,
    #[default]
    Other,
}

/// Where a currency's USD price comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum PriceFeed {
    /// Chainlink's AggregatorV3 interface on a network; older than `maxAge` seconds it is no price.
    #[serde(rename_all = "camelCase")]
    Chainlink {
        network: String,
        address: String,
        max_age: u64,
    },
    /// Pyth's HTTP service (Hermes).
    #[serde(rename_all = "camelCase")]
    Pyth {
        url: String,
        id: String,
        max_age: u64,
    },
    /// Always this many dollars: a decimal text. In production it needs a feed that confirms it.
    Peg { usd: String },
}

impl PriceFeed {
    /// Whose word it is: two feeds of one source are not independent of each other.
    pub fn source(&self) -> &'static str {
        match self {
            Self::Chainlink { .. } => "chainlink",
            Self::Pyth { .. } => "pyth",
            Self::Peg { .. } => "peg",
        }
    }
}

impl Market {
    /// Every network in the order of the file.
    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// Networks and symbols of what is priced by one kind of source alone.
    pub fn lonely(&self) -> Vec<(&str, &str)> {
        let listed = self.networks.iter().flat_map(|network| {
            let currencies = network.currencies.iter();
            currencies.map(move |currency| (network, currency))
        });
        let lonely = listed.filter(|(_, currency)| {
            let mut sources = currency.prices.iter().map(PriceFeed::source);
            let first = sources.next();
            first.is_some_and(|first| sources.all(|other| other == first))
        });
        lonely
            .map(|(network, currency)| (network.name.as_str(), currency.symbol.as_str()))
            .collect()
    }

    /// Networks on which the solver may pay any amount in an hour.
    pub fn uncapped(&self) -> Vec<&str> {
        let networks = self.networks.iter();
        let uncapped = networks.filter(|network| network.caps.hourly.is_none());
        uncapped.map(|network| network.name.as_str()).collect()
    }

    /// The network that the API numbers so.
    pub fn by_number(&self, number: u64) -> Option<&Network> {
        self.by_number.get(&number).map(|at| &self.networks[*at])
    }

    /// The network that orders name so.
    pub fn by_name(&self, name: &str) -> Option<&Network> {
        self.by_name.get(name).map(|at| &self.networks[*at])
    }
}

impl Network {
    /// The native currency.
    pub fn native(&self) -> Option<&Currency> {
        self.currencies.first()
    }

    /// The fill router and those before it.
    pub fn fill_routers(&self) -> impl Iterator<Item = &String> {
        self.fill_router.iter().chain(&self.previous_fill_routers)
    }

    /// Seconds without a block after which nothing is quoted; `None`: never.
    pub fn stalled_after(&self, production: bool) -> Option<u64> {
        let usual = production.then(|| self.block_seconds.saturating_mul(10).max(60));
        self.stalled_after.or(usual).filter(|most| *most > 0)
    }

    /// What transactions may take and cost here; `None` where `family` has no transactions of ours. An error names
    /// the limit that `family` does not know or cannot read.
    pub fn limits(&self, family: &Family) -> Result<Option<Limits>, SpecError> {
        match family.limits {
            Some(read) => read(&self.limits).map(Some),
            None if self.limits.is_empty() => Ok(None),
            None => Err(SpecError(format!("limits: {} has none", family.name))),
        }
    }

    /// Whether a deposit of so many smallest units of a currency is acted on in its first block.
    pub fn acts_in_one_block(&self, currency: &str, amount: U256) -> bool {
        let currency = self.currency(currency);
        let most = currency.and_then(|currency| currency.one_block_up_to);
        most.is_some_and(|most| amount <= most.0)
    }

    /// The listed currency of this address, whatever the case of its hex.
    pub fn currency(&self, address: &str) -> Option<&Currency> {
        let same = |currency: &&Currency| spelled_alike(&currency.address, address);
        self.currencies.iter().find(same)
    }
}

const fn yes() -> bool {
    true
}

const fn one() -> u64 {
    1
}

fn positive<'de, D: Deserializer<'de>>(number: D) -> Result<u64, D::Error> {
    NonZeroU64::deserialize(number).map(NonZeroU64::get)
}
