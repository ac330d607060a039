//! The contracts of one exchange like Uniswap V3, asked through the chain's providers.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use alloy::primitives::{Address as Token, Bytes};
use tokio::time::Instant;

use super::{
    pools::{LIFE, Pools},
    quoter::{self, Quote},
    route::{Ends, Hop, Route, is_fee},
    router::Exchange,
};
use crate::{
    Address, ReadError,
    permits::{Held, Permits},
    trade::{
        Call, Called, Draft, HeadCalls, SwapAccess, SwapContracts, SwapDraft, SwapError, SwapOrder,
        SwapSpec, SwapTerms,
    },
};

/// The contracts of one exchange, with a bound on the questions that are asked of them at one time.
pub struct Deployment {
    head_calls: HeadCalls,
    /// Whether what is done now is done for somebody with a key.
    keyed: fn() -> bool,
    pub native: Address,
    wrapped: Token,
    quoter: Address,
    router: Address,
    /// Hundredths of a basis point.
    pub fees: Vec<u32>,
    /// What ways of two pools may lead over.
    pub hubs: Vec<Token>,
    pools: Mutex<Pools>,
    /// As it was agreed about, and when.
    factory: Mutex<Option<(Instant, Address)>>,
    /// Of questions under way, all quotes together.
    permits: Permits,
}

/// Questions to providers under way at once.
const PERMITS: usize = 128;
/// The same of callers without a key.
const OF_STRANGERS: usize = PERMITS / 2;
/// Providers that must say so before a pool is not looked at.
const AGREED: usize = 2;
/// How long a quote waits for permits.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pairs without a hub whose pools are remembered.
const PAIRS: usize = 16_384;

impl Deployment {
    /// An error says what is wrong with the configuration.
    pub fn open(
        spec: &SwapSpec,
        contracts: &SwapContracts,
        access: &SwapAccess,
    ) -> Result<Self, String> {
        let family = access.head_calls.family;
        let address = |text: &str| family.address(text).map_err(|error| error.to_string());
        let token =
            |text: &str| account(&address(text)?).map_err(|_| format!("{text}: not an account"));
        let wrapped = spec.wrapped.as_deref().ok_or("wrappedNative: not set")?;
        let wrapped = token(wrapped)?;
        if let Some(fee) = contracts.fees.iter().find(|fee| !is_fee(**fee)) {
            return Err(format!("uniswapV3.fees: {fee} is no fee"));
        }
        let mut hubs = vec![wrapped];
        for hub in &spec.hubs {
            hubs.push(token(hub)?);
        }
        Ok(Self {
            native: family.native().map_err(|error| error.to_string())?,
            wrapped,
            quoter: address(&contracts.quoter)?,
            router: address(&contracts.router)?,
            fees: contracts.fees.clone(),
            hubs,
            head_calls: access.head_calls.clone(),
            keyed: access.keyed,
            pools: Mutex::new(Pools::new(PAIRS)),
            factory: Mutex::default(),
            permits: Permits::new(PERMITS, OF_STRANGERS),
        })
    }

    /// The tokens whose pools are asked: the native currency is wrapped for them.
    pub fn ends(&self, terms: &SwapTerms) -> Result<Ends, SwapError> {
        let (from, to) = (self.token(&terms.input)?, self.token(&terms.output)?);
        if from == to || terms.amount.is_zero() {
            return Err(SwapError::NoRoute);
        }
        Ok(Ends { from, to })
    }

    fn token(&self, currency: &Address) -> Result<Token, SwapError> {
        if *currency == self.native {
            return Ok(self.wrapped);
        }
        account(currency)
    }

    /// `None` when the route's pools do not exist or do not have enough.
    pub async fn quote(
        &self,
        route: &Route,
        terms: &SwapTerms,
    ) -> Result<Option<Quote>, SwapError> {
        let question = quoter::question(route, terms.amount, terms.exact_input);
        let answer = self.ask(vec![(self.quoter.clone(), question)]).await?.pop();
        quoted(route, answer.unwrap_or_else(|| Err(nothing())))
    }

    /// The same of single pools, all at once.
    pub async fn quotes(
        &self,
        hops: &[Hop],
        exact_input: bool,
    ) -> Result<Vec<Result<Option<Quote>, SwapError>>, SwapError> {
        let routes: Vec<Route> = hops.iter().map(Hop::route).collect();
        let asked = hops.iter().zip(&routes).map(|(hop, route)| {
            let question = quoter::question(route, hop.amount, exact_input);
            (self.quoter.clone(), question)
        });
        let answers = self.ask(asked.collect()).await?;
        let answers = routes.iter().zip(answers);
        Ok(answers
            .map(|(route, answer)| quoted(route, answer))
            .collect())
    }

    /// The fees of the pools between the two of each pair; all fees where nobody says.
    pub async fn pools(&self, pairs: &[Ends]) -> Result<Vec<Vec<u32>>, SwapError> {
        let known = |pair: &Ends| self.known().fees(*pair, Instant::now());
        let mut found: Vec<Option<Vec<u32>>> = pairs.iter().map(known).collect();
        let all = |found: Vec<Option<Vec<u32>>>| {
            let found = found.into_iter();
            found
                .map(|fees| fees.unwrap_or_else(|| self.fees.clone()))
                .collect()
        };
        if found.iter().all(Option::is_some) {
            return Ok(all(found));
        }
        let Some(factory) = self.factory().await? else {
            return Ok(all(found));
        };
        let unknown = pairs
            .iter()
            .zip(&mut found)
            .filter(|(_, fees)| fees.is_none());
        let unknown: Vec<_> = unknown.collect();
        let asked = unknown.iter().flat_map(|(pair, _)| {
            let question = |fee: &u32| (factory.clone(), quoter::pool(**pair, *fee));
            self.fees.iter().map(question)
        });
        let said = self.agreed(asked.collect()).await?;
        for (at, (pair, fees)) in unknown.into_iter().enumerate() {
            *fees = self.there(&said, at);
            if let Some(fees) = fees {
                let hub = self.hubs.iter().any(|hub| pair.has(*hub));
                self.known().learn(*pair, hub, fees.clone(), Instant::now());
            }
        }
        Ok(all(found))
    }

    /// Those of the fees whose pool, between the two of the pair at a place, anybody knows; `None` unless all
    /// who were asked said something of each.
    fn there(&self, said: &[Vec<Called>], at: usize) -> Option<Vec<u32>> {
        let mut known = vec![false; self.fees.len()];
        for answers in said {
            let answers = answers.chunks(self.fees.len()).nth(at)?;
            for (known, answer) in known.iter_mut().zip(answers) {
                let said = answer.as_ref().ok()?.as_ref().ok()?;
                *known |= !quoter::address(said)?.is_zero();
            }
        }
        let fees = self.fees.iter().zip(known);
        let fees = fees.filter_map(|(fee, known)| known.then_some(*fee));
        (!said.is_empty()).then(|| fees.collect())
    }

    /// Where pools are registered, as the quoter says; `None` where nothing is agreed about.
    async fn factory(&self) -> Result<Option<Address>, SwapError> {
        let known = || self.factory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, factory)) = known().clone().filter(|(at, _)| at.elapsed() < LIFE) {
            return Ok(Some(factory));
        }
        let said = self.agreed(vec![(self.quoter.clone(), quoter::factory())]);
        let said = said.await?.into_iter().map(|mut answers| {
            let found = answers.pop().and_then(Result::ok).and_then(Result::ok);
            let found = found.and_then(|said| quoter::address(&said));
            found.filter(|found| !found.is_zero())
        });
        let found: Option<Vec<Token>> = said.collect();
        let Some([one, others @ ..]) = found.as_deref() else {
            return Ok(None);
        };
        let factory = self.head_calls.family.address(&format!("{one:#x}")).ok();
        let factory = factory.filter(|_| others.iter().all(|other| other == one));
        *known() = factory.clone().map(|factory| (Instant::now(), factory));
        Ok(factory)
    }

    /// What the first providers say that answer all of it, each by itself; nothing where they are too few.
    async fn agreed(
        &self,
        questions: Vec<(Address, Bytes)>,
    ) -> Result<Vec<Vec<Called>>, SwapError> {
        let wanted = self.head_calls.contracts.len().min(AGREED);
        let mut said = Vec::new();
        for contracts in &self.head_calls.contracts {
            if said.len() < wanted {
                let _permits = self.enter(questions.len()).await?;
                let answers = self.head_calls.by(contracts, &questions).await;
                said.extend(answers.iter().all(Result::is_ok).then_some(answers));
            }
        }
        Ok(if said.len() < wanted {
            Vec::new()
        } else {
            said
        })
    }

    fn known(&self) -> MutexGuard<'_, Pools> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks when there are permits for so many questions, in the order in which they came.
    async fn ask(&self, questions: Vec<(Address, Bytes)>) -> Result<Vec<Called>, SwapError> {
        let _permits = self.enter(questions.len()).await?;
        Ok(self.head_calls.many(&questions).await)
    }

    /// Waits for permits: callers without a key have half of them at most.
    async fn enter(&self, questions: usize) -> Result<Held<'_>, SwapError> {
        let permits = self.permits.wait(!(self.keyed)(), questions, PATIENCE);
        let many = "too many questions under way, try again";
        permits.await.ok_or_else(|| SwapError::unavailable(many))
    }

    pub fn call(&self, exchange: &Exchange<'_>, order: &SwapOrder) -> SwapDraft {
        SwapDraft {
            spender: (!exchange.native_input).then(|| self.router.clone()),
            draft: Draft::call(Call {
                from: order.payer.clone(),
                to: self.router.clone(),
                data: exchange.data(),
                value: exchange.value(),
            }),
        }
    }
}

fn quoted(route: &Route, answer: Called) -> Result<Option<Quote>, SwapError> {
    match answer {
        Ok(Ok(answer)) => Ok(quoter::answer(route, &answer)),
        Ok(Err(_revert)) => Ok(None),
        Err(error) => Err(SwapError::Unavailable(error.to_string())),
    }
}

fn nothing() -> ReadError {
    ReadError::Unavailable("no answer".to_owned())
}

/// The 20 bytes of an address.
pub fn account(address: &Address) -> Result<Token, SwapError> {
    let bytes = <[u8; 20]>::try_from(address.bytes());
    bytes
        .map(Token::from)
        .map_err(|_| SwapError::unavailable("not an address of 20 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(change: impl FnOnce(&mut SwapSpec, &mut SwapContracts)) -> Result<Deployment, String> {
        let text = |number: u8| format!("{:#x}", Token::with_last_byte(number));
        let mut spec = SwapSpec {
            network: "one".into(),
            wrapped: Some(text(1)),
            hubs: vec![text(4)],
            ..SwapSpec::default()
        };
        let mut contracts = SwapContracts {
            quoter: text(2),
            router: text(3),
            fees: vec![500],
        };
        change(&mut spec, &mut contracts);
        let access = SwapAccess {
            head_calls: HeadCalls {
                family: &crate::ethereum::FAMILY,
                contracts: Vec::new(),
            },
            keyed: || false,
        };
        Deployment::open(&spec, &contracts, &access)
    }

    #[test]
    fn ways_lead_over_the_wrapped_currency_and_the_hubs() {
        let deployment = open(|_, _| ()).unwrap();
        assert_eq!(deployment.hubs, [1, 4].map(Token::with_last_byte));
    }

    #[test]
    fn wrong_entry_is_an_error() {
        let fees = |fees: &'static [u32]| open(|_, contracts| contracts.fees = fees.to_vec());
        for (opened, expected) in [
            (
                open(|spec, _| spec.wrapped = None),
                "wrappedNative: not set",
            ),
            (fees(&[500, 0]), "uniswapV3.fees: 0 is no fee"),
            (fees(&[1_000_000]), "uniswapV3.fees: 1000000 is no fee"),
        ] {
            assert_eq!(opened.err().as_deref(), Some(expected));
        }
    }
}
