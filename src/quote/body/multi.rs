//! The body of `POST /execute/swap/multi-input` as it comes: that of a quote, with several origins in place of one
//! (guide: protocol 11.18, and the published client's types, 5.1). Each origin becomes the body of a quote. Pure.

use serde::Deserialize;
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::{Body, leave_out_nulls, on, unread};
use crate::{
    json::{self, Digits, Flag, Number, Objects},
    quote::code::{Code, Refused},
};

/// Origins of one request. Each is a whole quote to the providers and to the caller's limit, of which the smallest
/// usual window has ten; and the wallet makes the deposits one after another while the prices hold, for a minute.
pub const MOST: usize = 8;
const _: () = assert!(MOST == 8, "the description says so");

/// The fields of a quote (`POST /quote/v2`) but for those that name its origin. All others are taken as well, and hold
/// for each of the orders; an unknown one is ignored. What several orders cannot keep is refused, however many there
/// are: `amount`, `txs`, `txsGasLimit`, `authorizationList`, and any trade type but EXACT_INPUT.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MultiInputBody)]
pub struct MultiBody {
    /// Deposits where an origin names nobody else.
    pub user: String,
    /// Of all orders; `user` without it.
    pub recipient: Option<String>,
    /// Of all orders, an account of every origin's chain. Without it an order's refund reaches `recipient` where it is
    /// given and can be paid there, else who deposited.
    pub refund_to: Option<String>,
    /// What is paid in, in any chains and currencies; no currency twice by one user. An order is made for each.
    #[schema(min_items = 1, max_items = 8)]
    pub origins: Vec<Origin>,
    pub destination_chain_id: Number,
    pub destination_currency: String,
    #[schema(schema_with = trade_types)]
    pub trade_type: String,
    /// Whether some may be quoted without the others, which is not supported: there are quotes for all, or none.
    pub partial: Option<Flag>,
    /// At most 256 bytes.
    #[schema(max_length = 256)]
    pub referrer: Option<String>,
    /// Basis points of each order, from 0 to 10,000.
    pub slippage_tolerance: Option<Digits>,
    /// Of each order; at most 1,000,000,000.
    pub origin_gas_overhead: Option<Number>,
}

/// One input.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MultiInputOrigin)]
pub struct Origin {
    pub chain_id: Number,
    pub currency: String,
    /// Smallest units, from 1 to 2^256 - 1.
    pub amount: Digits,
    /// Deposits it; the body's `user` without it.
    pub user: Option<String>,
}

fn trade_types() -> RefOr<Schema> {
    json::schema::one_of("Each origin's `amount` is what goes in.", ["EXACT_INPUT"])
}

/// What an order of several cannot have, and why.
const OF_ONE: [(&str, Code, &str); 6] = [
    (
        "amount",
        Code::InvalidField,
        "expected in each of origins instead",
    ),
    (
        "originChainId",
        Code::InvalidField,
        "expected as chainId in each of origins instead",
    ),
    (
        "originCurrency",
        Code::InvalidField,
        "expected as currency in each of origins instead",
    ),
    (
        "txs",
        Code::ExtraTxsNotSupported,
        "no order has the whole output for them; /quote/v2 takes them",
    ),
    (
        "txsGasLimit",
        Code::ExtraTxsNotSupported,
        "there are no calls with several inputs",
    ),
    (
        "authorizationList",
        Code::ExtraTxsNotSupported,
        "it counts once, and every order has a fill of its own; /quote/v2 takes it",
    ),
];

/// What stands beside `origins`, never in one of them.
const SHARED: [&str; 5] = [
    "destinationChainId",
    "destinationCurrency",
    "recipient",
    "refundTo",
    "tradeType",
];

impl MultiBody {
    /// Reads a JSON object: the body of a quote for each origin, in their order. A field that cannot be read is
    /// refused with its path, what was expected, and the code of the cause.
    pub fn read(mut json: Value) -> Result<Vec<Body>, Refused> {
        leave_out_nulls(&mut json);
        check_origins(&json)?;
        let asked = Objects(json.clone());
        let asked: Self = serde_path_to_error::deserialize(asked).map_err(unread)?;
        asked.refuse(&json)?;
        let shared = asked.shared(json)?;
        let origins = asked.origins.into_iter();
        Ok(origins.map(|origin| origin.body(&shared)).collect())
    }

    fn refuse(&self, json: &Value) -> Result<(), Refused> {
        let count = self.origins.len();
        if count == 0 || count > MOST {
            return Err(invalid(format!("origins: expected 1 to {MOST}")));
        }
        if self.trade_type != "EXACT_INPUT" {
            let what =
                "tradeType: expected EXACT_INPUT: several orders have no exact output together";
            return Err(invalid(what));
        }
        if on(self.partial) {
            let what = "partial: not supported: all origins are quoted, or none";
            return Err(Refused::new(Code::UnsupportedExecutionType, what));
        }
        let empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
        let given = |name: &str| json.get(name).is_some_and(|value| !empty(value));
        for (name, code, what) in OF_ONE {
            if given(name) {
                return Err(Refused::new(code, format!("{name}: {what}")));
            }
        }
        Ok(())
    }

    /// The body of a quote for the first origin.
    fn shared(&self, mut json: Value) -> Result<Body, Refused> {
        let first = self.origins.first();
        let first = first.ok_or_else(|| invalid("origins: required"))?;
        json["originChainId"] = Value::from(first.chain_id.0);
        json["originCurrency"] = Value::from(first.currency.as_str());
        json["amount"] = Value::from(&*first.amount);
        json["origins"] = Value::Null;
        Body::read(json)
    }
}

impl Origin {
    fn body(self, shared: &Body) -> Body {
        // All deposits pay one recipient, by default the body's user. An origin's own user gets its own refund, not
        // that recipient.
        let (recipient, refund_to) = match (&self.user, &shared.recipient) {
            (Some(user), None) => (Some(&shared.user), shared.refund_to.as_ref().or(Some(user))),
            (_, recipient) => (recipient.as_ref(), shared.refund_to.as_ref()),
        };
        Body {
            recipient: recipient.cloned(),
            refund_to: refund_to.cloned(),
            user: self.user.unwrap_or_else(|| shared.user.clone()),
            origin_chain_id: self.chain_id,
            origin_currency: self.currency,
            amount: self.amount,
            ..shared.clone()
        }
    }
}

fn invalid(what: impl Into<String>) -> Refused {
    Refused::new(Code::InvalidField, what)
}

/// Refuses an origin with what stands beside all of them.
fn check_origins(json: &Value) -> Result<(), Refused> {
    let origins = json.get("origins").and_then(Value::as_array);
    for (at, origin) in origins.into_iter().flatten().enumerate() {
        if let Some(name) = SHARED.iter().find(|name| origin.get(**name).is_some()) {
            let what = format!("origins[{at}].{name}: expected beside origins, for all of them");
            return Err(invalid(what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::quote::fixtures::{NATIVE, OTHER, PROXY, USDC, USER};

    fn body() -> Value {
        json!({
            "user": USER, "destinationChainId": 31_002, "destinationCurrency": USDC,
            "tradeType": "EXACT_INPUT", "origins": [
                {"chainId": 31_001, "currency": USDC, "amount": "100000000"},
                {"chainId": "0x7919", "currency": NATIVE, "amount": "0x10", "user": OTHER},
            ],
        })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut body = body();
        body[field] = value;
        body
    }

    fn with_origin(field: &str, value: Value) -> Value {
        let mut body = body();
        body["origins"][1][field] = value;
        body
    }

    #[test]
    fn each_origin_is_a_quotes_body_with_all_that_is_shared() {
        let mut asked = body();
        asked["slippageTolerance"] = json!(50);
        asked["appFees"] = json!([{"recipient": OTHER, "fee": "5"}]);
        let read = MultiBody::read(asked).unwrap();
        let [first, second] = &read[..] else {
            panic!("not two");
        };
        assert_eq!(
            (first.user.as_str(), first.recipient.as_deref()),
            (USER, None)
        );
        assert_eq!(
            (first.origin_chain_id.0, &*first.amount),
            (31_001, "100000000")
        );
        assert_eq!(first.origin_currency, USDC);
        // Who deposits for somebody pays that one's recipient.
        assert_eq!(
            (second.user.as_str(), second.recipient.as_deref()),
            (OTHER, Some(USER))
        );
        assert_eq!((second.origin_chain_id.0, &*second.amount), (31_001, "16"));
        assert_eq!(second.origin_currency, NATIVE);
        for body in [first, second] {
            assert_eq!(body.destination_chain_id.0, 31_002);
            assert_eq!(body.slippage_tolerance.as_deref(), Some("50"));
            assert_eq!(body.app_fees.as_ref().map(Vec::len), Some(1));
        }
        // And what he deposited is given back to him, unless somebody else was named.
        assert_eq!(first.refund_to, None);
        assert_eq!(second.refund_to.as_deref(), Some(OTHER));
        for (field, refund_to) in [("recipient", None), ("refundTo", Some(PROXY))] {
            let read = MultiBody::read(with(field, json!(PROXY))).unwrap();
            let refunds = read.iter().map(|body| body.refund_to.as_deref());
            assert!(refunds.eq([refund_to; 2]), "{field}");
        }
        let third = with("recipient", json!(OTHER));
        let recipients = MultiBody::read(third).unwrap();
        assert!(
            recipients
                .iter()
                .all(|body| body.recipient.as_deref() == Some(OTHER))
        );
    }

    #[test]
    fn what_asks_for_nothing_is_taken() {
        for (field, value) in [
            ("partial", json!(false)),
            ("partial", json!("false")),
            ("txs", json!([])),
            ("authorizationList", json!([])),
            ("amount", Value::Null),
            ("useUserOperation", json!(true)),
            ("usePermit", json!(false)),
        ] {
            let read = MultiBody::read(with(field, value.clone()));
            assert!(read.is_ok(), "{field} {value}: {read:?}");
        }
        let most = vec![body()["origins"][0].clone(); MOST];
        assert_eq!(
            MultiBody::read(with("origins", json!(most))).unwrap().len(),
            MOST
        );
    }

    #[expect(clippy::too_many_lines, reason = "a table")]
    #[test]
    fn what_several_orders_cannot_keep_is_refused_by_its_name() {
        use Code::*;
        let many = vec![body()["origins"][0].clone(); MOST + 1];
        let call = json!([{"to": OTHER, "data": "0x12"}]);
        for (asked, code, path) in [
            (json!([]), InvalidField, "body"),
            (with("origins", json!([])), InvalidField, "origins"),
            (with("origins", json!(many)), InvalidField, "origins"),
            (with("origins", json!({})), InvalidField, "origins"),
            (with("origins", Value::Null), MissingField, "origins"),
            (
                with("origins", json!([[31_001, USDC, "1"]])),
                InvalidField,
                "origins[0]",
            ),
            (
                with("tradeType", json!("EXACT_OUTPUT")),
                InvalidField,
                "tradeType",
            ),
            (
                with("tradeType", json!("EXPECTED_OUTPUT")),
                InvalidField,
                "tradeType",
            ),
            (with("tradeType", Value::Null), MissingField, "tradeType"),
            (
                with("partial", json!(true)),
                UnsupportedExecutionType,
                "partial",
            ),
            (with("partial", json!("x")), InvalidField, "partial"),
            (with("amount", json!("1")), InvalidField, "amount"),
            (
                with("originChainId", json!(31_001)),
                InvalidField,
                "originChainId",
            ),
            (
                with("originCurrency", json!(USDC)),
                InvalidField,
                "originCurrency",
            ),
            (with("txs", call.clone()), ExtraTxsNotSupported, "txs"),
            (with("txs", json!("x")), ExtraTxsNotSupported, "txs"),
            (
                with("txsGasLimit", json!(1)),
                ExtraTxsNotSupported,
                "txsGasLimit",
            ),
            (
                with("authorizationList", call),
                ExtraTxsNotSupported,
                "authorizationList",
            ),
            (with("user", Value::Null), MissingField, "user"),
            (
                with("destinationCurrency", Value::Null),
                MissingField,
                "destinationCurrency",
            ),
            (
                with("slippageTolerance", json!("x")),
                InvalidSlippageTolerance,
                "slippageTolerance",
            ),
            (with("appFees", json!([5])), InvalidField, "appFees[0]"),
            (
                with_origin("amount", json!("1e18")),
                InvalidAmount,
                "origins[1].amount",
            ),
            (
                with_origin("amount", Value::Null),
                MissingField,
                "origins[1].amount",
            ),
            (
                with_origin("chainId", json!("x")),
                InvalidField,
                "origins[1].chainId",
            ),
            (
                with_origin("currency", json!(5)),
                InvalidField,
                "origins[1].currency",
            ),
            (
                with_origin("destinationCurrency", json!(NATIVE)),
                InvalidField,
                "origins[1].destinationCurrency",
            ),
            (
                with_origin("recipient", json!(OTHER)),
                InvalidField,
                "origins[1].recipient",
            ),
        ] {
            let refused = MultiBody::read(asked.clone()).unwrap_err();
            assert_eq!(refused.code, code, "{asked}: {refused}");
            let named = refused.message.split(": ").next();
            assert_eq!(named, Some(path), "{asked}: {refused}");
        }
    }
}
