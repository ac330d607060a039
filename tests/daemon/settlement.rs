//! What three oracles attest about real chains, settled with two of their signatures on a real
//! contract; every balance is read back from a chain.

use crate::support::{
    chain::{
        DEPOSITS, Deal, FEE, FILLS, INITIATED, INITIATION, RECIPIENT, REFUNDS, WITHDRAWALS,
        finalize, finalize_hub, native, oracle, token,
    },
    daemon::{Answer, Daemon, Setup},
};
use alloy::primitives::{Address, Bytes, U256};
use devnet::{
    claim,
    contracts::Hub,
    proxy::{Lie, LyingProxy, rules},
    world::{Deposit, Devnet, Execution, Refusal, Withdrawal},
};
use serde_json::{Value, json};

/// Three chains and three oracles: the first is asked, the others are its peers.
struct Network {
    world: Devnet,
    asked: Daemon,
    peers: Vec<Daemon>,
}

impl Network {
    async fn start() -> Self {
        let world = Devnet::start().await.unwrap();
        let honest = oracle(&world, 1);
        Self::with(world, honest).await
    }

    /// With another first peer; the second one is honest.
    async fn with(world: Devnet, first: Setup) -> Self {
        let second = oracle(&world, 2);
        let mut asked = oracle(&world, 0).key("caller");
        let mut peers = Vec::new();
        for setup in [first, second] {
            let peer = setup.clone().key("peer").start().await;
            asked = asked.peer(&peer, "peer");
            peers.push(peer);
        }
        Self {
            asked: asked.start().await,
            world,
            peers,
        }
    }

    async fn ask(&self, route: &str, body: Value) -> Answer {
        self.asked
            .post(route, "caller", &claim::with_peers(body))
            .await
    }

    /// Asks and expects the signatures of these oracles.
    async fn signed_by(&self, oracles: &[usize], route: &str, body: Value) -> Value {
        let answer = self.ask(route, body).await;
        assert_eq!(answer.status, 200, "{route}: {}", answer.body);
        let expected: Vec<String> = oracles
            .iter()
            .map(|number| format!("{:#x}", self.world.oracles[*number].address()))
            .collect();
        assert_eq!(answer.signed_by(), expected);
        answer.json()
    }

    /// Everybody signs, and any two of them are enough for the contract. What they settle is final
    /// when it returns.
    async fn settle(&self, route: &str, body: Value) -> Execution {
        let answer = self.signed_by(&[0, 1, 2], route, body).await;
        let mut execution = claim::execution(&answer).unwrap();
        execution.signatures.remove(1);
        self.world.hub.submit(execution.clone()).await.unwrap();
        finalize_hub(&self.world).await;
        execution
    }

    async fn refusal(&self, execution: Execution) -> &'static str {
        let error = self.world.hub.submit(execution).await.unwrap_err();
        Refusal::of(&error).unwrap().name()
    }

    /// What `account` holds at the hub of a currency of the origin.
    async fn held(&self, account: Address, currency: Address) -> u64 {
        let id = self.world.origin.token_id(currency).unwrap();
        let balance = self.world.hub.balance(account, id).await.unwrap();
        balance.try_into().unwrap()
    }

    fn solver(&self) -> Address {
        let solver = self.world.solver.address();
        self.world.destination.alias(solver).unwrap()
    }

    fn app(&self) -> Address {
        self.world.origin.alias(self.world.user.address()).unwrap()
    }

    /// What the hub owes is what the depository holds, and it is this much.
    async fn backed_by(&self, currency: Address, amount: u64) {
        let Devnet { origin, hub, .. } = &self.world;
        let id = origin.token_id(currency).unwrap();
        let supply = Hub::totalSupplyCall { id };
        let owed = hub.node.view(hub.hub, &supply).await.unwrap();
        let held = match currency.is_zero() {
            true => origin.node.balance(origin.depository).await.unwrap(),
            false => origin
                .token_balance(currency, origin.depository)
                .await
                .unwrap(),
        };
        assert_eq!((owed, held), (held, U256::from(amount)));
    }

    /// The solver has earned `1_000 - FEE` of the origin's currency at the hub.
    async fn earn(&self) {
        let deal = Deal::new(&self.world, native(1_000), native(900), 1).await;
        let deposit = deal.deposit().await;
        let body = claim::deposit(&self.world.origin, deposit.transaction);
        self.settle(DEPOSITS, body).await;
        let body = claim::fill(&deal.order, &[deposit], deal.fill().await);
        self.settle(FILLS, body).await;
        assert_eq!(self.held(self.solver(), Address::ZERO).await, 1_000 - FEE);
    }

    async fn withdrawal(&self, amount: u64, expiration: u64) -> Withdrawal<'_> {
        Withdrawal {
            site: &self.world.origin,
            money: native(amount),
            owner: &self.world.solver,
            owner_chain: self.world.destination.id,
            recipient: Address::repeat_byte(0x5e),
            nonce: U256::from(1),
            expiration: U256::from(expiration),
        }
    }

    /// The allocator's record of a withdrawal is final when it returns.
    async fn allocate(&self, withdrawal: &Withdrawal<'_>) {
        self.world.allocate(withdrawal).await.unwrap();
        finalize_hub(&self.world).await;
    }

    /// Nothing is attested about `body`, which the depository could be asked to do.
    async fn pending(&self, body: Value) {
        let answer = self.ask(WITHDRAWALS, body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.json()["message"]["result"]["status"], 0);
        assert!(answer.json()["execution"].is_null(), "{}", answer.body);
    }

    async fn now(&self) -> u64 {
        self.world.origin.node.tip().await.unwrap().time
    }

    async fn stop(self) {
        self.asked.stop().await;
        for peer in self.peers {
            peer.stop().await;
        }
    }
}

fn flipped(bytes: &Bytes, at: usize) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn native_deposit_and_fill_move_the_balance_to_the_solver() {
    let network = Network::start().await;
    let world = &network.world;
    let deal = Deal::new(world, native(1_000), native(900), 1).await;
    let deposit = deal.deposit().await;
    let body = claim::deposit(&world.origin, deposit.transaction);
    let execution = network.settle(DEPOSITS, body.clone()).await;
    assert_eq!(network.held(deposit.account, Address::ZERO).await, 1_000);
    assert_eq!(network.refusal(execution).await, "AlreadyExecuted");
    // The same question has the same answer, and acts once.
    let again = network.signed_by(&[0, 1, 2], DEPOSITS, body).await;
    let again = claim::execution(&again).unwrap();
    assert_eq!(network.refusal(again).await, "AlreadyExecuted");

    let paid = deal.fill().await;
    let body = claim::fill(&deal.order, std::slice::from_ref(&deposit), paid);
    network.settle(FILLS, body).await;
    assert_eq!(network.held(deposit.account, Address::ZERO).await, 0);
    let solver = network.held(network.solver(), Address::ZERO).await;
    assert_eq!(solver, 1_000 - FEE);
    assert_eq!(network.held(network.app(), Address::ZERO).await, FEE);
    let received = world.destination.node.balance(RECIPIENT).await.unwrap();
    assert_eq!(received, U256::from(900));
    network.backed_by(Address::ZERO, 1_000).await;
    network.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contract_rejects_what_two_oracles_did_not_sign() {
    let network = Network::start().await;
    let world = &network.world;
    let deal = Deal::new(world, native(1_000), native(900), 1).await;
    let deposit = deal.deposit().await;
    let body = claim::deposit(&world.origin, deposit.transaction);
    let answer = network.signed_by(&[0, 1, 2], DEPOSITS, body.clone()).await;
    let good = claim::execution(&answer).unwrap();
    let with = |signatures: &[&Bytes]| Execution {
        signatures: signatures.iter().copied().cloned().collect(),
        ..good.clone()
    };
    let [first, second, _] = &good.signatures[..] else {
        panic!("{answer}");
    };
    assert_eq!(network.refusal(with(&[first])).await, "BelowThreshold");
    let twice = with(&[first, first]);
    assert_eq!(network.refusal(twice).await, "DuplicateSigner");
    for at in 0..65 {
        let bad = with(&[first, &flipped(second, at)]);
        world.hub.submit(bad).await.unwrap_err();
    }
    let mut other = good.clone();
    other.actions[0] = flipped(&other.actions[0], 127);
    assert_eq!(network.refusal(other).await, "UnknownSigner");
    let mut other = good.clone();
    other.idempotency_key.0[0] ^= 1;
    assert_eq!(network.refusal(other).await, "UnknownSigner");
    for (field, value) in [
        ("oracleVersion", json!("1")),
        ("evmChainId", json!("1")),
        ("oracleAddress", json!(Address::repeat_byte(1).to_string())),
    ] {
        let foreign = elsewhere(world, field, &value, &body).await;
        assert_eq!(foreign.actions, good.actions, "{field}");
        assert_eq!(network.refusal(foreign).await, "UnknownSigner", "{field}");
    }
    assert_eq!(network.held(deposit.account, Address::ZERO).await, 0);
    world.hub.submit(good).await.unwrap();
    assert_eq!(network.held(deposit.account, Address::ZERO).await, 1_000);
    network.stop().await;
}

/// What two of the oracles attest when their hub file names another domain.
async fn elsewhere(world: &Devnet, field: &str, value: &Value, body: &Value) -> Execution {
    let mut files = world.files();
    files.hub[field] = value.clone();
    let mut signatures = Vec::new();
    for number in [0, 1] {
        let daemon = oracle(world, number).chains(&files).start().await;
        let answer = daemon.attest(DEPOSITS, body).await;
        assert_eq!(answer.status, 200, "{field}: {}", answer.body);
        signatures.push(claim::execution(&answer.json()).unwrap());
        daemon.stop().await;
    }
    let second = signatures.pop().unwrap();
    let mut first = signatures.pop().unwrap();
    first.signatures.extend(second.signatures);
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn token_deposits_are_refunded_however_they_were_made() {
    let network = Network::start().await;
    let world = &network.world;
    let usd = world.origin.token;
    for (bare, amount) in [(false, 500), (true, 300)] {
        let deal = Deal::new(world, token(usd, amount), native(900), amount).await;
        let deposit = match bare {
            true => deal.transfer().await,
            false => deal.deposit().await,
        };
        let body = claim::deposit(&world.origin, deposit.transaction);
        network.settle(DEPOSITS, body).await;
        assert_eq!(network.held(deposit.account, usd).await, amount);
        let before = network.held(network.solver(), usd).await;
        let user = world.user.address();
        let poor = world.origin.token_balance(usd, user).await.unwrap();
        let back = deal.refund().await;
        let body = claim::refund(&deal.order, std::slice::from_ref(&deposit), &[back]);
        network.settle(REFUNDS, body).await;
        assert_eq!(network.held(deposit.account, usd).await, 0);
        let earned = network.held(network.solver(), usd).await - before;
        assert_eq!(earned, amount, "a refund owes no fee");
        let rich = world.origin.token_balance(usd, user).await.unwrap();
        assert_eq!(rich - poor, U256::from(amount));
    }
    network.backed_by(usd, 800).await;
    network.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_is_set_apart_paid_and_burned() {
    let network = Network::start().await;
    network.earn().await;
    let world = &network.world;
    let hour = network.now().await + 3_600;
    let too_much = network.withdrawal(1_000, hour).await;
    let answer = network.ask(INITIATION, too_much.initiation().unwrap());
    assert_eq!(answer.await.code(), "BALANCE_INSUFFICIENT");

    let withdrawal = network.withdrawal(600, hour).await;
    let mut stolen = withdrawal.initiation().unwrap();
    stolen["signature"] = json!(world.user.sign_message(b"mine").unwrap());
    let answer = network.ask(INITIATION, stolen).await;
    assert_eq!(answer.code(), "OWNER_SIGNATURE_INVALID");
    let account = withdrawal.account().unwrap();
    let early = network.ask(INITIATED, withdrawal.initiated()).await;
    assert_eq!(early.code(), "WITHDRAWAL_ADDRESS_BALANCE_INSUFFICIENT");
    network
        .settle(INITIATION, withdrawal.initiation().unwrap())
        .await;
    assert_eq!(network.held(account, Address::ZERO).await, 600);
    assert_eq!(network.held(network.solver(), Address::ZERO).await, 390);
    let answer = network.ask(INITIATED, withdrawal.initiated()).await;
    let proof = &answer.json()["message"]["result"]["proofOfWithdrawalAddressBalance"];
    assert!(proof.is_string(), "{}", answer.body);

    network.pending(withdrawal.status(None)).await;
    let transaction = world.execute(&withdrawal, &world.solver).await.unwrap();
    finalize(world, &world.origin).await;
    let body = withdrawal.status(Some(transaction));
    // The depository has paid, but for whom only the allocator knows, ...
    network.pending(body.clone()).await;
    world.allocate(&withdrawal).await.unwrap();
    // ... and what it says has to be final.
    network.pending(body.clone()).await;
    finalize_hub(world).await;
    let execution = network.settle(WITHDRAWALS, body).await;
    assert_eq!(network.held(account, Address::ZERO).await, 0);
    assert_eq!(network.refusal(execution).await, "AlreadyExecuted");
    let received = world.origin.node.balance(withdrawal.recipient).await;
    assert_eq!(received.unwrap(), U256::from(600));
    network.backed_by(Address::ZERO, 400).await;
    network.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_withdrawal_gives_the_balance_back() {
    let network = Network::start().await;
    network.earn().await;
    let world = &network.world;
    let withdrawal = network.withdrawal(600, network.now().await + 100).await;
    network
        .settle(INITIATION, withdrawal.initiation().unwrap())
        .await;
    let account = withdrawal.account().unwrap();
    network.allocate(&withdrawal).await;
    // One block behind the expiration is not final yet.
    world.origin.node.mine(1, 200).await.unwrap();
    network.pending(withdrawal.status(None)).await;
    finalize(world, &world.origin).await;
    network.settle(WITHDRAWALS, withdrawal.status(None)).await;
    assert_eq!(network.held(account, Address::ZERO).await, 0);
    assert_eq!(network.held(network.solver(), Address::ZERO).await, 990);
    world.execute(&withdrawal, &world.solver).await.unwrap_err();
    network.backed_by(Address::ZERO, 1_000).await;
    network.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_withdrawal_gives_nothing_back() {
    let network = Network::start().await;
    network.earn().await;
    let world = &network.world;
    let now = network.now().await;
    let withdrawal = network.withdrawal(600, now + 3_600).await;
    network
        .settle(INITIATION, withdrawal.initiation().unwrap())
        .await;
    // The same money to the same recipient, but expired long ago: nobody ever paid it.
    let invented = network.withdrawal(600, now - 1_000).await;
    network.pending(invented.status(None)).await;
    network.allocate(&withdrawal).await;
    let refused = network.ask(WITHDRAWALS, invented.status(None)).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert_eq!(refused.code(), "WITHDRAWAL_MISMATCH");
    // Another nonce, whose escrow is empty, cannot take the withdrawal's key.
    let mut other = withdrawal.clone();
    other.nonce = U256::from(2);
    let mut body = withdrawal.status(None);
    body["withdrawalAddressRequest"] = other.status(None)["withdrawalAddressRequest"].clone();
    let transaction = world.execute(&withdrawal, &world.solver).await.unwrap();
    finalize(world, &world.origin).await;
    network.pending(body).await;
    network
        .settle(WITHDRAWALS, withdrawal.status(Some(transaction)))
        .await;
    let account = withdrawal.account().unwrap();
    assert_eq!(network.held(account, Address::ZERO).await, 0);
    network.backed_by(Address::ZERO, 400).await;
    network.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_attested_about_withdrawals_without_an_allocator() {
    let world = Devnet::start().await.unwrap();
    let mut files = world.files();
    let fields = files.hub.as_object_mut().unwrap();
    fields.remove("auroraAllocatorAddress");
    let daemon = oracle(&world, 0).chains(&files).start().await;
    let withdrawal = Withdrawal {
        site: &world.origin,
        money: native(600),
        owner: &world.solver,
        owner_chain: world.destination.id,
        recipient: RECIPIENT,
        nonce: U256::from(1),
        expiration: U256::from(1),
    };
    let answer = daemon.attest(WITHDRAWALS, &withdrawal.status(None)).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert_eq!(answer.code(), "ALLOCATOR_UNAVAILABLE");
    let ready = daemon.ops("/readyz").await;
    assert!(
        ready.body.contains("auroraAllocatorAddress"),
        "{}",
        ready.body
    );
    daemon.stop().await;
}

/// A final deposit of an order.
async fn deposited(world: &Devnet) -> (Deal<'_>, Deposit) {
    let deal = Deal::new(world, native(1_000), native(900), 1).await;
    let deposit = deal.deposit().await;
    (deal, deposit)
}

#[tokio::test(flavor = "multi_thread")]
async fn peer_whose_chain_hangs_is_not_waited_for() {
    let world = Devnet::start().await.unwrap();
    let proxy = LyingProxy::start(&world.origin.node.url).await.unwrap();
    proxy.lie(rules::always(Lie::Hang));
    let hanging = oracle(&world, 1).with("ORIGIN_RPC_URL", proxy.url.as_str());
    let mut network = Network::with(world, hanging).await;
    let impatient = oracle(&network.world, 0)
        .with("PEER_REQUEST_TIMEOUT_MS", "3000")
        .key("caller")
        .peer(&network.peers[0], "peer")
        .peer(&network.peers[1], "peer");
    network.asked = impatient.start().await;
    let (_, deposit) = deposited(&network.world).await;
    let body = claim::deposit(&network.world.origin, deposit.transaction);
    let answer = network.signed_by(&[0, 2], DEPOSITS, body).await;
    let execution = claim::execution(&answer).unwrap();
    network.world.hub.submit(execution).await.unwrap();
    drop(proxy);
    network.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peer_that_sees_another_amount_adds_no_signature() {
    let world = Devnet::start().await.unwrap();
    let proxy = LyingProxy::start(&world.origin.node.url).await.unwrap();
    proxy.lie(rules::receipts(|receipt| {
        let data = receipt["logs"][0]["data"].as_str().unwrap();
        let (from, id) = (&data[..66], &data[130..]);
        receipt["logs"][0]["data"] = json!(format!("{from}{:064x}{id}", 2_000));
    }));
    let fooled = oracle(&world, 1).with("ORIGIN_RPC_URL", proxy.url.as_str());
    let network = Network::with(world, fooled).await;
    let (_, deposit) = deposited(&network.world).await;
    let body = claim::deposit(&network.world.origin, deposit.transaction);
    // The peer signs what it was shown, ...
    let theirs = network.peers[0].post(DEPOSITS, "peer", &body).await;
    let amount = &theirs.json()["messages"][0]["result"]["amount"];
    assert_eq!(*amount, "2000", "{}", theirs.body);
    assert_eq!(theirs.signed_by().len(), 1);
    // ... which is not what we say.
    network.signed_by(&[0, 2], DEPOSITS, body).await;
    network.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peer_of_another_domain_or_with_our_own_key_adds_no_signature() {
    for number in [0, 1] {
        let world = Devnet::start().await.unwrap();
        let mut files = world.files();
        if number == 1 {
            files.hub["oracleVersion"] = json!("1");
        }
        let useless = oracle(&world, number).chains(&files);
        let network = Network::with(world, useless).await;
        let (_, deposit) = deposited(&network.world).await;
        let body = claim::deposit(&network.world.origin, deposit.transaction);
        network.signed_by(&[0, 2], DEPOSITS, body).await;
        network.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn peer_that_signed_the_opposite_adds_no_signature() {
    let network = Network::start().await;
    let (deal, deposit) = deposited(&network.world).await;
    let refund = claim::refund(
        &deal.order,
        std::slice::from_ref(&deposit),
        &[deal.refund().await],
    );
    let theirs = network.peers[0].post(REFUNDS, "peer", &refund).await;
    assert_eq!(theirs.status, 200, "{}", theirs.body);
    let fill = claim::fill(&deal.order, &[deposit], deal.fill().await);
    network.signed_by(&[0, 2], FILLS, fill).await;
    let late = network.ask(REFUNDS, refund).await;
    assert_eq!(late.status, 409, "{}", late.body);
    assert_eq!(late.code(), "CONFLICTING_STATEMENT");
    network.stop().await;
}
