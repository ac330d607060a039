//! The parameters of the listing's query, each once. Parsing, the fields of `filters`, hints, the index that
//! serves a query and the descriptions of all three versions are read from these tables.

use utoipa::openapi::{
    KnownFormat, ObjectBuilder, Required, SchemaFormat, Type,
    path::{Parameter as Described, ParameterBuilder, ParameterIn},
    schema::SchemaType,
};

use super::{
    Edition, Field, Wrong,
    form::{Form, TEXT},
};
use crate::json::MAX_NUMBER;

/// One parameter, as one version has it.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub name: &'static str,
    pub asks: Asks,
    pub form: Form,
    description: &'static str,
}

impl Parameter {
    pub fn field(&self) -> Option<Field> {
        match self.asks {
            Asks::Field(field) => Some(field),
            _ => None,
        }
    }
}

/// What a parameter asks.
#[derive(Clone, Copy)]
pub(super) enum Asks {
    /// What a request has there; a field of `filters` in version 3.
    Field(Field),
    /// The least that is within a limit.
    From(Limited),
    /// The most that is within a limit.
    To(Limited),
    /// How much of the answer is wanted, in which order and with what.
    Answer,
}

/// What is limited ([`Ranges`](super::Ranges)).
#[derive(Clone, Copy)]
pub(super) enum Limited {
    Time,
    Block,
    Amount,
    AppFees,
    FillTime,
}

/// A parameter of versions that are older than 3.
struct Older(&'static [Edition], &'static str, Is);

/// What an older version's parameter is beside version 3's of its name.
enum Is {
    Same,
    /// The same with another description.
    Told(&'static str),
    /// Another one.
    Own(Parameter),
    /// Version 3 has none of its name; what is asked there instead.
    Gone(Parameter, &'static str),
}

const V1: &[Edition] = &[Edition::V1];
const V2: &[Edition] = &[Edition::V2];
const BOTH: &[Edition] = &[Edition::V1, Edition::V2];

/// Version 3, in the order of its description.
#[rustfmt::skip]
const NEWEST: [Parameter; 43] = [
    row("limit", Asks::Answer, Form::Limit,
        "Requests in the answer, 1 to 50; 20 by default. There may be fewer although there is more \
         to\ncome: go on until there is no `continuation`."),
    row("continuation", Asks::Answer, Form::Token, "The one of the answer before, with all other parameters unchanged."),
    row("includeTotal", Asks::Answer, Form::Flag,
        "Tells how many requests there are, unless more than 10,000 would have to be looked at."),
    row("term", Asks::Field(Field::Term), Form::Term, "Request id, account, deposit address or any transaction hash."),
    row("id", Asks::Field(Field::Id), Form::Id, "Of the request."),
    row("orderId", Asks::Field(Field::OrderId), Form::Order, "Of its order, as deposits and fills name it."),
    row("depositTxHash", Asks::Field(Field::Deposit), Form::Name, "Of a transaction that deposited for it."),
    row("fillTxHash", Asks::Field(Field::Fill), Form::Name, "Of a transaction that filled it."),
    row("refundTxHash", Asks::Field(Field::Refund), Form::Name, "Of a transaction that gave a deposit back."),
    row("originChainId", Asks::Field(Field::OriginChain), Form::Number, "The chain of the deposit."),
    row("destinationChainId", Asks::Field(Field::DestinationChain), Form::Number, "The chain of the fill."),
    row("chainId", Asks::Field(Field::Chain), Form::Number, "Either side's; not looked at beside one of the others."),
    row("privateChainsToInclude", Asks::Answer, Form::List,
        "A comma list of private chains, whose requests are left out otherwise."),
    row("user", Asks::Field(Field::User), Form::Name, "The sender, or who paid into the deposit address."),
    row("depositAddress", Asks::Field(Field::DepositAddress), Form::Name, "The address that the deposit goes to."),
    row("recipient", Asks::Field(Field::Recipient), Form::Name, "Who is paid."),
    row("status", Asks::Field(Field::Status), Form::Status,
        "`success`, `failure`, `refund`, `pending` (which is also `submitted`), `depositing` or \
         `waiting`.\nQuotes that nobody acted on are left out unless `waiting` or an id asks for them; they \
         are in no\norder of amounts. `waiting` lists those that were quoted with the caller's own key, or \
         those of the `user`\nthat is named as well."),
    row("failReason", Asks::Field(Field::FailReason), Form::Text, "As in `data.failReason`, for example `TTL_EXPIRED`."),
    row("refundFailReason", Asks::Field(Field::RefundFailReason), Form::Text, "As in `data.refundFailReason`."),
    row("apiKey", Asks::Field(Field::ApiKey), Form::Text,
        "A comma list of the caller's own key, or better its label: addresses are logged."),
    row("requestType", Asks::Field(Field::Kind), Form::Kind,
        "`Bridge` (one asset on two chains), `Crosschain Swap`, `Same-chain Swap`, `Send`, `Wrap`, `Unwrap` \
         or `Call`."),
    row("currencyInChainId", Asks::Field(Field::OriginChain), Form::Number, "The chain of what goes in."),
    row("currencyOutChainId", Asks::Field(Field::DestinationChain), Form::Number, "The chain of what comes out."),
    row("currencyInAddress", Asks::Field(Field::CurrencyIn), Form::Currency, "What goes in."),
    row("currencyOutAddress", Asks::Field(Field::CurrencyOut), Form::Currency, "What comes out."),
    row("currencyInSymbol", Asks::Field(Field::SymbolIn), Form::Symbol, "The symbol of what goes in, in any case."),
    row("currencyOutSymbol", Asks::Field(Field::SymbolOut), Form::Symbol, "The symbol of what comes out, in any case."),
    row("startTimestamp", Asks::From(Limited::Time), Form::Time,
        "Unix seconds of the creation, or of the last change when that is sorted by."),
    row("endTimestamp", Asks::To(Limited::Time), Form::Time, "As `startTimestamp`."),
    row("startBlock", Asks::From(Limited::Block), Form::Number,
        "Of any of its transactions; with `originChainId` of those there."),
    row("endBlock", Asks::To(Limited::Block), Form::Number, "As `startBlock`."),
    row("amountUsdMin", Asks::From(Limited::Amount), Form::Dollars, "Dollars, of what was to be deposited."),
    row("amountUsdMax", Asks::To(Limited::Amount), Form::Dollars, "As `amountUsdMin`."),
    row("appFeesAmountUsdMin", Asks::From(Limited::AppFees), Form::Dollars,
        "Dollars, of the integrators' fees as they were quoted."),
    row("appFeesAmountUsdMax", Asks::To(Limited::AppFees), Form::Dollars, "As `appFeesAmountUsdMin`."),
    row("fillTimeMin", Asks::From(Limited::FillTime), Form::Number, "Seconds from the deposit's block to the fill's."),
    row("fillTimeMax", Asks::To(Limited::FillTime), Form::Number, "As `fillTimeMin`."),
    row("features", Asks::Answer, Form::List,
        "A comma list, of which one must be there: `gasless_execution`, `gasless_swap`, \
         `fast_fill`,\n`gas_top_up`, `fixed_rate`, `app_fees`, `deposit_address`."),
    row("includeAuthenticatedData", Asks::Answer, Form::Flag,
        "Shows `data.referrer`, `data.platformFee` and `data.apiKeyName` of the caller's own requests."),
    row("includeChildRequests", Asks::Answer, Form::Flag, "With `id`: regenerated requests, too."),
    row("filters", Asks::Answer, Form::Filters,
        "A JSON array of groups, of which one must hold: objects of the fields above (not of ranges \
         and\n`features`), all of which must hold; no status `waiting`. `not:` before a key turns it round; \
         a value may be\nan array, of which one must hold, or null, for nothing (never of `apiKey`). At \
         most 16 groups of 32 fields of 64 values, and 256 values in all."),
    row("sortBy", Asks::Answer, Form::Sort, "`createdAt`, `updatedAt` or `amountUsd`."),
    row("sortDirection", Asks::Answer, Form::Direction,
        "`asc` or `desc`; by default `desc` for times and `asc` for amounts."),
];

/// Versions 1 and 2, in the order of their descriptions.
#[rustfmt::skip]
const OLDER: [Older; 24] = [
    Older(BOTH, "limit", Is::Told(
        "Requests in the answer, 1 to 50; 20 by default. There may be fewer although there is more to come.")),
    Older(BOTH, "continuation", Is::Same),
    Older(BOTH, "user", Is::Own(row("user", Asks::Field(Field::Party), Form::Name, "The sender or the recipient."))),
    Older(BOTH, "hash", Is::Gone(row("hash", Asks::Field(Field::Transaction), Form::Name, "Any transaction's."),
        "ask with term, or with depositTxHash, fillTxHash or refundTxHash")),
    Older(BOTH, "originChainId", Is::Same),
    Older(BOTH, "destinationChainId", Is::Same),
    Older(BOTH, "privateChainsToInclude", Is::Same),
    Older(BOTH, "id", Is::Same),
    Older(V2, "orderId", Is::Same),
    Older(V2, "includeOrderData", Is::Gone(row("includeOrderData", Asks::Answer, Form::Flag, "Shows `orderData`."),
        "data.protocol has what an order came to")),
    Older(V2, "startTimestamp", Is::Same),
    Older(V1, "startTimestamp", Is::Told("Unix seconds of the creation.")),
    Older(BOTH, "endTimestamp", Is::Same),
    Older(V2, "startBlock", Is::Same),
    Older(V2, "endBlock", Is::Same),
    Older(V2, "chainId", Is::Same),
    Older(V2, "referrer", Is::Gone(row("referrer", Asks::Field(Field::Referrer), Form::Text,
        "Of the caller's own requests only: needs the key that they were quoted with."),
        "ask with apiKey for your own requests; includeAuthenticatedData=true shows their referrers")),
    Older(V2, "depositAddress", Is::Same),
    Older(V2, "includeChildRequests", Is::Told("With `id` or `depositAddress`: regenerated requests, too.")),
    Older(V2, "includeAuthenticatedData", Is::Told("Shows what only the owner of the request's key may see.")),
    Older(V2, "status", Is::Told(
        "As in version 3: quotes that nobody acted on are left out unless `waiting` or an id asks for them. \
         `waiting`\nis refused without a key.")),
    Older(V2, "apiKey", Is::Same),
    Older(V2, "sortBy", Is::Own(row("sortBy", Asks::Answer, Form::SortTime, "`createdAt` or `updatedAt`."))),
    Older(V2, "sortDirection", Is::Told("`asc` or `desc`; `desc` by default.")),
];

const fn row(name: &'static str, asks: Asks, form: Form, description: &'static str) -> Parameter {
    Parameter {
        name,
        asks,
        form,
        description,
    }
}

impl Older {
    fn parameter(&self) -> Option<Parameter> {
        let newest = || NEWEST.iter().find(|one| one.name == self.1).copied();
        match self.2 {
            Is::Same => newest(),
            Is::Told(description) => newest().map(|one| Parameter { description, ..one }),
            Is::Own(own) | Is::Gone(own, _) => Some(own),
        }
    }
}

/// The parameters of a version, in the order of its description.
pub(super) fn all(edition: Edition) -> impl Iterator<Item = Parameter> {
    let newest = NEWEST.iter().filter(move |_| edition == Edition::V3);
    let older = OLDER.iter().filter(move |one| one.0.contains(&edition));
    newest.copied().chain(older.filter_map(Older::parameter))
}

/// The parameter that a version calls so.
pub(super) fn of(edition: Edition, name: &str) -> Option<Parameter> {
    all(edition).find(|one| one.name == name)
}

/// How the values of a field are read, and which index has them.
pub(super) fn form(field: Field) -> Option<Form> {
    let mut all = [Edition::V3, Edition::V2].into_iter().flat_map(all);
    let found = all.find(|one| one.field() == Some(field));
    found.map(|one| one.form)
}

/// The refusal of a parameter that version 3 does not have.
pub(super) fn unknown(name: &str) -> Wrong {
    let shown: String = name.chars().take(40).collect();
    let instead = OLDER.iter().find_map(|one| match one.2 {
        Is::Gone(_, instead) if one.1 == name => Some(instead),
        _ => None,
    });
    match instead {
        Some(instead) => {
            let why = format!("is no parameter any more: {instead}");
            Wrong::new("REMOVED_PARAMETER", &shown, why)
        }
        None => Wrong::new("UNKNOWN_PARAMETER", &shown, meant(&shown)),
    }
}

fn meant(name: &str) -> String {
    let lower = name.to_lowercase();
    let likeness =
        |known: &Parameter| strsim::damerau_levenshtein(&lower, &known.name.to_lowercase());
    // Of two that are alike a field is meant.
    let rank = |known: &&Parameter| (likeness(known), known.field().is_none());
    match NEWEST.iter().min_by_key(rank) {
        Some(known) if is_alike(likeness(known), known.name) => {
            format!("is no parameter; did you mean {}?", known.name)
        }
        _ => "is no parameter of this route".to_owned(),
    }
}

/// Whether so many changes may be slips in a name like `known`.
fn is_alike(changes: usize, known: &str) -> bool {
    changes.saturating_mul(3) <= known.len()
}

/// The parameters of a version as its description has them.
pub fn described(edition: Edition) -> Vec<Described> {
    let one = |one: Parameter| {
        ParameterBuilder::new()
            .name(one.name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(one.description))
            .schema(Some(schema(&one)))
            .build()
    };
    all(edition).map(one).collect()
}

fn schema(of: &Parameter) -> ObjectBuilder {
    let typed =
        |kind: Type| ObjectBuilder::new().schema_type(SchemaType::Array(vec![kind, Type::Null]));
    let known = |format| Some(SchemaFormat::KnownFormat(format));
    let whole = |format| typed(Type::Integer).format(known(format));
    let text = || typed(Type::String);
    let pattern = |pattern: &str| text().pattern(Some(pattern));
    match of.form {
        Form::Limit => whole(KnownFormat::Int32).minimum(Some(1)).maximum(Some(50)),
        Form::Number | Form::Time => {
            let number = whole(KnownFormat::Int64).minimum(Some(0));
            number.maximum(Some(MAX_NUMBER))
        }
        Form::Flag => typed(Type::Boolean),
        Form::Token => text(),
        Form::Id | Form::Order => pattern("^0x[0-9a-fA-F]{64}$"),
        Form::Dollars => pattern("^[0-9]{1,12}(\\.[0-9]{1,6})?$"),
        Form::Status => pattern("^(success|failure|refund|pending|depositing|waiting)$"),
        Form::Sort => pattern("^(createdAt|updatedAt|amountUsd)$"),
        Form::SortTime => pattern("^(createdAt|updatedAt)$"),
        Form::Direction => pattern("^(asc|desc)$"),
        Form::Filters => text().min_length(Some(2)).max_length(Some(8192)),
        Form::List => text().min_length(Some(1)),
        // A list as well.
        _ if of.field() == Some(Field::ApiKey) => text().min_length(Some(1)),
        _ => text().min_length(Some(1)).max_length(Some(TEXT)),
    }
}
