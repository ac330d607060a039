//! The maps of hints against types with a field per family, as a client would declare them: the same bodies,
//! echoes, refusals and descriptions.

use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::http::parse::typed;

#[derive(Serialize, Deserialize)]
struct Body<D, F, I> {
    deposit: Option<D>,
    fill: Option<F>,
    inputs: Option<Vec<I>>,
}

/// What a family needs besides the id to find a transaction.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = DepositHints)]
struct PlainDepositHints {
    #[serde(rename = "ton-vm", skip_serializing_if = "Option::is_none")]
    ton: Option<TonHint>,
}

/// The logical time of a TON transaction.
#[derive(Serialize, Deserialize, ToSchema)]
struct TonHint {
    #[serde(skip_serializing_if = "Option::is_none")]
    lt: Option<Text>,
}

/// What families need to find a fill or refund.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = FillHints)]
struct PlainFillHints {
    #[serde(rename = "hyperliquid-vm", skip_serializing_if = "Option::is_none")]
    hyperliquid: Option<HyperliquidHint>,
    #[serde(rename = "ton-vm", skip_serializing_if = "Option::is_none")]
    ton: Option<TonFillHint>,
}

#[derive(Serialize, Deserialize, ToSchema)]
struct HyperliquidHint {
    user: Text,
    timestamp: Number,
}

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TonFillHint {
    solver_address: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    lt: Option<Text>,
}

/// What families need to find the deposit of one input.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = InputHint)]
struct PlainInputHint {
    input_index: Number,
    #[serde(rename = "ton-vm", skip_serializing_if = "Option::is_none")]
    ton: Option<TonHint>,
}

/// The echo, or how the body is refused.
fn echo<T: DeserializeOwned + Serialize>(body: &Value) -> Result<String, String> {
    match typed::<T>(body.clone()) {
        Ok(read) => Ok(serde_json::to_string(&read).unwrap()),
        Err(error) => Err(format!("{error:?}")),
    }
}

#[test]
fn bodies_are_read_echoed_and_refused_as_with_a_field_per_family() {
    let hints = [
        json!({}),
        json!(null),
        json!(5),
        json!("x"),
        json!({"ton-vm": null, "hyperliquid-vm": null}),
        json!({"ton-vm": {}}),
        json!({"ton-vm": {"lt": null}}),
        json!({"ton-vm": {"lt": 7}}),
        json!({"ton-vm": {"lt": "7", "solverAddress": "EQ", "other": [1]}}),
        json!({"ton-vm": {"lt": {}}}),
        json!({"ton-vm": {"solverAddress": null}}),
        json!({"ton-vm": {"solverAddress": ["EQ"]}}),
        json!({"ton-vm": {"solverAddress": []}}),
        json!({"ton-vm": "EQ"}),
        json!({"ton-vm": true}),
        json!({"hyperliquid-vm": {}}),
        json!({"hyperliquid-vm": {"user": "0xA"}}),
        json!({"hyperliquid-vm": {"timestamp": 1}}),
        json!({"hyperliquid-vm": {"user": "0xA", "timestamp": null}}),
        json!({"hyperliquid-vm": {"user": "0xA", "timestamp": -1}}),
        json!({"hyperliquid-vm": {"user": {}, "timestamp": -1}}),
        json!({"hyperliquid-vm": {"user": "0xA", "timestamp": "0x10"}, "ton-vm": {"lt": "1"}}),
        json!({"hyperliquid-vm": {"user": 1, "timestamp": 9}, "ton-vm": {"solverAddress": "EQ"}}),
        json!({"ethereum-vm": {"lt": 5}, "other": 1}),
    ];
    let (mut read, mut refused) = (0, 0);
    for hint in &hints {
        let mut indexed = hint.clone();
        if let Some(hint) = indexed.as_object_mut() {
            hint.insert("inputIndex".into(), json!("0x1"));
        }
        for body in [
            json!({"deposit": hint}),
            json!({"fill": hint}),
            json!({"inputs": [hint]}),
            json!({"inputs": [indexed, hint]}),
            json!({"inputs": [indexed]}),
        ] {
            let got = echo::<Body<DepositHints, FillHints, InputHint>>(&body);
            let plain = echo::<Body<PlainDepositHints, PlainFillHints, PlainInputHint>>(&body);
            assert_eq!(got, plain, "{body}");
            read += usize::from(got.is_ok());
            refused += usize::from(got.is_err());
        }
    }
    assert!(read > 40 && refused > 40, "{read} {refused}");
}

#[test]
fn claims_have_the_hints_of_each_family() {
    let body = json!({"inputIndex": 1, "ton-vm": {"lt": 7}, "solana-vm": {}});
    let hint: InputHint = typed(body).unwrap();
    assert_eq!(hint.value().unwrap(), json!({"ton-vm": {"lt": "7"}}));
}

#[test]
fn descriptions_are_those_of_a_field_per_family() {
    fn described<T: ToSchema>() -> Value {
        let mut schemas = Vec::new();
        T::schemas(&mut schemas);
        let schemas: BTreeMap<_, _> = schemas.into_iter().collect();
        json!({"name": T::name(), "schema": T::schema(), "schemas": schemas})
    }
    assert_eq!(
        described::<DepositHints>(),
        described::<PlainDepositHints>()
    );
    assert_eq!(described::<FillHints>(), described::<PlainFillHints>());
    assert_eq!(described::<InputHint>(), described::<PlainInputHint>());
}
