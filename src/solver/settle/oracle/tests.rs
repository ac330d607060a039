use super::*;

#[test]
fn refusals_are_final_or_not() {
    let body = |code: &str| json!({ "message": "m", "code": code }).to_string();
    let table = [
        (400, "ORDER_MALFORMED", true),
        (400, "TRANSACTION_NOT_FINALIZED", false),
        (400, "TRANSACTION_MISSING", false),
        (400, "CHAIN_NOT_AVAILABLE", false),
        (400, "DEPOSITORY_NOT_CONFIGURED", false),
        (400, "", false),
        (409, "", false),
        (409, "CONFLICTING_STATEMENT", true),
        (401, "UNAUTHORIZED", false),
        (429, "", false),
        (500, "", false),
        (503, "QUORUM_UNAVAILABLE", false),
    ];
    for (status, code, last) in table {
        let status = StatusCode::from_u16(status).unwrap();
        let refused = read(status, body(code).as_bytes()).unwrap_err();
        assert_eq!(
            matches!(refused, Refused::Final(_)),
            last,
            "{status} {code}"
        );
    }
    assert!(read(StatusCode::OK, b"{}").is_ok());
    assert!(matches!(read(StatusCode::OK, b"<"), Err(Refused::Now(_))));
    assert!(matches!(
        read(StatusCode::BAD_GATEWAY, b"<"),
        Err(Refused::Now(_))
    ));
}
