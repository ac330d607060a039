//! What the listing reads of the query, edition by edition, as the description has it. It is read by
//! [`filter`](crate::request::filter).

use utoipa::IntoParams;

/// What `/requests/v3` reads of the query; all of it must hold. Anything else is refused.
#[derive(IntoParams)]
#[into_params(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described; `Asked` reads the query")]
pub struct AskedV3 {
    /// Requests in the answer, 1 to 50; 20 by default. There may be fewer although there is more to
    /// come: go on until there is no `continuation`.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<u32>,
    /// The one of the answer before, with all other parameters unchanged.
    continuation: Option<String>,
    /// Tells how many requests there are, unless more than 10,000 would have to be looked at.
    include_total: Option<bool>,
    /// Request id, account, deposit address or any transaction hash.
    #[param(min_length = 1)]
    term: Option<String>,
    /// Of the request.
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    id: Option<String>,
    /// Of its order, as deposits and fills name it.
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    order_id: Option<String>,
    /// Of a transaction that deposited for it.
    #[param(min_length = 1)]
    deposit_tx_hash: Option<String>,
    /// Of a transaction that filled it.
    #[param(min_length = 1)]
    fill_tx_hash: Option<String>,
    /// Of a transaction that gave a deposit back.
    #[param(min_length = 1)]
    refund_tx_hash: Option<String>,
    /// The chain of the deposit.
    origin_chain_id: Option<u64>,
    /// The chain of the fill.
    destination_chain_id: Option<u64>,
    /// Either side's; not looked at beside one of the others.
    chain_id: Option<u64>,
    /// A comma list of private chains, whose requests are left out otherwise.
    #[param(min_length = 1)]
    private_chains_to_include: Option<String>,
    /// The sender, or who paid into the deposit address.
    #[param(min_length = 1)]
    user: Option<String>,
    /// The address that the deposit goes to.
    #[param(min_length = 1)]
    deposit_address: Option<String>,
    /// Who is paid.
    #[param(min_length = 1)]
    recipient: Option<String>,
    /// `success`, `failure`, `refund`, `pending` (which is also `submitted`), `depositing` or `waiting`.
    /// Quotes that nobody acted on are left out unless `waiting` or an id asks for them; they are in no
    /// order of amounts. `waiting` lists those that were quoted with the caller's own key, or those of the `user`
    /// that is named as well.
    #[param(pattern = "^(success|failure|refund|pending|depositing|waiting)$")]
    status: Option<String>,
    /// As in `data.failReason`, for example `TTL_EXPIRED`.
    #[param(min_length = 1)]
    fail_reason: Option<String>,
    /// As in `data.refundFailReason`.
    #[param(min_length = 1)]
    refund_fail_reason: Option<String>,
    /// A comma list of the caller's own key, or better its label: addresses are logged.
    #[param(min_length = 1)]
    api_key: Option<String>,
    /// `Bridge` (one asset on two chains), `Crosschain Swap`, `Same-chain Swap`, `Send`, `Wrap`, `Unwrap` or `Call`.
    #[param(min_length = 1)]
    request_type: Option<String>,
    /// The chain of what goes in.
    currency_in_chain_id: Option<u64>,
    /// The chain of what comes out.
    currency_out_chain_id: Option<u64>,
    /// What goes in.
    #[param(min_length = 1)]
    currency_in_address: Option<String>,
    /// What comes out.
    #[param(min_length = 1)]
    currency_out_address: Option<String>,
    /// The symbol of what goes in, in any case.
    #[param(min_length = 1)]
    currency_in_symbol: Option<String>,
    /// The symbol of what comes out, in any case.
    #[param(min_length = 1)]
    currency_out_symbol: Option<String>,
    /// Unix seconds of the creation, or of the last change when that is sorted by.
    start_timestamp: Option<u64>,
    /// As `startTimestamp`.
    end_timestamp: Option<u64>,
    /// Of any of its transactions; with `originChainId` of those there.
    start_block: Option<u64>,
    /// As `startBlock`.
    end_block: Option<u64>,
    /// Dollars, of what was to be deposited.
    #[param(pattern = "^[0-9]{1,12}(\\.[0-9]{1,6})?$")]
    amount_usd_min: Option<String>,
    /// As `amountUsdMin`.
    #[param(pattern = "^[0-9]{1,12}(\\.[0-9]{1,6})?$")]
    amount_usd_max: Option<String>,
    /// Dollars, of the integrators' fees as they were quoted.
    #[param(pattern = "^[0-9]{1,12}(\\.[0-9]{1,6})?$")]
    app_fees_amount_usd_min: Option<String>,
    /// As `appFeesAmountUsdMin`.
    #[param(pattern = "^[0-9]{1,12}(\\.[0-9]{1,6})?$")]
    app_fees_amount_usd_max: Option<String>,
    /// Seconds from the deposit's block to the fill's.
    fill_time_min: Option<u64>,
    /// As `fillTimeMin`.
    fill_time_max: Option<u64>,
    /// A comma list, of which one must be there: `gasless_execution`, `gasless_swap`, `fast_fill`,
    /// `gas_top_up`, `fixed_rate`, `app_fees`, `deposit_address`.
    #[param(min_length = 1)]
    features: Option<String>,
    /// Shows `data.referrer` and `data.apiKeyName` of the caller's own requests.
    include_authenticated_data: Option<bool>,
    /// With `id`: regenerated requests, too.
    include_child_requests: Option<bool>,
    /// A JSON array of groups, of which one must hold: objects of the fields above (not of ranges and
    /// `features`), all of which must hold; no status `waiting`. `not:` before a key turns it round; a value may be
    /// an array, of which one must hold, or null, for nothing (never of `apiKey`). At most 16 groups of 32 fields of 64 values, and 256 values in all.
    #[param(min_length = 2, max_length = 8192)]
    filters: Option<String>,
    /// `createdAt`, `updatedAt` or `amountUsd`.
    #[param(pattern = "^(createdAt|updatedAt|amountUsd)$")]
    sort_by: Option<String>,
    /// `asc` or `desc`; by default `desc` for times and `asc` for amounts.
    #[param(pattern = "^(asc|desc)$")]
    sort_direction: Option<String>,
}

/// What `/requests/v2` reads of the query; as in version 3 where nothing is said.
#[derive(IntoParams)]
#[into_params(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described; `Asked` reads the query")]
pub struct AskedV2 {
    /// Requests in the answer, 1 to 50; 20 by default. There may be fewer although there is more to come.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<u32>,
    /// The one of the answer before, with all other parameters unchanged.
    continuation: Option<String>,
    /// The sender or the recipient.
    #[param(min_length = 1)]
    user: Option<String>,
    /// Any transaction's.
    #[param(min_length = 1)]
    hash: Option<String>,
    /// The chain of the deposit.
    origin_chain_id: Option<u64>,
    /// The chain of the fill.
    destination_chain_id: Option<u64>,
    /// A comma list of private chains, whose requests are left out otherwise.
    #[param(min_length = 1)]
    private_chains_to_include: Option<String>,
    /// Of the request.
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    id: Option<String>,
    /// Of its order, as deposits and fills name it.
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    order_id: Option<String>,
    /// Shows `orderData`.
    include_order_data: Option<bool>,
    /// Unix seconds of the creation, or of the last change when that is sorted by.
    start_timestamp: Option<u64>,
    /// As `startTimestamp`.
    end_timestamp: Option<u64>,
    /// Of any of its transactions; with `originChainId` of those there.
    start_block: Option<u64>,
    /// As `startBlock`.
    end_block: Option<u64>,
    /// Either side's; not looked at beside one of the others.
    chain_id: Option<u64>,
    /// Of the caller's own requests only: needs the key that they were quoted with.
    #[param(min_length = 1)]
    referrer: Option<String>,
    /// The address that the deposit goes to.
    #[param(min_length = 1)]
    deposit_address: Option<String>,
    /// With `id` or `depositAddress`: regenerated requests, too.
    include_child_requests: Option<bool>,
    /// Shows what only the owner of the request's key may see.
    include_authenticated_data: Option<bool>,
    /// As in version 3: quotes that nobody acted on are left out unless `waiting` or an id asks for them. `waiting`
    /// is refused without a key.
    #[param(pattern = "^(success|failure|refund|pending|depositing|waiting)$")]
    status: Option<String>,
    /// A comma list of the caller's own key, or better its label: addresses are logged.
    #[param(min_length = 1)]
    api_key: Option<String>,
    /// `createdAt` or `updatedAt`.
    #[param(pattern = "^(createdAt|updatedAt)$")]
    sort_by: Option<String>,
    /// `asc` or `desc`; `desc` by default.
    #[param(pattern = "^(asc|desc)$")]
    sort_direction: Option<String>,
}

/// What `/requests` reads of the query; as in version 2.
#[derive(IntoParams)]
#[into_params(rename_all = "camelCase")]
#[expect(dead_code, reason = "only described; `Asked` reads the query")]
pub struct AskedV1 {
    /// Requests in the answer, 1 to 50; 20 by default. There may be fewer although there is more to come.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<u32>,
    /// The one of the answer before, with all other parameters unchanged.
    continuation: Option<String>,
    /// The sender or the recipient.
    #[param(min_length = 1)]
    user: Option<String>,
    /// Any transaction's.
    #[param(min_length = 1)]
    hash: Option<String>,
    /// The chain of the deposit.
    origin_chain_id: Option<u64>,
    /// The chain of the fill.
    destination_chain_id: Option<u64>,
    /// A comma list of private chains, whose requests are left out otherwise.
    #[param(min_length = 1)]
    private_chains_to_include: Option<String>,
    /// Of the request.
    #[param(pattern = "^0x[0-9a-fA-F]{64}$")]
    id: Option<String>,
    /// Unix seconds of the creation.
    start_timestamp: Option<u64>,
    /// As `startTimestamp`.
    end_timestamp: Option<u64>,
}
