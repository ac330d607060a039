use serde_json::json;

use super::*;

fn of(trial: Value) -> Result<Result<u64, Revert>, ReadError> {
    judged(serde_json::from_value(trial).unwrap())
}

#[test]
fn work_is_in_thousands_of_compute_units() {
    for (units, work) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (1_400_000, 1_400)] {
        let trial = json!({"err": null, "logs": [], "unitsConsumed": units, "accounts": null});
        assert_eq!(of(trial), Ok(Ok(work)));
    }
    assert!(of(json!({"err": null})).is_err());
    let draft = crate::trade::Draft {
        from: super::super::body::address(&Pubkey::new_from_array([1; 32])),
        value: Default::default(),
        body: crate::trade::Body::Own(Bytes::new()),
    };
    let call = Trial {
        most: Some(7),
        ..Trial::free(&draft)
    };
    assert_eq!(units(&call), 7_000);
    let free = |most| units(&Trial { most, ..call });
    assert_eq!((free(None), free(Some(u64::MAX))), (MOST_UNITS, MOST_UNITS));
}

#[test]
fn failure_says_why_and_what_was_not_tried_is_none() {
    let error = json!({"InstructionError": [2, {"Custom": 1}]});
    let revert = of(json!({"err": error, "logs": ["a", "Program x failed"]}));
    let reason = revert.unwrap().unwrap_err().reason;
    assert!(reason.contains("InstructionError") && reason.ends_with("Program x failed"));
    let revert = of(json!({"err": "InsufficientFundsForFee", "logs": null}));
    assert_eq!(
        revert.unwrap().unwrap_err().reason,
        "InsufficientFundsForFee"
    );
    for error in NOT_TRIED {
        assert!(of(json!({"err": error})).is_err());
    }
}
