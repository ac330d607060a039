//! Balances, allowances and currencies, of tokens that differ from the standard too.

use alloy::{
    primitives::{Address as EvmAddress, B256, U256},
    sol_types::SolCall,
};
use devnet::{
    contracts::{Depository, Token},
    proxy::{Lie, on},
};
use hyper::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use vm::trade::Call;

use super::rig::{Rig, address};

const NATIVE: EvmAddress = EvmAddress::ZERO;

#[tokio::test]
async fn balances_and_allowances() {
    let rig = Rig::start().await;
    let (accounts, site) = (&rig.trade.accounts, &rig.site);
    let user = address(rig.user.address());
    let token = address(site.token);
    let (native, depository) = (address(NATIVE), address(site.depository));
    let held = accounts.balance(&user, &native).await.unwrap();
    let told = site.node.balance(rig.user.address()).await.unwrap();
    assert_eq!(held, told);
    let tokens = U256::from(1_000_000_000_000u64);
    assert_eq!(accounts.balance(&user, &token).await, Ok(tokens));

    let contracts = rig.contracts();
    let allowed = || contracts.allowance(&user, &depository, &token);
    assert_eq!(allowed().await, Ok(U256::ZERO));
    site.approve(&rig.user, site.token, site.depository, U256::from(9))
        .await
        .unwrap();
    assert_eq!(allowed().await, Ok(U256::from(9)));
    let endless = contracts.allowance(&user, &depository, &native).await;
    assert_eq!(endless, Ok(U256::MAX));
    // No number is no balance: neither of an account, nor of a contract that has no balances.
    assert!(accounts.balance(&user, &user).await.is_err());
    assert!(accounts.balance(&user, &depository).await.is_err());
    assert!(
        contracts
            .allowance(&user, &token, &depository)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn currencies_say_what_they_are() {
    let rig = Rig::start().await;
    let accounts = &rig.trade.accounts;
    // It has no name: its symbol serves.
    let token = accounts.currency(&address(rig.site.token)).await.unwrap();
    let token = token.unwrap();
    assert_eq!(
        (token.symbol.as_str(), token.name.as_str()),
        ("Token", "Token")
    );
    assert_eq!(token.decimals, 6);
    for nothing in [rig.site.depository, rig.user.address(), NATIVE] {
        assert_eq!(accounts.currency(&address(nothing)).await, Ok(None));
    }
    rig.proxy.lie(on("eth_call", |_| {
        Lie::Error(-32603, "internal error".into())
    }));
    assert!(accounts.currency(&address(rig.site.token)).await.is_err());
}

#[tokio::test]
async fn contracts_are_told_from_accounts() {
    let rig = Rig::start().await;
    let contracts = rig.contracts();
    assert_eq!(
        contracts.is_contract(&address(rig.site.token)).await,
        Ok(true)
    );
    let user = address(rig.user.address());
    assert_eq!(contracts.is_contract(&user).await, Ok(false));
}

#[tokio::test]
async fn calls_answer_or_say_why_not() {
    let rig = Rig::start().await;
    let call = |to, data: Vec<u8>| Call {
        from: address(rig.user.address()),
        to: address(to),
        data: data.into(),
        value: U256::ZERO,
    };
    let owner = rig.user.address();
    let balance = call(rig.site.token, Token::balanceOfCall { owner }.abi_encode());
    let contracts = rig.contracts();
    let answer = contracts.call(&balance).await.unwrap().unwrap();
    let held = Token::balanceOfCall::abi_decode_returns(&answer).unwrap();
    assert_eq!(held, U256::from(1_000_000_000_000u64));

    let too_much = Token::transferCall {
        to: owner,
        amount: U256::MAX,
    };
    let overdrawn = call(rig.site.token, too_much.abi_encode());
    let revert = contracts.call(&overdrawn).await.unwrap();
    assert_eq!(revert.unwrap_err().reason, "Panic(0x11)");

    let refusing = rig.site.deploy_token("FalseToken").await.unwrap();
    let refused = Depository::depositErc20_0Call {
        depositor: owner,
        token: refusing,
        amount: U256::ZERO,
        id: B256::ZERO,
    };
    let refused = call(rig.site.depository, refused.abi_encode());
    let revert = contracts.call(&refused).await.unwrap();
    let revert = revert.unwrap_err();
    let selector = alloy::primitives::keccak256("TransferFailed()");
    assert_eq!(revert.data.as_ref(), &selector[..4]);
    assert_eq!(revert.reason, alloy::hex::encode_prefixed(&selector[..4]));
}

#[tokio::test]
async fn a_failed_answer_is_believed_when_it_is_a_refusal() {
    let rig = Rig::start().await;
    let call = Call {
        from: address(rig.user.address()),
        to: address(rig.site.token),
        data: vm::Bytes::new(),
        value: U256::ZERO,
    };
    let contracts = rig.contracts();
    let answer = async |status, body: Value| {
        let lie = Lie::Answer(status, HeaderMap::new(), body.to_string().into());
        rig.proxy.lie(on("eth_call", move |_| lie.clone()));
        contracts.call(&call).await
    };
    // The provider has said which chain it is: the next exchange is that one call.
    rig.trade.scanner.head().await.unwrap();
    let id = json!(1);
    let error = json!({"code": 3, "message": "execution reverted: no"});
    let refusal = json!({"jsonrpc": "2.0", "id": id, "error": error});
    let told = answer(StatusCode::BAD_REQUEST, refusal).await;
    assert_eq!(told.unwrap().unwrap_err().reason, "no");
    rig.trade.scanner.head().await.unwrap();
    let result = json!({"jsonrpc": "2.0", "id": id, "result": "0x"});
    let told = answer(StatusCode::BAD_REQUEST, result).await;
    assert!(told.is_err());
}
