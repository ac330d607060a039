//! A query string's pairs → what is asked. A parameter stands once and must mean something; one that
//! the route does not have is refused, so that a slip never asks for everybody's requests. The older
//! editions ignore it, as they always did.

use std::collections::BTreeMap;

use super::{Clause, Field, Query, Ranges, Sort, Span, Value, Wrong, groups, hint};
use crate::{json, request::summary::Feature, show};

/// Requests in an answer, unless `limit` says otherwise, and at most.
const LIMIT: usize = 20;
const MOST: usize = 50;

/// Parameters of the newest edition that are no field.
pub(super) const V3_ONLY: [&str; 9] = [
    "amountUsdMin",
    "amountUsdMax",
    "appFeesAmountUsdMin",
    "appFeesAmountUsdMax",
    "fillTimeMin",
    "fillTimeMax",
    "features",
    "filters",
    "includeTotal",
];

/// Whose words a query is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    V1,
    V2,
    V3,
}

/// Who asks. `apiKey` names the caller's own requests, by the key's label or by the key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caller<'a> {
    pub label: Option<&'a str>,
    /// The key as it was shown.
    pub key: Option<&'a str>,
}

/// A query, and how much of its answer is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub query: Query,
    pub limit: usize,
    /// As it was given.
    pub continuation: Option<String>,
    pub total: bool,
    /// Fields that only the key's owner may see are wanted.
    pub authenticated: bool,
    /// The order of each request is wanted.
    pub order: bool,
}

impl Edition {
    /// The field of a parameter of this edition.
    fn field(self, name: &str) -> Option<Field> {
        if self == Self::V3 {
            return Field::of(name);
        }
        Some(match (name, self) {
            ("id", _) => Field::Id,
            ("user", _) => Field::Party,
            ("hash", _) => Field::Transaction,
            ("originChainId", _) => Field::OriginChain,
            ("destinationChainId", _) => Field::DestinationChain,
            ("orderId", Self::V2) => Field::OrderId,
            ("chainId", Self::V2) => Field::Chain,
            ("referrer", Self::V2) => Field::Referrer,
            ("depositAddress", Self::V2) => Field::DepositAddress,
            ("status", Self::V2) => Field::Status,
            ("apiKey", Self::V2) => Field::ApiKey,
            _ => return None,
        })
    }

    /// Whether it has a parameter that is no field.
    fn has(self, name: &str) -> bool {
        match name {
            "limit"
            | "continuation"
            | "privateChainsToInclude"
            | "startTimestamp"
            | "endTimestamp" => true,
            "sortBy"
            | "sortDirection"
            | "startBlock"
            | "endBlock"
            | "includeAuthenticatedData"
            | "includeChildRequests" => self != Self::V1,
            "includeOrderData" => self == Self::V2,
            _ => self == Self::V3 && V3_ONLY.contains(&name),
        }
    }
}

impl Caller<'_> {
    /// [`Field::value`]; of keys only the caller's own.
    pub(super) fn value(&self, field: Field, key: &str, text: &str) -> Result<Value, Wrong> {
        if field == Field::ApiKey {
            let own = self
                .label
                .filter(|label| *label == text || self.key == Some(text));
            let own = own.ok_or_else(|| Wrong {
                code: "API_KEY_NOT_OWNED",
                parameter: key.to_owned(),
                why: "expected the caller's own key or its label".to_owned(),
            })?;
            return Ok(Value::Text(own.to_owned()));
        }
        field.value(key, text)
    }

    /// That requests are the caller's own, for what `parameter` tells of nobody else's; `why` is for those who
    /// have no key.
    fn own(&self, parameter: &str, why: &str) -> Result<Clause, Wrong> {
        let label = self.label.ok_or_else(|| Wrong {
            code: "API_KEY_NOT_OWNED",
            parameter: parameter.to_owned(),
            why: why.to_owned(),
        })?;
        Ok(Clause {
            field: Field::ApiKey,
            not: false,
            values: vec![Value::Text(label.to_owned())],
        })
    }
}

impl Asked {
    /// Reads the pairs of a query string. `private` are the chains that are hidden unless
    /// `privateChainsToInclude` names them.
    pub fn parse(
        edition: Edition,
        pairs: impl IntoIterator<Item = (String, String)>,
        caller: &Caller<'_>,
        private: &[u64],
    ) -> Result<Self, Wrong> {
        let params = Params::of(edition, pairs)?;
        let mut query = Query {
            all: params.clauses(caller)?,
            any: Vec::new(),
            features: params.features()?,
            hidden: params.hidden(private)?,
            ..params.sorted()?
        };
        if let Some(text) = params.text("filters") {
            query.any = groups::parse(text, caller)?;
        }
        query.ranges = params.ranges()?;
        if query.waits() {
            if query.sort == Sort::Amount {
                let why = "expected createdAt or updatedAt with status=waiting";
                return Err(Wrong::field("sortBy", why));
            }
            // Everybody's intentions are nobody's business: an account's are asked for by its name.
            let why = "waiting is listed for those with an API key: of the key's own quotes, or of a user's";
            let own = caller.own("status", why)?;
            query
                .all
                .extend(params.text("user").is_none().then_some(own));
        }
        Ok(Self {
            limit: params.limit()?,
            continuation: params.text("continuation").map(str::to_owned),
            total: params.flag("includeTotal")?,
            authenticated: params.flag("includeAuthenticatedData")?,
            order: params.flag("includeOrderData")?,
            query,
        })
    }
}

/// The parameters of an edition, by name.
struct Params {
    edition: Edition,
    texts: BTreeMap<String, String>,
}

impl Params {
    fn of(
        edition: Edition,
        pairs: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Wrong> {
        let mut texts = BTreeMap::new();
        for (name, text) in pairs {
            if edition.field(&name).is_none() && !edition.has(&name) {
                match edition {
                    Edition::V1 | Edition::V2 => continue,
                    Edition::V3 => return Err(hint::unknown(&name)),
                }
            }
            if text.is_empty() {
                return Err(Wrong::field(&name, "must not be empty"));
            }
            if texts.contains_key(&name) {
                return Err(Wrong::field(&name, "stands more than once"));
            }
            texts.insert(name, text);
        }
        let params = Self { edition, texts };
        // Children are regenerated requests, of which there are none.
        params.flag("includeChildRequests")?;
        Ok(params)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    fn clauses(&self, caller: &Caller<'_>) -> Result<Vec<Clause>, Wrong> {
        let exact = self
            .text("originChainId")
            .or(self.text("destinationChainId"));
        let mut all = Vec::new();
        for (name, text) in &self.texts {
            let Some(field) = self.edition.field(name) else {
                continue;
            };
            let listed = field == Field::ApiKey;
            let texts = text.split(',').filter(|_| listed);
            let texts = texts.chain(Some(text.as_str()).filter(|_| !listed));
            let values: Result<Vec<_>, _> = texts
                .map(|text| caller.value(field, name, text.trim()))
                .collect();
            let clause = reasoned(Clause {
                field,
                not: false,
                values: values?,
            });
            if field == Field::Referrer {
                let why = "only of requests that were quoted with the caller's own key";
                all.push(caller.own(name, why)?);
            }
            if !(field == Field::Chain && exact.is_some()) {
                all.push(clause);
            }
        }
        Ok(all)
    }

    fn sorted(&self) -> Result<Query, Wrong> {
        let sort = match self.text("sortBy") {
            None | Some("createdAt") => Sort::Created,
            Some("updatedAt") => Sort::Updated,
            Some("amountUsd") if self.edition == Edition::V3 => Sort::Amount,
            Some(_) => {
                let more = if self.edition == Edition::V3 {
                    ", amountUsd"
                } else {
                    ""
                };
                let why = format!("expected createdAt, updatedAt{more}");
                return Err(Wrong::field("sortBy", why));
            }
        };
        let descending = match self.text("sortDirection") {
            None => sort != Sort::Amount,
            Some("asc") => false,
            Some("desc") => true,
            Some(_) => return Err(Wrong::field("sortDirection", "expected asc or desc")),
        };
        Ok(Query {
            sort,
            descending,
            ..Query::default()
        })
    }

    fn ranges(&self) -> Result<Ranges, Wrong> {
        let second = |name: &str| self.number(name);
        let from = second("startTimestamp")?.map(|from| from.saturating_mul(1000));
        let to = second("endTimestamp")?;
        let to = to.map(|to| to.saturating_mul(1000).saturating_add(999));
        let span = |from: &str, to: &str| -> Result<Span, Wrong> {
            Ok(Span {
                from: self.number(from)?,
                to: self.number(to)?,
            })
        };
        Ok(Ranges {
            time: Span { from, to },
            block: span("startBlock", "endBlock")?,
            origin_block: self.text("originChainId").is_some(),
            amount: self.dollars("amountUsdMin", "amountUsdMax")?,
            app_fees: self.dollars("appFeesAmountUsdMin", "appFeesAmountUsdMax")?,
            fill_time: span("fillTimeMin", "fillTimeMax")?,
        })
    }

    fn number(&self, name: &str) -> Result<Option<u64>, Wrong> {
        let number = |text: &str| {
            json::number(text)
                .ok_or_else(|| Wrong::field(name, "expected a whole number from 0 to 2^53 - 1"))
        };
        self.text(name).map(number).transpose()
    }

    /// Dollars as millionths. A lower limit between two of them is the upper one.
    fn dollars(&self, from: &str, to: &str) -> Result<Span, Wrong> {
        let read = |name: &str| {
            let micro = |text: &str| {
                let micro = show::micro_of(text).and_then(|micro| u64::try_from(micro).ok());
                micro.ok_or_else(|| Wrong::field(name, "expected dollars, such as 12.5"))
            };
            self.text(name).map(micro).transpose()
        };
        let least = read(from)?;
        let cut = self
            .text(from)
            .and_then(|text| text.split_once('.')?.1.get(6..));
        let above = cut.is_some_and(|rest| rest.bytes().any(|digit| digit != b'0'));
        Ok(Span {
            from: least.map(|least| least.saturating_add(above.into())),
            to: read(to)?,
        })
    }

    fn features(&self) -> Result<u8, Wrong> {
        let Some(text) = self.text("features") else {
            return Ok(0);
        };
        text.split(',').try_fold(0, |bits, name| {
            let mut all = Feature::ALL.into_iter();
            let found = all.find(|feature| feature.text() == name.trim());
            let found = found.ok_or_else(|| {
                let all = Feature::ALL.map(Feature::text).join(", ");
                Wrong::field("features", format!("expected a comma list of {all}"))
            });
            Ok(bits | found?.bit())
        })
    }

    fn hidden(&self, private: &[u64]) -> Result<Vec<u64>, Wrong> {
        let text = self.text("privateChainsToInclude").unwrap_or_default();
        let named = text
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let wrong = || Wrong::field("privateChainsToInclude", "expected a comma list of numbers");
        let named: Result<Vec<u64>, _> = named
            .map(|text| json::number(text).ok_or_else(wrong))
            .collect();
        let named = named?;
        let hidden = private.iter().filter(|chain| !named.contains(chain));
        Ok(hidden.copied().collect())
    }

    fn limit(&self) -> Result<usize, Wrong> {
        let Some(text) = self.text("limit") else {
            return Ok(LIMIT);
        };
        let limit = json::number(text).and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.filter(|limit| (1..=MOST).contains(limit));
        limit.ok_or_else(|| {
            Wrong::field("limit", format!("expected a whole number from 1 to {MOST}"))
        })
    }

    fn flag(&self, name: &str) -> Result<bool, Wrong> {
        match self.text(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(Wrong::field(name, "expected true or false")),
        }
    }
}

/// Clients of older versions know a missing reason as `N/A`.
pub(super) fn reasoned(clause: Clause) -> Clause {
    let reason = matches!(clause.field, Field::FailReason | Field::RefundFailReason);
    let none = Value::Text("N/A".to_owned());
    if reason && clause.values == [none] {
        return Clause {
            values: Vec::new(),
            ..clause
        };
    }
    clause
}
