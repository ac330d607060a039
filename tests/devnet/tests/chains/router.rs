//! The router is everybody's tool, and the proxy takes from its caller only: nobody gets at what a
//! solver has allowed.

use std::sync::Arc;

use alloy::{
    primitives::{Address, B256, U256},
    sol_types::SolCall,
};
use devnet::{
    account::Account,
    artifact::Artifacts,
    contracts::{ApprovalProxy, FillRouter, Token},
    node::Payload,
    world::DevChain,
};

const ORDER: B256 = B256::repeat_byte(0x77);
const RECIPIENT: Address = Address::repeat_byte(0x99);

struct Fixture {
    site: DevChain,
    solver: Account,
    thief: Account,
}

async fn fixture() -> Fixture {
    let artifacts = tokio::task::spawn_blocking(Artifacts::load).await.unwrap();
    let [solver, thief] = ["solver", "thief"].map(|name| Account::named(name).unwrap());
    let site = DevChain::start("origin", 31_001, &solver, Arc::new(artifacts.unwrap()))
        .await
        .unwrap();
    site.endow(solver.address()).await.unwrap();
    site.node
        .set_balance(thief.address(), U256::from(10).pow(U256::from(18)))
        .await
        .unwrap();
    site.approve(&solver, site.token, site.proxy, U256::MAX)
        .await
        .unwrap();
    Fixture {
        site,
        solver,
        thief,
    }
}

fn call(to: Address, call: &impl SolCall) -> FillRouter::Call {
    FillRouter::Call {
        to,
        data: call.abi_encode().into(),
        value: U256::ZERO,
    }
}

impl Fixture {
    async fn filled(&self, who: &Account, to: Address, calls: Vec<FillRouter::Call>) -> bool {
        let payment = ApprovalProxy::Payment {
            token: self.site.token,
            to,
            amount: U256::from(7),
        };
        let fill = ApprovalProxy::fillCall {
            payments: vec![payment],
            calls,
        };
        let fill = Payload::call(self.site.proxy, &fill).suffix(ORDER);
        let receipt = self.site.node.send(who.address(), fill).await;
        receipt.unwrap().status()
    }

    async fn tokens(&self, of: Address) -> U256 {
        let balance = self.site.token_balance(self.site.token, of);
        balance.await.unwrap()
    }
}

#[tokio::test]
async fn solver_pays_and_what_calls_leave_is_swept() {
    let fixture = fixture().await;
    let (router, token) = (fixture.site.router, fixture.site.token);
    let spend = Token::transferCall {
        to: Address::repeat_byte(0x55),
        amount: U256::from(4),
    };
    let sweep = |currency| FillRouter::sweepCall {
        currency,
        to: RECIPIENT,
    };
    let calls = vec![
        call(token, &spend),
        call(router, &sweep(token)),
        call(router, &sweep(Address::ZERO)),
        // Nothing is left: a recipient that takes none is not asked.
        call(
            router,
            &FillRouter::sweepCall {
                currency: Address::ZERO,
                to: token,
            },
        ),
    ];
    assert!(fixture.filled(&fixture.solver, router, calls).await);
    assert_eq!(fixture.tokens(RECIPIENT).await, U256::from(3));
    assert!(fixture.tokens(router).await.is_zero());
}

#[tokio::test]
async fn nobody_but_the_solver_moves_its_tokens() {
    let fixture = fixture().await;
    let (site, thief) = (&fixture.site, &fixture.thief);
    let before = fixture.tokens(fixture.solver.address()).await;
    let steal = Token::transferFromCall {
        from: fixture.solver.address(),
        to: thief.address(),
        amount: U256::from(7),
    };
    // Through the proxy in the thief's own name, and through the router.
    assert!(!fixture.filled(thief, thief.address(), Vec::new()).await);
    let routed = site.fill(thief, vec![call(site.token, &steal)], ORDER);
    assert!(!routed.await.unwrap().status());
    // A call of an order that the solver itself fills.
    let payment = ApprovalProxy::Payment {
        token: site.token,
        to: thief.address(),
        amount: U256::from(7),
    };
    let again = ApprovalProxy::fillCall {
        payments: vec![payment],
        calls: Vec::new(),
    };
    for theft in [call(site.token, &steal), call(site.proxy, &again)] {
        assert!(
            !fixture
                .filled(&fixture.solver, RECIPIENT, vec![theft])
                .await
        );
    }
    assert_eq!(fixture.tokens(fixture.solver.address()).await, before);
    assert!(fixture.tokens(thief.address()).await.is_zero());
}

/// A wei that somebody sends to the router is nobody's in a fill, and anybody's outside of one.
#[tokio::test]
async fn what_was_in_the_router_before_fails_no_fill() {
    let fixture = fixture().await;
    let (site, router, token) = (&fixture.site, fixture.site.router, fixture.site.token);
    let wei = Payload::pay(router, U256::ONE);
    let sent = site.node.send(fixture.thief.address(), wei).await;
    assert!(sent.unwrap().status());
    let sweep = |to| {
        let currency = Address::ZERO;
        call(router, &FillRouter::sweepCall { currency, to })
    };
    // Who takes no native currency is not asked; nor is he by a fill within another's calls.
    let inner = FillRouter::fillCall {
        calls: vec![sweep(token)],
    };
    let calls = vec![call(router, &inner), sweep(token)];
    assert!(fixture.filled(&fixture.solver, RECIPIENT, calls).await);
    // What comes in the fill is the recipient's.
    let mut paid = call(router, &FillRouter::fillCall { calls: Vec::new() });
    paid.value = U256::from(5);
    let filled = site.fill(&fixture.solver, vec![paid, sweep(RECIPIENT)], ORDER);
    assert!(filled.await.unwrap().status());
    let balance = async |of| site.node.balance(of).await.unwrap();
    assert_eq!(balance(RECIPIENT).await, U256::from(5));
    assert_eq!(balance(router).await, U256::ONE);
    let currency = Address::ZERO;
    let to = Address::repeat_byte(0x44);
    let anybody = Payload::call(router, &FillRouter::sweepCall { currency, to });
    let swept = site.node.send(fixture.thief.address(), anybody).await;
    assert!(swept.unwrap().status());
    assert_eq!(balance(to).await, U256::ONE);
}
