mod crowd;
mod soon;

use vm::{B256, Refusal, Transaction, U256, protocol::limits, testing::Script};

use super::*;
use crate::{
    attest,
    index::{
        apply, fixtures,
        listed::Listed,
        recorder::{Entry, Recorder, opened},
    },
    request::{
        self, Execution,
        fact::{Facts, Inclusion, Standing},
        mismatch::mismatch,
        reason::FailReason,
        status::{self, Status},
    },
    solver::claimable,
    store::{
        Batch, Store,
        memory::MemoryStore,
        rows::{
            self, claim,
            cursor::{self, Cursor},
            deposit_tx, open,
            parked::{self, Parked},
        },
    },
};

const NOW: u64 = 1_800_000_000_000;
/// The deposit's block.
const AT: u64 = 1_000;

struct Bench {
    script: Arc<Script>,
    request: Request,
    requests: Requests,
    confirmer: Confirmer,
}

/// A request whose deposit one provider has shown in block [`AT`].
async fn bench() -> Bench {
    bench_of(Execution::Solver, request::fixtures::USER).await
}

async fn bench_of(execution: Execution, user: &str) -> Bench {
    let script = Script::at(AT);
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    let network = Network {
        chain: fixtures::chain("origin", &script),
        wakeup: Arc::default(),
        listed: None,
    };
    let networks = HashMap::from([("origin".to_owned(), network)]);
    let mut request = request::fixtures::request(1);
    (request.execution, request.user) = (execution, user.to_owned());
    requests.insert(&request, Batch::new()).await.unwrap();
    let bench = Bench {
        confirmer: Confirmer::new(requests.clone(), networks),
        script,
        request,
        requests,
    };
    bench.show(AT, 0).await;
    bench
}

impl Bench {
    fn deposit(&self) -> vm::Deposit {
        fixtures::deposit(self.request.order_id, 3)
    }

    async fn show(&self, number: u64, fork: u8) {
        let place = Inclusion::from(&vm::testing::block(number, fork));
        let deposit = apply::deposit("origin", &fixtures::tx(1), &place, &self.deposit());
        let entry = Entry {
            deposit: &deposit,
            transaction: &fixtures::tx(1).bytes,
            sure: true,
        };
        let recorder = Recorder {
            requests: self.requests.clone(),
        };
        recorder.seen(&self.request, &[entry], NOW).await.unwrap();
    }

    /// The quorum shows these deposits in a block.
    fn put(&self, number: u64, deposits: Result<Vec<vm::Deposit>, Refusal>) {
        let mut receipt = vm::testing::receipt(self.script.block(number));
        receipt.deposits = deposits;
        self.script
            .put(&fixtures::tx(1), Transaction::Succeeded(receipt));
    }

    async fn id(&self) -> B256 {
        let facts = self.requests.facts(&self.request.id).await.unwrap();
        facts.deposits[0].onchain_id
    }

    async fn standing(&self) -> (u64, Standing) {
        let facts = self.requests.facts(&self.request.id).await.unwrap();
        let deposit = &facts.deposits[0];
        (deposit.place.number, deposit.standing)
    }

    /// A look when the head is `depth` above the deposit's block, and where the deposit is then.
    async fn look(&self, depth: u64) -> (u64, Standing) {
        self.script.set_head(AT + depth);
        self.confirmer.look(NOW).await.unwrap();
        self.standing().await
    }
}

#[tokio::test]
async fn a_deposit_is_final_when_the_quorum_shows_it_deep_enough() {
    let bench = bench().await;
    bench.put(AT, Ok(vec![bench.deposit()]));
    let asked = bench.script.asked();
    assert_eq!(bench.look(9).await, (AT, Standing::Included));
    assert_eq!(
        bench.script.asked(),
        asked + 1,
        "the head tells that it is too early"
    );
    let mut changes = bench.requests.changes();
    changes.mark_unchanged();
    assert_eq!(bench.look(10).await, (AT, Standing::Final));
    assert!(changes.has_changed().unwrap());
    let again = bench.confirmer.look(NOW).await.unwrap();
    assert_eq!(again, Look::default());
}

#[tokio::test]
async fn doubt_is_never_final() {
    let changed = |change: fn(&mut vm::Deposit)| {
        move |bench: &Bench| {
            let mut deposit = bench.deposit();
            change(&mut deposit);
            Ok(vec![deposit])
        }
    };
    type Shown = Box<dyn Fn(&Bench) -> Result<Vec<vm::Deposit>, Refusal>>;
    let gone: Vec<Shown> = vec![
        Box::new(|_| Ok(Vec::new())),
        Box::new(changed(|one| one.amount -= U256::from(1))),
        Box::new(changed(|one| one.amount += U256::from(1))),
        Box::new(changed(|one| one.index = 4)),
        Box::new(changed(|one| {
            one.currency = fixtures::address(fixtures::DEPOSITORY);
        })),
        Box::new(changed(|one| {
            one.depositor = fixtures::address(fixtures::DEPOSITORY);
        })),
        Box::new(changed(|one| {
            one.depository = fixtures::address(request::fixtures::USER);
        })),
        Box::new(changed(|one| one.id = B256::ZERO.to_string().into())),
        Box::new(changed(|one| {
            one.id = B256::repeat_byte(9).to_string().into();
        })),
    ];
    for (row, shown) in gone.iter().enumerate() {
        let bench = bench().await;
        bench.put(AT, shown(&bench));
        assert_eq!(bench.look(10).await, (AT, Standing::Reorged), "row {row}");
    }
    // There, and nothing that the oracle would attest.
    let doubtful: Vec<Shown> = vec![
        Box::new(|_| Err(Refusal("two of them".into()))),
        Box::new(|bench| Ok(vec![bench.deposit(), bench.deposit()])),
        Box::new(|bench| {
            let (mut one, mut other) = (bench.deposit(), bench.deposit());
            (one.index, other.index) = (9, 9);
            Ok(vec![bench.deposit(), one, other])
        }),
    ];
    for (row, shown) in doubtful.iter().enumerate() {
        let bench = bench().await;
        bench.put(AT, shown(&bench));
        assert_eq!(bench.look(99).await, (AT, Standing::Included), "row {row}");
    }
}

#[tokio::test]
async fn what_others_deposit_in_the_same_transaction_is_counted_and_blocks_nothing() {
    let bench = bench().await;
    let with = |index: u32, amount: u64| {
        let mut other = bench.deposit();
        (other.index, other.amount) = (index, U256::from(amount));
        other
    };
    // The oracle leaves out what moved nothing.
    let all = vec![
        bench.deposit(),
        with(9, 0),
        with(9, 0),
        with(10, 1),
        with(11, 1),
    ];
    bench.put(AT, Ok(all));
    assert_eq!(bench.look(10).await, (AT, Standing::Final));
    let facts = bench.requests.facts(&bench.request.id).await.unwrap();
    assert_eq!(facts.deposits[0].together, 3);
    // More than an execution has room for: whoever is about to pay for one of them has to know.
    let bench = self::bench().await;
    let most = u32::try_from(limits::ACTIONS).unwrap();
    let crowd = (10..10 + most).map(|index| with(index, 1));
    bench.put(AT, Ok(crowd.chain([bench.deposit()]).collect()));
    assert_eq!(bench.look(10).await, (AT, Standing::Final));
    let facts = bench.requests.facts(&bench.request.id).await.unwrap();
    assert_eq!(facts.deposits[0].together, most + 1);
}

#[tokio::test]
async fn a_deposit_whose_order_another_names_pays_for_none() {
    for named_by_other in [false, true] {
        let bench = bench().await;
        let mut deposit = bench.deposit();
        deposit.named_by_other = named_by_other;
        bench.put(AT, Ok(vec![deposit]));
        assert_eq!(bench.look(10).await, (AT, Standing::Final));
        let facts = bench.requests.facts(&bench.request.id).await.unwrap();
        let why = mismatch(&bench.request, &facts.deposits[0]);
        assert_eq!(why, named_by_other.then_some(FailReason::Unknown));
        let families = |_: &str| Some(vm::SETTLEMENT);
        let fill = claimable::fill(&bench.request, &facts.deposits[0], &families);
        let refused = matches!(fill, Err(attest::Refusal::NamedByOther(_)));
        assert_eq!(refused, named_by_other, "{fill:?}");
    }
}

/// Anybody can deposit in another's name.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn a_deposit_is_its_depositors_own_when_a_quorum_shows_who_gave_it() {
    let (user, other) = (
        fixtures::address(request::fixtures::USER),
        fixtures::address(fixtures::DEPOSITORY),
    );
    let payment = |by: &vm::Address| vm::Payment {
        index: 1,
        kind: vm::PaymentKind::TransferBy(by.clone()),
        recipient: fixtures::address(fixtures::DEPOSITORY),
        currency: fixtures::address(request::fixtures::USDC),
        amount: U256::from(100_000_000),
    };
    let by_depositor = |one: &mut vm::Receipt| {
        let deposits = one.deposits.iter_mut().flatten();
        deposits.for_each(|deposit| deposit.by_depositor = true);
    };
    type Change<'a> = Box<dyn Fn(&mut vm::Receipt) + 'a>;
    let cases: Vec<(bool, Change<'_>)> = vec![
        (false, Box::new(|_| ())),
        (true, Box::new(by_depositor)),
        // Whoever sends a transaction may only pay its fee.
        (false, Box::new(|one| one.sender = Some(user.clone()))),
        (
            true,
            Box::new(|one| {
                by_depositor(one);
                one.sender = Some(other.clone());
            }),
        ),
        (true, Box::new(|one| one.payments.push(payment(&user)))),
        (false, Box::new(|one| one.payments.push(payment(&other)))),
        (
            false,
            Box::new(|one| {
                one.payments.push(payment(&user));
                one.payments[0].amount -= U256::ONE;
            }),
        ),
        (
            false,
            Box::new(|one| {
                one.payments.push(payment(&user));
                one.payments[0].recipient = user.clone();
            }),
        ),
    ];
    for (row, (own, change)) in cases.iter().enumerate() {
        let bench = bench().await;
        let mut receipt = vm::testing::receipt(bench.script.block(AT));
        receipt.deposits = Ok(vec![bench.deposit()]);
        change(&mut receipt);
        let found = Transaction::Succeeded(receipt);
        bench.script.put(&fixtures::tx(1), found.clone());
        assert_eq!(bench.look(10).await, (AT, Standing::Final), "row {row}");
        let facts = bench.requests.facts(&bench.request.id).await.unwrap();
        assert_eq!(facts.deposits[0].own, *own, "row {row}");
        // A currency that the order does not ask for may say anything of itself.
        let chain = fixtures::chain("origin", &bench.script);
        let head = chain.reader.head().await.unwrap();
        let seen = Seen {
            spec: &chain.spec,
            transaction: &fixtures::tx(1),
            head: &head,
            found: &found,
        };
        let mut request = bench.request.clone();
        request.order.inputs[0].payment.currency = fixtures::DEPOSITORY.into();
        let (deposit, finality) = (&facts.deposits[0], &chain.spec.finality);
        let Verdict::Final(agreed) = Reading::of(&seen).judge(&request, deposit, finality) else {
            panic!("row {row}");
        };
        assert_eq!(agreed.own, [1, 3].contains(&row), "row {row}");
    }
}

const DAYS: u64 = 172_800;

impl Bench {
    /// Milliseconds when the deposit is so many seconds old.
    fn aged(seconds: u64) -> u64 {
        (vm::testing::block(AT, 0).time + seconds) * 1_000
    }

    /// What the operator has listed, and what the request's status is.
    async fn parked(&self) -> (Vec<String>, Status) {
        let store = self.requests.store();
        let rows = store.scan(parked::range(None, 9)).await.unwrap();
        let notes = rows
            .iter()
            .map(|(_, row)| Parked::decode(row).unwrap().note);
        let facts = self.requests.facts(&self.request.id).await.unwrap();
        (notes.collect(), status::of(&self.request, &facts).status)
    }

    async fn looked(&self, age: u64) -> (Vec<String>, Status) {
        self.confirmer.look(Self::aged(age)).await.unwrap();
        self.parked().await
    }
}

#[tokio::test]
async fn what_nobody_agrees_about_for_days_is_parked_until_somebody_does() {
    type Dark = fn(&Bench);
    let doubtful: Dark = |bench| bench.put(AT, Err(Refusal("two of them".into())));
    let too_large: Dark = |bench| bench.script.fail(Some(ReadError::TooLarge));
    let dark: Dark = |bench| {
        bench
            .script
            .fail(Some(ReadError::Quorum("one of three".into())));
    };
    for (case, doubt) in [doubtful, too_large, dark].into_iter().enumerate() {
        let bench = bench().await;
        bench.script.set_head(AT + 20);
        doubt(&bench);
        let (rows, status) = bench.looked(DAYS - 1).await;
        assert_eq!((rows.len(), status), (0, Status::Pending), "case {case}");
        let (rows, status) = bench.looked(DAYS + 3_600).await;
        assert_eq!((rows.len(), status), (1, Status::Failure), "case {case}");
        assert!(
            rows[0].starts_with("not agreed about for days: "),
            "{rows:?}"
        );
        // Once is enough, and what the operator dismisses stays away.
        bench.looked(DAYS + 10_800).await;
        let key = parked::key(&bench.request.id, &bench.id().await);
        let store = bench.requests.store();
        store.commit(Batch::new().delete(key)).await.unwrap();
        let (rows, status) = bench.looked(DAYS + 18_000).await;
        assert_eq!((rows.len(), status), (0, Status::Failure), "case {case}");
        bench.script.fail(None);
        bench.put(AT, Ok(vec![bench.deposit()]));
        let (rows, status) = bench.looked(DAYS + 25_200).await;
        assert_eq!((rows.len(), status), (0, Status::Pending), "case {case}");
        assert_eq!(bench.standing().await, (AT, Standing::Final), "case {case}");
    }
}

#[tokio::test]
async fn what_the_solver_parked_stays_parked_when_a_doubt_is_over() {
    let bench = bench().await;
    bench.script.set_head(AT + 20);
    bench.put(AT, Err(Refusal("two of them".into())));
    let (rows, _) = bench.looked(DAYS + 1).await;
    assert_eq!(rows.len(), 1);
    let claim = claim::Claim {
        parked: vec![bench.id().await],
        ..claim::Claim::default()
    };
    let key = claim::key(&bench.request.id);
    let batch = Batch::new().put(key, claim.encode().unwrap());
    bench.requests.store().commit(batch).await.unwrap();
    bench.put(AT, Ok(vec![bench.deposit()]));
    let (rows, status) = bench.looked(DAYS + 7_200).await;
    assert_eq!((rows.len(), status), (1, Status::Failure));
    assert_eq!(bench.standing().await, (AT, Standing::Final));
}

#[tokio::test]
async fn what_is_never_attested_is_looked_at_ever_more_rarely() {
    let bench = bench().await;
    bench.script.set_head(AT + 20);
    bench.put(AT, Err(Refusal("two of them".into())));
    let asked = bench.script.asked();
    // Once a second for a day.
    for age in 300..86_400 {
        bench.confirmer.look(Bench::aged(age)).await.unwrap();
    }
    let looks = bench.script.asked() - asked;
    assert!((20..200).contains(&looks), "{looks}");
}

#[tokio::test]
async fn what_the_quorum_misses_is_gone_only_after_finality() {
    let bench = bench().await;
    assert_eq!(bench.look(9).await, (AT, Standing::Included));
    assert_eq!(bench.look(10).await, (AT, Standing::Reorged));
    // It may come back, in another block, and is judged anew.
    bench.script.fork(AT, 1);
    bench.show(AT + 5, 1).await;
    bench.put(AT + 5, Ok(vec![bench.deposit()]));
    assert_eq!(bench.look(14).await, (AT + 5, Standing::Included));
    assert_eq!(bench.look(15).await, (AT + 5, Standing::Final));
}

#[tokio::test]
async fn a_failed_transaction_deposits_nothing() {
    let bench = bench().await;
    let block = bench.script.block(AT);
    bench.script.put(
        &fixtures::tx(1),
        Transaction::Failed(vm::testing::failure(block)),
    );
    assert_eq!(bench.look(10).await, (AT, Standing::Reorged));
}

#[tokio::test]
async fn another_block_counts_from_there() {
    let bench = bench().await;
    bench.put(AT + 5, Ok(vec![bench.deposit()]));
    assert_eq!(bench.look(14).await, (AT, Standing::Included));
    assert_eq!(bench.look(15).await, (AT + 5, Standing::Final));
}

#[tokio::test]
async fn no_answer_says_nothing() {
    let bench = bench().await;
    bench.put(AT, Ok(vec![bench.deposit()]));
    bench
        .script
        .fail(Some(ReadError::Quorum("two against one".into())));
    bench.script.set_head(AT + 50);
    let look = bench.confirmer.look(NOW).await.unwrap();
    assert_eq!(look.unanswered, 1);
    assert_eq!(bench.standing().await, (AT, Standing::Included));
    // Nor does a network that is not configured.
    let nowhere = Confirmer::new(bench.requests.clone(), HashMap::new());
    assert_eq!(nowhere.look(NOW).await.unwrap().early, 1);
}

#[tokio::test]
async fn what_is_shown_and_not_there_is_owed_to_be_read_again_in_the_same_commit() {
    let bench = bench().await;
    let next = AT + 8;
    let ahead = Cursor {
        next,
        ..Cursor::default()
    };
    let store: &Arc<dyn Store> = bench.requests.store();
    let key = cursor::key("origin");
    let cursor = async || Cursor::decode(&store.read(&key).await.unwrap().unwrap()).unwrap();
    let batch = Batch::new().put(key.clone(), ahead.encode().unwrap());
    store.commit(batch).await.unwrap();
    assert_eq!(bench.look(9).await, (AT, Standing::Included));
    assert_eq!(cursor().await, ahead);
    assert_eq!(bench.look(10).await, (AT, Standing::Reorged));
    let found = cursor().await;
    assert_eq!((found.next, found.again.block), (next, Some(AT)));
    bench.confirmer.networks["origin"].wakeup.woken().await;
    // The row of what was shown stays until the tail has read the block again.
    let rows = store
        .scan(deposit_tx::range("origin", AT, 9))
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    // What is owed already is not written anew.
    bench.show(AT, 0).await;
    assert_eq!(bench.look(10).await, (AT, Standing::Reorged));
    assert_eq!(cursor().await, found);
}

#[tokio::test]
async fn it_runs_until_it_is_told_to_stop() {
    let bench = bench().await;
    bench.put(AT, Ok(vec![bench.deposit()]));
    bench.script.set_head(AT + 10);
    let mut changes = bench.requests.changes();
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(bench.confirmer.run(|| NOW, shutdown.clone()));
    changes.changed().await.unwrap();
    let facts = bench.requests.facts(&bench.request.id).await.unwrap();
    assert_eq!(facts.deposits[0].standing, Standing::Final);
    shutdown.cancel();
    running.await.unwrap();
}

/// Another request with a deposit that its network's quorum, if it answers, calls final.
async fn another(bench: &Bench, network: &str, number: u8) -> Request {
    let request = request::fixtures::request(number);
    let requests = &bench.requests;
    requests.insert(&request, Batch::new()).await.unwrap();
    let (tx, deposit) = (
        fixtures::tx(number.into()),
        fixtures::deposit(request.order_id, 3),
    );
    let place = Inclusion::from(&vm::testing::block(AT, 0));
    let seen = apply::deposit(network, &tx, &place, &deposit);
    let mut receipt = vm::testing::receipt(bench.script.block(AT));
    receipt.deposits = Ok(vec![deposit]);
    bench.script.put(&tx, Transaction::Succeeded(receipt));
    let batch = opened(Batch::new(), request.id, seen.onchain_id, NOW);
    let change = |facts: &mut Facts| apply::seen(facts, &seen);
    let recorded = requests.record(&request.id, NOW, batch, change);
    recorded.await.unwrap();
    request
}

#[tokio::test]
async fn a_network_that_does_not_answer_holds_up_no_other() {
    let mut bench = bench().await;
    bench.script.set_head(AT + 10);
    let dark = Script::at(AT);
    dark.hang(true);
    let network = Network {
        chain: fixtures::chain("destination", &dark),
        wakeup: Arc::default(),
        listed: None,
    };
    let networks = &mut bench.confirmer.networks;
    networks.insert("destination".into(), network);
    let held_up = another(&bench, "destination", 2).await;
    let confirmer = Confirmer::new(
        bench.requests.clone(),
        std::mem::take(&mut bench.confirmer.networks),
    );
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(confirmer.run(|| NOW, shutdown.clone()));
    let mut changes = bench.requests.changes();
    let standing = async |request: &Request| {
        let facts = bench.requests.facts(&request.id).await.unwrap();
        facts.deposits[0].standing
    };
    // The second comes when the other network has been asked already.
    for number in [3, 4] {
        let request = another(&bench, "origin", number).await;
        while standing(&request).await != Standing::Final {
            changes.changed().await.unwrap();
        }
    }
    assert_eq!(standing(&held_up).await, Standing::Included);
    shutdown.cancel();
    running.await.unwrap();
}

/// So many of an order are listed, of each kind.
async fn fills_the_list(bench: &Bench, row: &Parked) {
    let (store, request) = (bench.requests.store(), &bench.request.id);
    let listed = async || Listed::of(&**store, request).await.unwrap();
    let mut all = listed().await;
    let mut batch = Batch::new();
    for number in 1..32 {
        assert!(all.takes(row));
        let key = parked::key(request, &B256::repeat_byte(number));
        batch = batch.put(key, row.encode().unwrap());
    }
    store.commit(batch).await.unwrap();
    assert!(!all.takes(row) && !listed().await.takes(row));
    let other = Parked {
        minor: !row.minor,
        ..row.clone()
    };
    assert!(listed().await.takes(&other));
}

/// No solver looks at the order of a user who acts by himself.
#[tokio::test]
async fn what_is_deposited_for_an_order_that_nobody_is_paid_from_is_listed() {
    let (user, other) = (request::fixtures::USER, fixtures::DEPOSITORY);
    for (execution, of, listed, minor) in [
        (Execution::Solver, user, 0, false),
        (Execution::User, user, 1, false),
        // A stranger's stands in the operator's list and not in the user's record.
        (Execution::User, other, 1, true),
    ] {
        let bench = bench_of(execution, of).await;
        let mut deposit = bench.deposit();
        deposit.by_depositor = true;
        let mut receipt = vm::testing::receipt(bench.script.block(AT));
        receipt.deposits = Ok(vec![deposit]);
        bench
            .script
            .put(&fixtures::tx(1), Transaction::Succeeded(receipt));
        assert_eq!(bench.look(10).await, (AT, Standing::Final));
        let rows = parked::of(&bench.request.id, 9);
        let rows = bench.requests.store().scan(rows).await.unwrap();
        let rows = rows.iter().map(|(_, row)| Parked::decode(row).unwrap());
        let rows: Vec<_> = rows.collect();
        assert_eq!(rows.len(), listed, "{execution:?}");
        assert!(rows.iter().all(|row| row.note.contains("recovers it")));
        assert!(rows.iter().all(|row| row.minor == minor), "{of}");
        if let Some(row) = rows.first() {
            fills_the_list(&bench, row).await;
        }
        let facts = bench.requests.facts(&bench.request.id).await.unwrap();
        let deposit = &facts.deposits[0];
        assert_eq!(facts.is_refused(deposit), listed == 1);
        assert_eq!(facts.is_minor(deposit), minor, "{execution:?} {of}");
        if execution == Execution::User {
            let status = status::of(&bench.request, &facts).status;
            assert_eq!(status, Status::Waiting);
        }
    }
}

#[tokio::test]
async fn work_of_a_request_that_is_not_there_stops_nobody() {
    let bench = bench().await;
    bench.put(AT, Ok(vec![bench.deposit()]));
    // A store that has it: what one provider showed of a quote that was forgotten.
    let orphan = request::fixtures::request(2).id;
    let mut facts = bench.requests.facts(&bench.request.id).await.unwrap();
    facts.deposits[0].onchain_id = B256::repeat_byte(9);
    let batch = opened(Batch::new(), orphan, B256::ZERO, NOW);
    let batch = batch.put(
        rows::facts::key(&orphan),
        rows::facts::encode(&facts).unwrap(),
    );
    let store = bench.requests.store();
    store.commit(batch).await.unwrap();
    assert_eq!(bench.look(10).await, (AT, Standing::Final));
    let of = async |id: &B256| store.read(&open::key(id)).await.unwrap().is_some();
    assert!(!of(&orphan).await, "it is looked at again and again");
    assert!(of(&bench.request.id).await);
}
