//! Exchanges through an aggregator's HTTP service (Jupiter's Swap API, version 1: `quote` and `swap-instructions`).
//!
//! The service says what a way gives, and what the user has to sign for it. It is trusted with neither: the exchange
//! itself keeps to the limit that stands in its instruction, for the accounts that the order means (`exchange`, `plan`),
//! and what stands beside it can only turn the user's own lamports into tokens and back, and make the user's accounts
//! (`checked`).

mod answer;
mod checked;
mod exchange;
mod plan;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value, json};
use solana_instruction::Instruction;
use solana_pubkey::{Pubkey, pubkey};

use self::{
    answer::{Quote, answer, refusal},
    checked::Asked,
};
use super::{
    super::programs::{SYSTEM, WRAPPED},
    body::{Content, key},
    mint::Mint,
    pay::create,
    steps::mint,
};
use crate::{
    ChainId, Endpoint, SpecError,
    http::{Channel, PostError},
    permits::{Held, Permits},
    trade::{
        SwapAccess, SwapDraft, SwapError, SwapOffer, SwapOrder, SwapService, SwapSpec, SwapTerms,
        SwapVenue, SwapVenues,
    },
    types::{Address, Amount},
};

/// Jupiter's program.
pub const PROGRAM: Pubkey = pubkey!("JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4");
/// As in `GET /swap-sources`.
const NAME: &str = "jupiter";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// The longest answer.
const LONGEST: usize = 1 << 20;
/// The place of the first service among a chain's providers, for metrics: behind all nodes.
const FIRST: usize = 101;
/// Questions under way, and those of callers without a key.
const PERMITS: usize = 32;
const OF_STRANGERS: usize = PERMITS / 2;
/// Accounts that the exchange may name where nobody limits its pools, and for each pool where somebody does.
const ACCOUNTS: u64 = 64;
const ACCOUNTS_OF_POOL: u64 = 14;
/// Work of an exchange, and of each of its pools.
const WORK: u64 = 60;
const WORK_OF_POOL: u64 = 90;

/// Opens the aggregator that a chain's configuration names. An error where it names anything else.
pub fn open(spec: &SwapSpec, access: &SwapAccess) -> Result<SwapVenues, SpecError> {
    let wrong = |why: &str| Err(SpecError(format!("{}: {why}", spec.network)));
    if !spec.first.is_empty() || !spec.second.is_empty() {
        return wrong("uniswapV3, fallbackExchanges: chains of this family have no such contracts");
    }
    if spec.services.len() > 1 {
        return wrong("aggregators: expected one at most");
    }
    let opened = spec.services.iter();
    let opened = opened.map(|service| Aggregator::open(spec, service, access));
    let opened = opened.map(|one| one.map(|one| Arc::new(one) as Arc<dyn SwapVenue>));
    Ok(SwapVenues {
        first: opened.collect::<Result<_, SpecError>>()?,
        second: Vec::new(),
    })
}

/// One service.
struct Aggregator {
    channel: Channel,
    /// The same for whoever has no key: a service that is asked too much by those is silent for those.
    strangers_channel: Channel,
    headers: HeaderMap,
    /// What stands for lamports in an exchange.
    wrapped: Pubkey,
    /// Whether what is done now is done for somebody with a key.
    keyed: fn() -> bool,
    permits: Permits,
}

#[async_trait]
impl SwapVenue for Aggregator {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn offer(&self, terms: &SwapTerms) -> Result<SwapOffer, SwapError> {
        let most = terms.most_pools.map(u64::from);
        match self.quoted(terms, most == Some(1)).await {
            Ok(offer) => Ok(offer),
            // The service limits the accounts of a way, not its pools: a way of one pool is always short enough.
            Err(SwapError::NoRoute) if most.is_some_and(|most| most > 1) => {
                self.quoted(terms, true).await
            }
            Err(error) => Err(error),
        }
    }

    async fn build(&self, offer: &SwapOffer, order: &SwapOrder) -> Result<SwapDraft, SwapError> {
        offer.within(order)?;
        let quote = Quote::noted(&offer.route).ok_or_else(|| unavailable("not a way"))?;
        self.matches(&quote, &offer.terms)?;
        let (quote, slippage) = quote
            .limited(order.limit)
            .ok_or_else(|| unavailable("not a way"))?;
        let mut asked = self.asked(offer, order, slippage)?;
        let target = target(&asked, order)?;
        asked.target = target.as_ref().map(|target| target.account);
        let body = question(&asked, quote, order, target.as_ref());
        let said = self.post("swap-instructions", &body).await?;
        let mut own = checked::instructions(answer(&said)?, &asked)?;
        if let Some(target) = target {
            own.list.insert(0, (&target.create(&asked)).into());
        }
        own.fee_payer = asked.payer.map(|payer| payer.to_bytes());
        own.work_limit = order.choices.work_limit;
        let value = if asked.native_input { asked.most } else { 0 };
        let draft = Content::Instructions(own).draft(&order.payer, Amount::from(value));
        Ok(SwapDraft {
            spender: None,
            draft: draft.map_err(unbuilt)?,
        })
    }
}

impl Aggregator {
    fn open(
        spec: &SwapSpec,
        service: &SwapService,
        access: &SwapAccess,
    ) -> Result<Self, SpecError> {
        let wrong = |why: String| SpecError(format!("{}: {why}", spec.network));
        let mut headers = HeaderMap::new();
        if let Some(api_key) = &service.api_key {
            let value = HeaderValue::from_str(api_key);
            let mut value = value.map_err(|_| wrong("aggregators.apiKey: no header".into()))?;
            value.set_sensitive(true);
            headers.insert("x-api-key", value);
        }
        let wrapped = spec.wrapped.as_deref();
        let wrapped = wrapped.map(|text| access.head_calls.family.currency(text));
        let wrapped = wrapped.map(|address| key(&address?)).transpose();
        let wrapped = wrapped.map_err(|error| wrong(format!("wrappedNative: {error}")))?;
        let endpoint = Endpoint {
            position: FIRST,
            url: service.url.clone(),
            timeout: PATIENCE,
            longest: LONGEST,
            allows: None,
            client: Endpoint::client()?,
        };
        let channel = || Channel::new(&ChainId::new(&spec.network), &endpoint);
        Ok(Self {
            channel: channel(),
            strangers_channel: channel(),
            headers,
            wrapped: wrapped.unwrap_or(WRAPPED[0]),
            keyed: access.keyed,
            permits: Permits::new(PERMITS, OF_STRANGERS),
        })
    }

    fn channel(&self) -> &Channel {
        match (self.keyed)() {
            true => &self.channel,
            false => &self.strangers_channel,
        }
    }

    /// The mint that stands for a currency.
    fn mint(&self, currency: &Address) -> Result<Pubkey, SwapError> {
        match key(currency).map_err(|_| SwapError::NoRoute)? {
            SYSTEM => Ok(self.wrapped),
            mint => Ok(mint),
        }
    }

    /// What the service offers now; only through one pool where `direct` says so.
    async fn quoted(&self, terms: &SwapTerms, direct: bool) -> Result<SwapOffer, SwapError> {
        let (input, output) = (self.mint(&terms.input)?, self.mint(&terms.output)?);
        let amount = u64::try_from(terms.amount).map_err(|_| SwapError::NoRoute)?;
        if input == output || amount == 0 {
            return Err(SwapError::NoRoute);
        }
        let most = terms.most_pools.map_or(ACCOUNTS, |most| {
            most.get().saturating_mul(ACCOUNTS_OF_POOL).min(ACCOUNTS)
        });
        let query = [
            ("inputMint", input.to_string()),
            ("outputMint", output.to_string()),
            ("amount", amount.to_string()),
            ("swapMode", mode(terms.exact_input).to_owned()),
            ("restrictIntermediateTokens", "true".to_owned()),
            ("instructionVersion", "V1".to_owned()),
            ("maxAccounts", most.to_string()),
            ("onlyDirectRoutes", direct.to_string()),
        ];
        let _permit = self.permit().await?;
        let said = self
            .channel()
            .query("quote", &query, self.headers.clone())
            .await;
        let quote = Quote::read(&said.map_err(|error| refused(&error))?)?;
        self.matches(&quote, terms)?;
        let pools = quote.pools();
        match terms.allow(pools) {
            false => Err(SwapError::NoRoute),
            true => Ok(SwapOffer {
                source: NAME,
                terms: terms.clone(),
                input: Amount::from(quote.input),
                output: Amount::from(quote.output),
                work: WORK.saturating_add(pools.saturating_mul(WORK_OF_POOL)),
                route: quote.note(),
            }),
        }
    }

    /// Refuses an answer about another exchange.
    fn matches(&self, quote: &Quote, terms: &SwapTerms) -> Result<(), SwapError> {
        let side = if terms.exact_input {
            quote.input
        } else {
            quote.output
        };
        let same = quote.from == self.mint(&terms.input)?
            && quote.to == self.mint(&terms.output)?
            && quote.exact_input == terms.exact_input
            && Amount::from(side) == terms.amount;
        same.then_some(())
            .ok_or_else(|| unavailable("an answer about another exchange"))
    }

    /// What the instructions are held against.
    fn asked(
        &self,
        offer: &SwapOffer,
        order: &SwapOrder,
        slippage: u16,
    ) -> Result<Asked, SwapError> {
        let key = |address: &Address| key(address).map_err(unbuilt);
        let small = |amount: Amount| u64::try_from(amount).map_err(|_| unavailable("too much"));
        let native = |currency: &Address| currency.bytes() == SYSTEM.to_bytes();
        let most = match offer.terms.exact_input {
            true => offer.input,
            false => order.limit,
        };
        let payer = order.choices.fee_payer.as_ref();
        Ok(Asked {
            user: key(&order.payer)?,
            payer: payer.map(key).transpose()?,
            wrapped: self.wrapped,
            from: self.mint(&offer.terms.input)?,
            into: self.mint(&offer.terms.output)?,
            target: None,
            native_input: native(&offer.terms.input),
            native_output: native(&offer.terms.output),
            exact_input: offer.terms.exact_input,
            input: small(offer.input)?,
            output: small(offer.output)?,
            most: small(most)?,
            slippage,
        })
    }

    async fn post(&self, path: &str, body: &Value) -> Result<crate::http::Body, SwapError> {
        let _permit = self.permit().await?;
        let body = body.to_string().into_bytes();
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let said = self.channel().post_below(path, headers, body).await;
        said.map_err(|error| refused(&error))
    }

    /// Waits for the permit of one question.
    async fn permit(&self) -> Result<Held<'_>, SwapError> {
        let permit = self.permits.wait(!(self.keyed)(), 1, PATIENCE).await;
        permit.ok_or_else(|| unavailable("too many questions under way, try again"))
    }
}

/// The account of a recipient who does not pay.
struct Target {
    owner: Pubkey,
    mint: Mint,
    account: Pubkey,
}

impl Target {
    /// Makes the account where there is none: the service takes it for made.
    fn create(&self, asked: &Asked) -> Instruction {
        create(
            &asked.payer.unwrap_or(asked.user),
            &self.owner,
            &self.mint,
            &self.account,
        )
    }
}

/// `None` where the payer gets what comes out.
fn target(asked: &Asked, order: &SwapOrder) -> Result<Option<Target>, SwapError> {
    if order.recipient == order.payer {
        return Ok(None);
    }
    // The service wraps nothing for another's account. To unwrap for another one is to close the user's own account of
    // wrapped lamports, with all that is in it.
    if asked.native_input || asked.native_output {
        return Err(SwapError::NoRoute);
    }
    let mint = mint(&asked.into).map_err(unbuilt)?;
    let owner = key(&order.recipient).map_err(unbuilt)?;
    let account = mint.account_of(&owner).map_err(unbuilt)?;
    Ok(Some(Target {
        owner,
        mint,
        account,
    }))
}

/// The question for the instructions.
fn question(asked: &Asked, quote: Value, order: &SwapOrder, target: Option<&Target>) -> Value {
    let mut body = json!({
        "quoteResponse": quote, "userPublicKey": asked.user.to_string(),
        "wrapAndUnwrapSol": asked.native_input || asked.native_output,
    });
    if let Some(payer) = asked.payer {
        body["payer"] = payer.to_string().into();
    }
    if let Some(shared) = order.choices.shared_accounts {
        body["useSharedAccounts"] = shared.into();
    }
    if let Some(target) = target {
        body["destinationTokenAccount"] = target.account.to_string().into();
    }
    body
}

const fn mode(exact_input: bool) -> &'static str {
    match exact_input {
        true => "ExactIn",
        false => "ExactOut",
    }
}

/// Why the service gave no answer. It refuses with a status what it has no way for.
fn refused(error: &PostError) -> SwapError {
    match error {
        PostError::Status { body, .. } if refusal(body) => SwapError::NoRoute,
        error => SwapError::Unavailable(format!("{NAME}: {error}")),
    }
}

fn unavailable(why: &str) -> SwapError {
    SwapError::Unavailable(format!("{NAME}: {why}"))
}

fn unbuilt(error: crate::CodecError) -> SwapError {
    unavailable(&error.0)
}

#[cfg(test)]
mod tests;
