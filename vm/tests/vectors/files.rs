//! Which runner answers for which file of the known answers. Shared by both runners, so that a
//! file that neither knows is noticed.

/// Pure wire format: `vm/tests/vectors.rs`.
pub const WIRE: &[&str] = &[
    "bitcoin_partial_signature.json",
    "bitcoin_psbt_withdrawal.json",
    "cartesian_product.json",
    "decode_action.json",
    "decode_address.json",
    "decode_transaction_id.json",
    "decode_withdrawal.json",
    "decode_xrp_destination.json",
    "decoded_withdrawal_info.json",
    "deposit_address_trigger_hash.json",
    "deterministic_id.json",
    "eip712_bad_input.json",
    "encode_action.json",
    "encode_address.json",
    "encode_transaction_id.json",
    "encode_withdrawal.json",
    "execution_message_id.json",
    "fill_idempotency_key.json",
    "generic_mapping_message_id.json",
    "hub_address.json",
    "hub_token_id.json",
    "kms_der_to_eth.json",
    "lighter_l1_message.json",
    "message_id_depository_deposit.json",
    "message_id_depository_withdrawal.json",
    "message_id_solver_fill.json",
    "message_id_solver_refund.json",
    "native_currency.json",
    "no_fill_or_refund_message.json",
    "nonce_mapping_message.json",
    "normalize_payload_params.json",
    "normalize_withdraw_request.json",
    "order_address.json",
    "order_call.json",
    "order_extra_data.json",
    "order_id.json",
    "order_id_published.json",
    "order_signature.json",
    "owner_digest.json",
    "owner_signature.json",
    "sign_allocator_withdraw_request.json",
    "sign_deposit_address_trigger.json",
    "sign_execute_and_withdraw.json",
    "sign_execution.json",
    "sign_generic_mapping.json",
    "sign_payload_params.json",
    "sign_withdraw_request.json",
    "submit_withdraw_request_hash.json",
    "ton_sign_data_hash.json",
    "withdraw_request_hash.json",
    "withdrawal_address.json",
];

/// The daemon's own answers: `tests/vectors.rs` of the root crate.
pub const DAEMON: &[&str] = &[
    "fill_refund_execution.json",
    "filter_signatures_by_domain.json",
    "finality.json",
    "no_fill_or_refund_attestation.json",
    "nonce_mapping_attestation.json",
    "rate_limiter.json",
    "redact_error_url.json",
];

/// Not known answers, but what some of them were computed with.
pub const SETTINGS: &[&str] = &["hub_config.json"];

/// Files whose refusals reach API clients, so that the text has to be the same.
pub const WORDED: &[&str] = &[
    "no_fill_or_refund_attestation.json",
    "nonce_mapping_attestation.json",
    "owner_signature.json",
];
