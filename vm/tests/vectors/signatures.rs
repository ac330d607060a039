//! Typed-data messages, mappings, owner digests and signatures, KMS signatures.

#[path = "signatures/ids.rs"]
mod ids;
#[path = "signatures/owners.rs"]
mod owners;
#[path = "signatures/signed.rs"]
mod signed;

use crate::harness::Row;

/// File and answer, one row each.
pub const ROWS: &[Row] = &[
    ("eip712_bad_input.json", signed::bad_input),
    ("execution_message_id.json", ids::execution),
    ("generic_mapping_message_id.json", ids::generic_mapping),
    ("kms_der_to_eth.json", signed::kms),
    ("message_id_depository_deposit.json", ids::deposit),
    ("message_id_depository_withdrawal.json", ids::withdrawal),
    ("message_id_solver_fill.json", ids::fill),
    ("message_id_solver_refund.json", ids::refund),
    ("no_fill_or_refund_message.json", ids::no_fill_or_refund),
    ("nonce_mapping_message.json", ids::nonce_mapping),
    ("order_signature.json", owners::order_signature),
    ("owner_digest.json", owners::digest),
    ("owner_signature.json", owners::signature),
    (
        "sign_allocator_withdraw_request.json",
        signed::authorization,
    ),
    ("sign_deposit_address_trigger.json", signed::trigger),
    (
        "sign_execute_and_withdraw.json",
        signed::execute_and_withdraw,
    ),
    ("sign_execution.json", signed::execution),
    ("sign_generic_mapping.json", signed::generic_mapping),
    ("sign_payload_params.json", signed::payload_params),
    ("sign_withdraw_request.json", signed::inclusion),
    ("ton_sign_data_hash.json", owners::ton_sign_data),
];
