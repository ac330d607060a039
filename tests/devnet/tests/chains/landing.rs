//! The solver's payments on the real Solana runtime, over three nodes of which two must agree.

use std::{sync::Arc, time::Duration};

use devnet::solana::{
    Cluster, Front, ID, Lag, LocalChain, PROGRAM, TOKEN, TOKEN_2022, Token, keypair, token,
};
use intentd::sign::ed25519::Ed25519Key;
use serde_json::{Map, json};
use solana_pubkey::Pubkey;
use solana_signer::Signer as _;
use spl_token_2022_interface::instruction::{AuthorityType, close_account, set_authority};
use vm::{
    Address, Amount, B256, Chain, ChainEntry, Endpoint, Transaction,
    quorum::Quorum,
    trade::{
        Account, Attempt, Broadcast, Draft, FillTerms, Goal, Intent, Known, Payout, Providers,
        ProvidersContext, Status, Trial, Unfit,
    },
};

const ORDER: B256 = B256::repeat_byte(0xab);
const LAG: Lag = Lag {
    confirmed: 1,
    finalized: 3,
};
const SHOP: Pubkey = Pubkey::new_from_array([0x50; 32]);
/// The native currency.
const LAMPORTS: Pubkey = Pubkey::new_from_array([0; 32]);

struct Rig {
    site: LocalChain,
    _fronts: Vec<Front>,
    chain: Chain,
    providers: Providers,
    account: Account,
}

fn address(key: &Pubkey) -> Address {
    Address::from_parts(&key.to_string(), key.to_bytes())
}

impl Rig {
    async fn new() -> Self {
        let site = LocalChain::start(LAG).await.unwrap();
        let mut fronts = Vec::new();
        for _ in 0..3 {
            fronts.push(site.cluster.provider().await.unwrap());
        }
        let entry = json!({"id": ID, "hubChainId": "31004", "depository": PROGRAM.to_string()});
        let entry: ChainEntry = serde_json::from_value(entry).unwrap();
        let family = vm::family("solana-vm").unwrap();
        let spec = entry.spec(family, false).unwrap();
        let endpoints = (1..).zip(&fronts).map(|(position, front)| Endpoint {
            position,
            url: front.url.as_str().parse().unwrap(),
            timeout: Duration::from_secs(5),
            longest: 1 << 22,
            allows: None,
            client: Endpoint::client().unwrap(),
        });
        let endpoints: Vec<_> = endpoints.collect();
        let (open, trade) = (family.open.unwrap(), family.trade.unwrap());
        let readers = endpoints.iter().map(|one| open(&spec, one).unwrap());
        let chain = Chain {
            spec: spec.clone(),
            reader: Arc::new(Quorum::new(&spec.id, readers.collect(), 2).unwrap()),
            state: None,
        };
        let trades: Vec<_> = endpoints
            .iter()
            .map(|one| trade(&spec, one).unwrap())
            .collect();
        let context = ProvidersContext {
            spec,
            number: 31_004,
            required: 2,
            limits: Some(Map::new()),
        };
        let providers = (family.providers.unwrap())(context, trades);
        let providers = providers.unwrap().unwrap();
        let key = Ed25519Key::parse(&format!("0x{}", "07".repeat(32))).unwrap();
        let account = providers.accounts.account(&chain, Arc::new(key), 1_000);
        let account = account.unwrap();
        let solver = Pubkey::try_from(account.address.bytes()).unwrap();
        site.cluster.fund(&solver).unwrap();
        let issuer = keypair("issuer").unwrap();
        site.cluster.fund(&issuer.pubkey()).unwrap();
        // A head that is final has to be there.
        site.cluster.advance(8);
        Self {
            site,
            _fronts: fronts,
            chain,
            providers,
            account,
        }
    }

    fn cluster(&self) -> &Cluster {
        &self.site.cluster
    }

    fn solver(&self) -> Pubkey {
        Pubkey::try_from(self.account.address.bytes()).unwrap()
    }

    /// A token that the solver has.
    fn token(&self, program: Pubkey, fee: u16) -> Token {
        let issuer = keypair("issuer").unwrap();
        let token = self.cluster().mint(&issuer, program, fee).unwrap();
        let given = self
            .cluster()
            .give(&issuer, token, &self.solver(), 1_000_000);
        given.unwrap();
        self.cluster().advance(4);
        token
    }

    fn draft(&self, currency: &Pubkey, amount: u64) -> Draft {
        self.draft_to(&SHOP, currency, amount)
    }

    fn draft_to(&self, to: &Pubkey, currency: &Pubkey, amount: u64) -> Draft {
        let payout = Payout {
            to: address(to),
            currency: address(currency),
            amount: Amount::from(amount),
        };
        let made = self.chain.spec.family.steps.unwrap().fill(&FillTerms {
            solver: &self.account.address,
            router: None,
            proxy: None,
            payments: &[payout],
            calls: &[],
            authorizations: &[],
            order: ORDER,
        });
        made.unwrap().draft
    }

    /// Pays the shop, and waits until it is final.
    async fn pays(&self, currency: &Pubkey, amount: u64) -> Attempt {
        let attempt = self.prepared(self.draft(currency, amount)).await;
        self.sends(&attempt).await;
        self.cluster().advance(4);
        attempt
    }

    /// A payment with the work that the nodes find and a quarter more.
    async fn prepared(&self, draft: Draft) -> Attempt {
        let wallet = &self.providers.wallet;
        assert_eq!(wallet.admit(&draft).await, Ok(Ok(())));
        let work = wallet.simulate(&Trial::free(&draft)).await.unwrap();
        let work = work.unwrap();
        let work = work + work.div_ceil(4);
        let trial = Trial {
            most: Some(work),
            ..Trial::free(&draft)
        };
        assert!(wallet.simulate(&trial).await.unwrap().is_ok());
        let besides = self.providers.fees.besides(&Trial::free(&draft)).await;
        let intent = Intent {
            draft,
            work,
            besides: Some(besides.unwrap()),
            spends: Vec::new(),
        };
        let submitter = &self.account.submitter;
        let outlook = submitter.look(Goal::Land(&intent), true).await.unwrap();
        let prepared = outlook.prepare(Known::default()).await.unwrap();
        prepared.attempt
    }

    async fn sends(&self, attempt: &Attempt) {
        let said = self.account.submitter.send(attempt).await.unwrap();
        assert!(matches!(said, Some(Broadcast::Accepted)), "{said:?}");
    }

    /// What a quorum has the shop receive by an attempt.
    async fn received(&self, attempt: &Attempt, currency: &Pubkey) -> Amount {
        let status = self.account.submitter.status(attempt).await.unwrap();
        let Status::Included(included) = status else {
            panic!("{status:?}");
        };
        assert!(included.success);
        let Some((Transaction::Succeeded(receipt), _)) = included.agreed else {
            panic!("not agreed");
        };
        assert_eq!(receipt.references[0].as_ref(), ORDER.to_string());
        let payments = receipt.payments.iter();
        let own = payments
            .filter(|one| one.recipient == address(&SHOP) && one.currency == address(currency));
        own.map(|one| one.amount).sum()
    }
}

#[tokio::test]
async fn lamports_and_tokens_of_both_programs_arrive_whole() {
    let rig = Rig::new().await;
    let (old, newer) = (rig.token(TOKEN, 0), rig.token(TOKEN_2022, 0));
    let paid = rig.pays(&LAMPORTS, 2_000_000).await;
    assert_eq!(
        rig.received(&paid, &LAMPORTS).await,
        Amount::from(2_000_000)
    );
    assert_eq!(rig.cluster().balance(&SHOP), 2_000_000);
    for token in [old, newer] {
        let before = rig.cluster().balance(&rig.solver());
        let draft = rig.draft(&token.0, 9_900);
        let besides = rig.providers.fees.besides(&Trial::free(&draft)).await;
        let besides = u64::try_from(besides.unwrap()).unwrap();
        let paid = rig.pays(&token.0, 9_900).await;
        assert_eq!(rig.received(&paid, &token.0).await, Amount::from(9_900));
        assert_eq!(rig.cluster().tokens(&SHOP, token), 9_900);
        // The fee and the rent of the shop's new account: no more than was reserved, and what was foretold besides work.
        let spent = before - rig.cluster().balance(&rig.solver());
        assert!(Amount::from(spent) <= paid.spends[0].1);
        assert!((besides..besides + 5_000).contains(&spent), "{spent}");
        // The account is there now.
        let besides = rig.providers.fees.besides(&Trial::free(&draft)).await;
        assert_eq!(besides, Ok(Amount::from(5_000)));
    }
    let balance = &rig.providers.failover;
    let solver = rig.account.address.clone();
    for token in [old, newer] {
        let left = rig.cluster().tokens(&rig.solver(), token);
        assert_eq!(left, 1_000_000 - 9_900);
        let held = balance.balance(&solver, &address(&token.0)).await;
        assert_eq!(held, Ok(Amount::from(left)));
    }
}

#[tokio::test]
async fn nobody_is_paid_in_a_token_whose_transfers_cost() {
    let rig = Rig::new().await;
    let costly = rig.token(TOKEN_2022, 100);
    let draft = rig.draft(&costly.0, 9_900);
    let admitted = rig.providers.wallet.admit(&draft).await.unwrap();
    assert!(matches!(admitted, Err(Unfit::Currency(_))), "{admitted:?}");
}

/// The recipient's account is there when the payment is signed. The block that has it gives the account away before, or
/// closes it. Accounts of Token-2022 keep their owners.
#[tokio::test]
async fn what_is_no_account_of_the_recipients_any_more_is_paid_nothing() {
    let rig = Rig::new().await;
    let (cluster, solver) = (rig.cluster(), rig.solver());
    let issuer = keypair("issuer").unwrap();
    for (program, given) in [(TOKEN, true), (TOKEN, false), (TOKEN_2022, false)] {
        let keeper = keypair(&format!("keeper of {program}, {given}")).unwrap();
        let owner = keeper.pubkey();
        cluster.fund(&owner).unwrap();
        let token = rig.token(program, 0);
        let open = token::open(&issuer.pubkey(), &owner, token);
        cluster.execute(&[open], &[&issuer]).unwrap();
        cluster.advance(4);
        let account = token::associated(&owner, &token.0, &program);
        let draft = rig.draft_to(&owner, &token.0, 9_900);
        let attempt = rig.prepared(draft.clone()).await;
        let leaves = match given {
            true => set_authority(
                &program,
                &account,
                Some(&SHOP),
                AuthorityType::AccountOwner,
                &owner,
                &[],
            ),
            false => close_account(&program, &account, &owner, &owner, &[]),
        };
        let before = cluster.balance(&solver);
        cluster.automatic(false);
        let leaves = cluster.sign(&[leaves.unwrap()], &[&keeper]).unwrap();
        cluster.submit(leaves).unwrap();
        rig.sends(&attempt).await;
        cluster.automatic(true);
        cluster.advance(5);
        let status = rig.account.submitter.status(&attempt).await.unwrap();
        let Status::Included(included) = &status else {
            panic!("{status:?}");
        };
        assert!(!included.success, "{program}, {given}");
        assert_eq!(cluster.tokens(&owner, token), 0);
        assert_eq!(cluster.tokens(&solver, token), 1_000_000);
        // Nobody has paid for an account in the place of one that was closed.
        assert_eq!(cluster.balance(&account) > 0, given);
        assert!(before - cluster.balance(&solver) < cluster.rent(165));
        // From now on it is refused, or the account is made and charged for.
        let tried = rig.providers.wallet.simulate(&Trial::free(&draft)).await;
        assert_eq!(tried.unwrap().is_err(), given);
        let besides = rig.providers.fees.besides(&Trial::free(&draft)).await;
        assert_eq!(besides.unwrap() == Amount::from(5_000), given);
    }
}

#[tokio::test]
async fn what_the_runtime_would_not_do_is_not_sent() {
    let rig = Rig::new().await;
    let token = rig.token(TOKEN, 0);
    for (currency, amount) in [
        (token.0, 1_000_001),
        (LAMPORTS, u64::MAX / 2),
        (LAMPORTS, 5),
    ] {
        let draft = rig.draft(&currency, amount);
        let tried = rig.providers.wallet.simulate(&Trial::free(&draft)).await;
        assert!(tried.unwrap().is_err(), "{currency} {amount}");
    }
}

#[tokio::test]
async fn payment_expires_by_blocks_and_is_made_anew() {
    let rig = Rig::new().await;
    let intent = Intent {
        draft: rig.draft(&LAMPORTS, 2_000_000),
        work: 50,
        besides: None,
        spends: Vec::new(),
    };
    let submitter = &rig.account.submitter;
    let outlook = submitter.look(Goal::Land(&intent), true).await.unwrap();
    let first = outlook.prepare(Known::default()).await.unwrap().attempt;
    rig.cluster().advance(100);
    assert_eq!(submitter.replace(&first, false).await, Ok(None));
    rig.cluster().skip(100);
    rig.cluster().advance(1);
    assert_eq!(submitter.replace(&first, false).await, Ok(None));
    rig.cluster().advance(80);
    assert_eq!(
        submitter.send(&first).await,
        Ok(Some(Broadcast::Expired)),
        "the runtime knows its blockhash no more"
    );
    let second = submitter.replace(&first, false).await.unwrap().unwrap();
    let said = submitter.send(&second).await.unwrap();
    assert!(matches!(said, Some(Broadcast::Accepted)), "{said:?}");
    rig.cluster().advance(4);
    assert_eq!(
        rig.received(&second, &LAMPORTS).await,
        Amount::from(2_000_000)
    );
    assert_eq!(rig.cluster().balance(&SHOP), 2_000_000);
    assert_eq!(submitter.replace(&second, false).await, Ok(None));
}
