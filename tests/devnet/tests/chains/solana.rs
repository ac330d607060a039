//! Solana on a real runtime: what a daemon with three providers attests of it, and what it never does.

mod inner;
mod refunds;
mod withdrawals;

use std::time::Duration;

use devnet::{
    proxy::LyingProxy,
    solana::{
        Front, ID, Lag, LocalChain, PROVIDERS, Paid, TOKEN, TOKEN_2022, Token, keypair, token,
    },
    world::Devnet,
};
use serde_json::{Value, json};
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_signer::Signer;

use crate::support::{
    chain::{DEPOSITS, oracle},
    daemon::{Answer, Daemon},
};

const AMOUNT: u64 = 1_234_567;
const ORDER: [u8; 32] = [0x77; 32];
/// Blocks until a block is confirmed, and until it is final.
const LAG: Lag = Lag {
    confirmed: 1,
    finalized: 3,
};

const POLL: Duration = Duration::from_millis(200);
/// How often an oracle is asked again that has yet to see a block.
const PATIENCE: usize = 100;

struct Fixture {
    site: LocalChain,
    fronts: Vec<Front>,
    proxies: Vec<LyingProxy>,
    daemon: Daemon,
    user: Keypair,
    /// Whom the deposits are for.
    depositor: Pubkey,
    world: Devnet,
}

impl Fixture {
    /// A daemon that sees the chain through three providers.
    async fn start() -> Self {
        let world = Devnet::start().await.unwrap();
        let site = LocalChain::start(LAG).await.unwrap();
        let (mut fronts, mut proxies) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let front = site.cluster.provider().await.unwrap();
            proxies.push(LyingProxy::start(&front.url).await.unwrap());
            fronts.push(front);
        }
        let mut files = world.files();
        site.tell(&mut files);
        let urls: Vec<_> = proxies.iter().map(|proxy| proxy.url.as_str()).collect();
        let setup = oracle(&world, 0).chains(&files);
        let user = keypair("user").unwrap();
        site.cluster.fund(&user.pubkey()).unwrap();
        // A head that is final has to be there.
        site.cluster.advance(8);
        Self {
            daemon: setup.with(PROVIDERS, urls.join(",")).start().await,
            depositor: keypair("depositor").unwrap().pubkey(),
            site,
            fronts,
            proxies,
            user,
            world,
        }
    }

    fn paid(&self) -> Paid {
        Paid {
            sender: self.user.pubkey(),
            depositor: self.depositor,
            amount: AMOUNT,
            id: ORDER,
        }
    }

    fn native(&self) -> Instruction {
        self.site.cluster.depository.deposit_native(&self.paid())
    }

    /// A token of which the user has more than he deposits.
    fn token(&self, program: Pubkey, fee: u16) -> Token {
        let (cluster, owner) = (&self.site.cluster, &self.site.allocator);
        let token = cluster.mint(owner, program, fee).unwrap();
        let user = self.user.pubkey();
        cluster.give(owner, token, &user, 10 * AMOUNT).unwrap();
        token
    }

    fn execute(&self, instructions: &[Instruction]) -> Signature {
        let sent = self.site.cluster.execute(instructions, &[&self.user]);
        sent.unwrap()
    }

    /// Makes everything final that is in a block.
    fn finalize(&self) {
        self.site.cluster.advance(3);
    }

    async fn ask(&self, transaction: &Signature) -> Answer {
        self.daemon
            .attest(DEPOSITS, &LocalChain::claim(transaction))
            .await
    }

    /// What the oracle signs of a transaction's only deposit, once it has seen the newest block.
    async fn signed(&self, transaction: &Signature) -> Value {
        let mut messages = self.all_signed(transaction).await;
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages.remove(0)
    }

    /// The same of all its deposits.
    async fn all_signed(&self, transaction: &Signature) -> Vec<Value> {
        let mut answer = self.ask(transaction).await;
        for _ in 0..PATIENCE {
            if answer.status == 200 && answer.json()["messages"] != json!([]) {
                break;
            }
            tokio::time::sleep(POLL).await;
            answer = self.ask(transaction).await;
        }
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.signed_by().len(), 1, "{}", answer.body);
        answer.json()["messages"].as_array().unwrap().clone()
    }

    /// No signature is given for it: the refusal's code, or none where the transaction is unknown.
    async fn unsigned(&self, transaction: &Signature) -> Option<String> {
        let answer = self.ask(transaction).await;
        let json = answer.json();
        assert!(json["execution"].is_null(), "{}", answer.body);
        if answer.status == 200 {
            assert_eq!(json["messages"], json!([]), "{}", answer.body);
            return None;
        }
        Some(answer.code())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn native_deposit_is_attested_once_it_is_finalized() {
    let fixture = Fixture::start().await;
    let id = fixture.execute(&[fixture.native()]);
    assert_eq!(fixture.unsigned(&id).await, None);
    fixture.site.cluster.advance(1);
    // Confirmed is not final.
    assert_eq!(fixture.unsigned(&id).await, None);
    fixture.finalize();
    let message = fixture.signed(&id).await;
    let deposit = &message["result"];
    assert_eq!(deposit["amount"], AMOUNT.to_string());
    assert_eq!(deposit["depositor"], fixture.depositor.to_string());
    let order = alloy::hex::encode_prefixed(ORDER);
    assert_eq!(deposit["depositId"], order);
    assert_eq!(
        deposit["onchainId"],
        LocalChain::onchain_id(&id, 0).to_string()
    );
    let (_, time) = fixture.site.cluster.placed(&id).unwrap();
    let shown = message["extraData"]["timestamp"].as_str().unwrap();
    assert_eq!(shown, time.unwrap().to_string());
    let asked = |proxy: &&LyingProxy| proxy.count("getTransaction") > 0;
    assert!(fixture.proxies.iter().filter(asked).count() >= 2);
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_deposits_are_worth_what_arrives() {
    let fixture = Fixture::start().await;
    // One in a hundred stays with the mint.
    let cases = [
        (TOKEN, 0, AMOUNT),
        (TOKEN_2022, 0, AMOUNT),
        (TOKEN_2022, 100, AMOUNT - 12_346),
    ];
    for (program, fee, arrives) in cases {
        let token = fixture.token(program, fee);
        let depository = fixture.site.cluster.depository;
        let id = fixture.execute(&[depository.deposit_token(&fixture.paid(), token)]);
        let held = fixture.site.cluster.tokens(&depository.vault(), token);
        assert_eq!(held, arrives);
        fixture.finalize();
        let deposit = &fixture.signed(&id).await["result"];
        assert_eq!(deposit["amount"], arrives.to_string(), "{program} {fee}");
        assert_eq!(deposit["currency"], token.0.to_string());
        assert_eq!(deposit["depositor"], fixture.depositor.to_string());
    }
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_may_take_its_accounts_from_a_lookup_table() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.site.cluster;
    let token = fixture.token(TOKEN, 0);
    let deposit = cluster.depository.deposit_token(&fixture.paid(), token);
    // All that does not sign: programs that a program calls may stand there, too.
    let quiet = deposit.accounts.iter().filter(|account| !account.is_signer);
    let table = cluster.lookup_table(quiet.map(|account| account.pubkey).collect());
    let tables = [table.unwrap()];
    let signed = cluster
        .sign_with(&[deposit], &[&fixture.user], &tables)
        .unwrap();
    assert!(signed.message.static_account_keys().len() <= 3);
    let id = cluster.submit(signed).unwrap();
    fixture.finalize();
    let deposit = &fixture.signed(&id).await["result"];
    assert_eq!(deposit["depositor"], fixture.depositor.to_string());
    assert_eq!(deposit["currency"], token.0.to_string());
    assert_eq!(deposit["amount"], AMOUNT.to_string());
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_transfer_to_the_vault_is_a_deposit_that_names_no_order() {
    let fixture = Fixture::start().await;
    let depository = fixture.site.cluster.depository;
    let (user, token) = (fixture.user.pubkey(), fixture.token(TOKEN_2022, 0));
    let first = fixture.execute(&[depository.deposit_token(&fixture.paid(), token)]);
    let of = |owner: &Pubkey| token::associated(owner, &token.0, &token.1);
    let accounts = [of(&user), of(&depository.vault())];
    let moved = token::transfer(&user, accounts, token, 5, 6);
    let second = fixture.execute(&[moved.unwrap()]);
    fixture.finalize();
    assert_eq!(
        fixture.signed(&first).await["result"]["amount"],
        AMOUNT.to_string()
    );
    let deposit = &fixture.signed(&second).await["result"];
    assert_eq!(deposit["amount"], "5");
    assert_eq!(deposit["depositor"], user.to_string());
    assert_eq!(deposit["depositId"], alloy::hex::encode_prefixed([0; 32]));
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_that_was_confirmed_and_dropped_is_never_attested() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.site.cluster;
    let lost = fixture.execute(&[fixture.native()]);
    cluster.advance(1);
    assert_eq!(fixture.unsigned(&lost).await, None);
    cluster.drop_blocks(2);
    assert!(cluster.placed(&lost).is_none());
    for _ in 0..3 {
        fixture.finalize();
        assert_eq!(fixture.unsigned(&lost).await, None);
    }
    // The chain goes on.
    let kept = fixture.execute(&[fixture.native()]);
    fixture.finalize();
    fixture.signed(&kept).await;
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skipped_slots_and_a_provider_that_is_behind_change_nothing() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.site.cluster;
    fixture.fronts[0].fall_behind(1);
    cluster.skip(3);
    let id = fixture.execute(&[fixture.native()]);
    let (slot, _) = cluster.placed(&id).unwrap();
    cluster.skip(1);
    cluster.advance(2);
    cluster.skip(2);
    // Two providers call it final, the third has yet to.
    cluster.advance(1);
    let message = fixture.signed(&id).await;
    assert_eq!(message["result"]["amount"], AMOUNT.to_string());
    assert!(cluster.slot() > slot + 3);
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_of_a_block_without_time_waits_for_it() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.site.cluster;
    cluster.timed(false);
    let timeless = fixture.execute(&[fixture.native()]);
    cluster.timed(true);
    fixture.finalize();
    fixture.unsigned(&timeless).await;
    // Others are signed meanwhile.
    let timed = fixture.execute(&[fixture.native()]);
    fixture.finalize();
    fixture.signed(&timed).await;
    // Nobody knows when its block was.
    let refused = fixture.unsigned(&timeless).await;
    let doubts = ["PROVIDER_UNAVAILABLE", "QUORUM_UNAVAILABLE"];
    assert!(refused.is_some_and(|code| doubts.contains(&code.as_str())));
    assert!(!fixture.daemon.clear_halt(ID).await);
    cluster.tell_times();
    let message = fixture.signed(&timeless).await;
    assert_eq!(message["result"]["amount"], AMOUNT.to_string());
    let (_, time) = cluster.placed(&timeless).unwrap();
    let shown = message["extraData"]["timestamp"].as_str().unwrap();
    assert_eq!(shown, time.unwrap().to_string());
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_deposit_is_none() {
    let fixture = Fixture::start().await;
    let cluster = &fixture.site.cluster;
    let paid = Paid {
        amount: u64::MAX / 2,
        ..fixture.paid()
    };
    let deposit = cluster.depository.deposit_native(&paid);
    let signed = cluster.sign(&[deposit], &[&fixture.user]).unwrap();
    let id = cluster.submit(signed).unwrap();
    fixture.finalize();
    assert!(fixture.unsigned(&id).await.is_some());
    fixture.daemon.stop().await;
}
