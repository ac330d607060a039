use alloy::primitives::U256;
use async_trait::async_trait;
use vm::Address;

use super::*;

/// Offers what it is told, only on `ethereum`.
struct Scripted {
    name: &'static str,
    says: Result<(u64, u64), SwapError>,
}

#[async_trait]
impl SwapSource for Scripted {
    fn name(&self) -> &'static str {
        self.name
    }

    fn serves(&self, network: &str) -> bool {
        network == "ethereum"
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let (amount, gas) = self.says.clone()?;
        let amount = U256::from(amount);
        Ok(SwapOffer {
            source: self.name,
            terms: terms.clone(),
            input: amount,
            output: amount,
            gas,
            route: Vec::new(),
        })
    }

    fn build(&self, offer: &SwapOffer, _: &SwapOrder) -> Result<SwapCall, SwapError> {
        assert_eq!(offer.source, self.name);
        Err(SwapError::Unavailable(self.name.to_owned()))
    }
}

fn routing(says: [Result<(u64, u64), SwapError>; 3]) -> SwapRouting {
    let sources = ["one", "two", "three"].into_iter().zip(says);
    let scripted = sources.map(|(name, says)| Arc::new(Scripted { name, says }) as _);
    SwapRouting::new(scripted.collect())
}

fn address() -> Address {
    vm::ethereum::FAMILY.native().unwrap()
}

fn terms(network: &str, exact_input: bool) -> SwapTerms {
    SwapTerms {
        network: network.to_owned(),
        input: address(),
        output: address(),
        amount: U256::from(1),
        exact_input,
        most_pools: None,
    }
}

fn down() -> SwapError {
    SwapError::Unavailable("down".to_owned())
}

async fn names(
    routing: &SwapRouting,
    terms: &SwapTerms,
    allows: impl Fn(&str) -> bool,
) -> Result<Vec<&'static str>, SwapError> {
    let offers = routing.offers(terms, allows).await?;
    Ok(offers.iter().map(|offer| offer.source).collect())
}

#[tokio::test]
async fn best_offer_comes_first() {
    let all = |_: &str| true;
    let routing_ = routing([Ok((5, 1)), Ok((7, 9)), Ok((7, 8))]);
    let given = names(&routing_, &terms("ethereum", true), all).await;
    assert_eq!(given, Ok(vec!["three", "two", "one"]));
    let taken = names(&routing_, &terms("ethereum", false), all).await;
    assert_eq!(taken, Ok(vec!["one", "three", "two"]));
    let elsewhere = names(&routing_, &terms("base", true), all).await;
    assert_eq!(elsewhere, Err(SwapError::NoRoute));
}

#[tokio::test]
async fn filters_choose_the_sources() {
    let routing = routing([Ok((5, 1)), Ok((6, 1)), Ok((7, 1))]);
    for (chosen, expected) in [
        (
            &["one", "two", "three"][..],
            Ok(vec!["three", "two", "one"]),
        ),
        (&["one", "two"], Ok(vec!["two", "one"])),
        (&["one", "four"], Ok(vec!["one"])),
        (&["four"], Err(SwapError::NoRoute)),
        (&[], Err(SwapError::NoRoute)),
    ] {
        let found = names(&routing, &terms("ethereum", true), |name| {
            chosen.contains(&name)
        })
        .await;
        assert_eq!(found, expected, "{chosen:?}");
    }
}

#[tokio::test]
async fn source_that_is_down_matters_only_when_nobody_offers() {
    let all = |_: &str| true;
    let terms = terms("ethereum", true);
    let none = SwapError::NoRoute;
    let some = routing([Err(down()), Ok((6, 1)), Err(none.clone())]);
    assert_eq!(names(&some, &terms, all).await, Ok(vec!["two"]));
    let broken = routing([Err(down()), Err(none.clone()), Err(none.clone())]);
    assert_eq!(names(&broken, &terms, all).await, Err(down()));
    let nothing = routing([Err(none.clone()), Err(none.clone()), Err(none.clone())]);
    assert_eq!(names(&nothing, &terms, all).await, Err(none));
}

#[tokio::test]
async fn offer_is_built_by_the_source_that_made_it() {
    let routing = routing([Ok((5, 1)), Ok((6, 1)), Ok((7, 1))]);
    let offers = routing.offers(&terms("ethereum", true), |_| true).await;
    let order = SwapOrder {
        payer: address(),
        recipient: address(),
        limit: U256::ZERO,
        deadline: 0,
    };
    let mut offer = offers.unwrap().remove(1);
    let built = routing.build(&offer, &order);
    assert_eq!(built, Err(SwapError::Unavailable("two".to_owned())));
    offer.source = "four";
    assert_eq!(routing.build(&offer, &order), Err(SwapError::NoRoute));
    assert!(routing.names("ethereum").eq(["one", "two", "three"]));
    assert_eq!(routing.names("base").count(), 0);
}
