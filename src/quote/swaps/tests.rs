use async_trait::async_trait;
use serde_json::json;
use vm::{Address, trade::Choices};

use super::*;

/// Offers what the test says.
struct Scripted {
    name: &'static str,
    says: Result<(u64, u64), SwapError>,
}

#[async_trait]
impl SwapVenue for Scripted {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let (amount, work) = self.says.clone()?;
        let amount = U256::from(amount);
        Ok(SwapOffer {
            source: self.name,
            terms: terms.clone(),
            input: amount,
            output: amount,
            work,
            route: Vec::new(),
        })
    }

    async fn build(&self, offer: &SwapOffer, _: &SwapOrder) -> Result<SwapDraft, SwapError> {
        assert_eq!(offer.source, self.name);
        Err(SwapError::Unavailable(self.name.to_owned()))
    }
}

/// On `ethereum` only.
fn swaps(says: [Result<(u64, u64), SwapError>; 3]) -> Swaps {
    let sources = ["one", "two", "three"].into_iter().zip(says);
    let scripted = sources.map(|(name, says)| Arc::new(Scripted { name, says }) as _);
    let venues = SwapVenues {
        first: scripted.collect(),
        second: Vec::new(),
    };
    Swaps::new([("ethereum".to_owned(), venues)].into())
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
    swaps: &Swaps,
    terms: &SwapTerms,
    allows: impl Fn(&str) -> bool,
) -> Result<Vec<&'static str>, SwapError> {
    let offers = swaps.offers(terms, allows).await?;
    Ok(offers.iter().map(|offer| offer.source).collect())
}

#[tokio::test]
async fn best_offer_comes_first() {
    let all = |_: &str| true;
    let three = swaps([Ok((5, 1)), Ok((7, 9)), Ok((7, 8))]);
    let given = names(&three, &terms("ethereum", true), all).await;
    assert_eq!(given, Ok(vec!["three", "two", "one"]));
    let taken = names(&three, &terms("ethereum", false), all).await;
    assert_eq!(taken, Ok(vec!["one", "three", "two"]));
    let elsewhere = names(&three, &terms("base", true), all).await;
    assert_eq!(elsewhere, Err(SwapError::NoRoute));
}

#[tokio::test]
async fn filters_choose_the_sources() {
    let swaps = swaps([Ok((5, 1)), Ok((6, 1)), Ok((7, 1))]);
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
        let found = names(&swaps, &terms("ethereum", true), |name| {
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
    let some = swaps([Err(down()), Ok((6, 1)), Err(none.clone())]);
    assert_eq!(names(&some, &terms, all).await, Ok(vec!["two"]));
    let broken = swaps([Err(down()), Err(none.clone()), Err(none.clone())]);
    assert_eq!(names(&broken, &terms, all).await, Err(down()));
    let nothing = swaps([Err(none.clone()), Err(none.clone()), Err(none.clone())]);
    assert_eq!(names(&nothing, &terms, all).await, Err(none));
}

#[tokio::test]
async fn offer_is_built_by_the_source_that_made_it() {
    let swaps = swaps([Ok((5, 1)), Ok((6, 1)), Ok((7, 1))]);
    let offers = swaps.offers(&terms("ethereum", true), |_| true).await;
    let order = SwapOrder {
        payer: address(),
        recipient: address(),
        limit: U256::ZERO,
        deadline: 0,
        choices: Choices::default(),
    };
    let mut offer = offers.unwrap().remove(1);
    let built = swaps.build(&offer, &order).await;
    assert_eq!(built, Err(SwapError::Unavailable("two".to_owned())));
    offer.source = "four";
    let unbuilt = swaps.build(&offer, &order).await;
    assert_eq!(unbuilt, Err(SwapError::NoRoute));
    assert!(swaps.names("ethereum").eq(["one", "two", "three"]));
    assert_eq!(swaps.names("base").count(), 0);
}

fn market(changes: &serde_json::Value) -> Market {
    let currency = |number: u8, solver: bool, class: &str| {
        let address = format!("0x{number:040x}");
        let decimals = if number == 0 { 18 } else { 6 };
        json!({
            "address": address, "symbol": address, "name": address, "decimals": decimals,
            "group": address, "solver": solver, "class": class,
        })
    };
    let contract = |number: u8| format!("0x{number:040x}");
    let mut entry = json!({
        "name": "one", "chainId": 1, "displayName": "One", "wrappedNative": contract(1),
        "uniswapV3": {"quoter": contract(2), "router": contract(3), "fees": [500]},
        "currencies": [
            currency(0, true, "stable"), currency(4, true, "stable"),
            currency(5, false, "stable"), currency(6, true, "other"),
        ],
    });
    let changes = changes.as_object().unwrap().clone();
    entry.as_object_mut().unwrap().extend(changes);
    let family = &vm::ethereum::FAMILY;
    Market::parse(&json!([entry]).to_string(), |_| Some(family)).unwrap()
}

fn open(changes: &serde_json::Value) -> Result<Swaps, SpecError> {
    Swaps::open(&market(changes), |_| {
        let head_calls = vm::trade::HeadCalls {
            family: &vm::ethereum::FAMILY,
            contracts: Vec::new(),
        };
        Some(SwapAccess {
            head_calls,
            keyed: || false,
        })
    })
}

#[test]
fn ways_lead_over_the_wrapped_currency_and_the_solvers_stable_ones() {
    let spec = spec(&market(&json!({})).networks()[0]);
    assert_eq!(spec.wrapped, Some(format!("0x{:040x}", 1)));
    assert_eq!(spec.hubs, [format!("0x{:040x}", 4)]);
}

#[test]
fn wrong_entry_is_an_error() {
    let contract = format!("0x{:040x}", 2);
    let fees =
        |fees: &[u32]| json!({"uniswapV3": {"quoter": contract, "router": contract, "fees": fees}});
    for (changes, expected) in [
        (json!({"wrappedNative": null}), "wrappedNative: not set"),
        (fees(&[500, 0]), "uniswapV3.fees: 0 is no fee"),
        (fees(&[1_000_000]), "uniswapV3.fees: 1000000 is no fee"),
    ] {
        let error = open(&changes).err().unwrap();
        assert_eq!(error.to_string(), format!("one: {expected}"));
    }
}

#[test]
fn only_what_can_be_read_and_has_a_family_with_exchanges_is_served() {
    let named = open(&json!({})).unwrap();
    assert!(named.names("one").eq(["uniswap-v3", "wrap"]));
    let wrapped = open(&json!({"uniswapV3": null})).unwrap();
    assert!(wrapped.names("one").eq(["wrap"]));
    let unread = Swaps::open(&market(&json!({})), |_| None).unwrap();
    assert_eq!(unread.names("one").count(), 0);
    let other = Swaps::open(&market(&json!({})), |_| {
        let head_calls = vm::trade::HeadCalls {
            family: &vm::tron::FAMILY,
            contracts: Vec::new(),
        };
        Some(SwapAccess {
            head_calls,
            keyed: || false,
        })
    });
    assert_eq!(other.unwrap().names("one").count(), 0);
}
