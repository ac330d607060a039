//! A query string's pairs → what is asked. A parameter stands once and must mean something; one that
//! the route does not have is refused, so that a slip never asks for everybody's requests. The older
//! editions ignore it, as they always did.

use std::collections::BTreeMap;

use strum::VariantArray;

use super::{
    Clause, Field, Query, Ranges, Sort, Value, Wrong,
    form::listed,
    groups,
    table::{self, Asks, Parameter},
};
use crate::{json, request::summary::Feature};

/// Requests in an answer, unless `limit` says otherwise, and at most.
const LIMIT: usize = 20;
const MOST: usize = 50;

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

impl Caller<'_> {
    /// [`Form::value`](super::form::Form::value); of keys only the caller's own.
    pub(super) fn value(&self, of: &Parameter, text: &str) -> Result<Value, Wrong> {
        if of.field() == Some(Field::ApiKey) {
            let own = self
                .label
                .filter(|label| *label == text || self.key == Some(text));
            let why = "expected the caller's own key or its label";
            let own = own.ok_or_else(|| Wrong::not_owned(of.name, why))?;
            return Ok(Value::Text(own.to_owned()));
        }
        of.form.value(of.name, text)
    }

    /// The clause that limits a query to the caller's own requests, as `parameter` demands it. `why` is the
    /// refusal's text for callers without a key.
    fn own(&self, parameter: &str, why: &str) -> Result<Clause, Wrong> {
        let label = self.label.ok_or_else(|| Wrong::not_owned(parameter, why))?;
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
    texts: BTreeMap<&'static str, (Parameter, String)>,
}

impl Params {
    fn of(
        edition: Edition,
        pairs: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Wrong> {
        let mut texts = BTreeMap::new();
        for (name, text) in pairs {
            let Some(known) = table::of(edition, &name) else {
                match edition {
                    Edition::V1 | Edition::V2 => continue,
                    Edition::V3 => return Err(table::unknown(&name)),
                }
            };
            if text.is_empty() {
                return Err(Wrong::field(&name, "must not be empty"));
            }
            if texts.insert(known.name, (known, text)).is_some() {
                return Err(Wrong::field(&name, "stands more than once"));
            }
        }
        let params = Self { edition, texts };
        // Children are regenerated requests, of which there are none.
        params.flag("includeChildRequests")?;
        Ok(params)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(|(_, text)| text.as_str())
    }

    fn clauses(&self, caller: &Caller<'_>) -> Result<Vec<Clause>, Wrong> {
        let exact = self
            .text("originChainId")
            .or(self.text("destinationChainId"));
        let mut all = Vec::new();
        for (name, (known, text)) in &self.texts {
            let Some(field) = known.field() else {
                continue;
            };
            let listed = field == Field::ApiKey;
            let texts = text.split(',').filter(|_| listed);
            let texts = texts.chain(Some(text.as_str()).filter(|_| !listed));
            let values: Result<Vec<_>, _> =
                texts.map(|text| caller.value(known, text.trim())).collect();
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
        let mut ranges = Ranges {
            origin_block: self.text("originChainId").is_some(),
            ..Ranges::default()
        };
        for one in table::all(self.edition) {
            let (of, most) = match one.asks {
                Asks::From(of) => (of, false),
                Asks::To(of) => (of, true),
                Asks::Field(_) | Asks::Answer => continue,
            };
            let text = self.text(one.name);
            let limit = text.map(|text| one.form.limit(one.name, text, most));
            let limit = limit.transpose()?;
            let span = ranges.span(of);
            let side = if most { &mut span.to } else { &mut span.from };
            *side = limit;
        }
        Ok(ranges)
    }

    fn features(&self) -> Result<u8, Wrong> {
        let Some(text) = self.text("features") else {
            return Ok(0);
        };
        text.split(',').try_fold(0, |bits, name| {
            let mut all = Feature::VARIANTS.iter();
            let found = all.find(|feature| feature.text() == name.trim());
            let found = found.ok_or_else(|| {
                let all = listed(Feature::VARIANTS);
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
