//! What is recorded of agreed answers, and what is answered from it.

use super::*;
use crate::{
    WithdrawalStatus,
    evidence::{Answer as Shown, Read, Recorder, during},
};

/// Everything that a quorum can be asked, in one order.
async fn everything<R: ChainReader + StateReader>(
    reader: &R,
    head: &Head,
) -> Result<impl PartialEq + std::fmt::Debug + use<R>, ReadError> {
    let address = Address::from_parts("0xaa", vec![0xaa]);
    let block = head.block.clone();
    Ok((
        reader.head().await?,
        reader.fresh_head().await?,
        reader.contains(&block).await?,
        reader.transaction(&tx(), head).await?,
        reader.settled(head).await?,
        reader.withdrawal(&vec![1].into(), None, &block).await?,
        reader.view(&address, &vec![2].into(), &block).await?,
        reader.bears_out(&vec![4].into()).await?,
    ))
}

async fn recorded<T>(work: impl Future<Output = T>) -> (T, Vec<Read>) {
    let reads = Recorder::default();
    let done = during(&reads, work).await;
    (done, reads.all())
}

fn votes(read: &Read) -> Vec<(&str, &Said)> {
    let votes = read.votes.iter();
    votes.map(|vote| (&*vote.provider, &vote.said)).collect()
}

#[tokio::test]
async fn each_providers_word_is_recorded() {
    let scripts = [0, 1, 2, 3, 4].map(|_| Script::at(100));
    for script in &scripts {
        script.put(&tx(), honest());
    }
    let quorum = quorum(&scripts, 2);
    let head = quorum.head().await.unwrap();
    scripts[0].put(&tx(), forged());
    scripts[1].fail(Some(ReadError::Unavailable("no".into())));
    scripts[4].hang(true);
    let (answer, reads) = recorded(quorum.transaction(&tx(), &head)).await;
    assert_eq!(answer, Ok(honest()));
    let [read] = &reads[..] else {
        panic!("{reads:?}");
    };
    assert_eq!(read.question, Question::transaction(&tx(), &head));
    assert_eq!(read.answer, Shown::Transaction(Box::new(honest())));
    assert_eq!(read.required, 2);
    let [agreed, lie] = [honest(), forged()].map(|found| Said::Answer(evidence::digest(&found)));
    assert_eq!(agreed, Said::Answer(read.answer.digest()));
    let failed = Said::Failed("provider unavailable: no".into());
    assert_eq!(
        votes(read),
        [
            ("node", &lie),
            ("node#2", &failed),
            ("node#3", &agreed),
            ("node#4", &agreed),
            ("node#5", &Said::Late),
        ]
    );
    settle().await;
    // Who lied is set aside, and is not asked.
    scripts[1].fail(None);
    let (_, reads) = recorded(quorum.transaction(&tx(), &head)).await;
    assert_eq!(votes(&reads[0])[0], ("node", &Said::SetAside));
}

/// A failure may quote an answer of megabytes.
#[tokio::test]
async fn of_a_failure_few_words_are_recorded() {
    let (scripts, quorum) = three();
    let head = quorum.head().await.unwrap();
    for (why, most) in [("no".to_owned(), 30), ("x".repeat(2 << 20), 300)] {
        scripts[0].fail(Some(ReadError::Unavailable(why)));
        let (answer, reads) = recorded(quorum.transaction(&tx(), &head)).await;
        assert_eq!(answer, Ok(honest()));
        let Said::Failed(said) = &reads[0].votes[0].said else {
            panic!("{reads:?}");
        };
        let kept = said.starts_with("provider unavailable: ") && said.len() < most;
        assert!(kept, "{} bytes", said.len());
    }
}

/// What a provider says when enough others have answered is added as long as nobody has taken the reads.
#[tokio::test]
async fn a_late_word_is_added_while_the_claim_is_under_way() {
    type Change = fn(&Script);
    let said = |found: &Transaction| Said::Answer(evidence::digest(found));
    let cases: [(Change, Said); 3] = [
        (|_| {}, said(&honest())),
        (|script| script.put(&tx(), forged()), said(&forged())),
        (
            |script| script.fail(Some(ReadError::Unavailable("no".into()))),
            Said::Failed("provider unavailable: no".into()),
        ),
    ];
    for (change, wanted) in cases {
        let (scripts, quorum) = three();
        let (transaction, head) = (tx(), quorum.head().await.unwrap());
        settle().await;
        // The last of the list answers after the agreement.
        change(&scripts[2]);
        let reads = Recorder::default();
        let answer = during(&reads, quorum.transaction(&transaction, &head)).await;
        assert_eq!(answer, Ok(honest()));
        let mut taken = reads.all();
        assert_eq!(taken[0].votes[2].said, Said::Late);
        settle().await;
        taken[0].votes[2].said = wanted;
        assert_eq!(reads.all(), taken);
    }
}

#[tokio::test]
async fn a_read_that_ends_without_agreement_leaves_nothing() {
    let (scripts, quorum) = three();
    let head = quorum.head().await.unwrap();
    scripts[0].put(&tx(), forged());
    scripts[1].fail(Some(ReadError::Unavailable("no".into())));
    let (answer, reads) = recorded(quorum.transaction(&tx(), &head)).await;
    lost(answer);
    assert_eq!(reads, []);
}

#[tokio::test]
async fn what_was_recorded_answers_like_the_quorum_and_nothing_else() {
    let (scripts, quorum) = three();
    for script in &scripts {
        script.set_settled(Some(90));
        script.put_withdrawal(&vec![1].into(), WithdrawalStatus::Executed);
        let address = Address::from_parts("0xaa", vec![0xaa]);
        script.put_view(&address, &vec![2].into(), vec![3].into());
        script.put_outputs(&vec![4].into());
    }
    let head = quorum.head().await.unwrap();
    let (answers, reads) = recorded(everything(&quorum, &head)).await;
    let mut answers = answers.unwrap();
    assert_eq!(reads.len(), 8);
    for script in &scripts {
        script.fail(Some(ReadError::Unavailable("nobody is asked".into())));
    }
    let replay = Replay::new(reads.clone());
    for _ in 0..2 {
        let again = recorded(replay.answering(everything(&quorum, &head))).await;
        assert_eq!(again, (Ok(answers), reads.clone()));
        answers = again.0.unwrap();
    }
    let text = serde_json::to_string(&reads).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Read>>(&text).unwrap(), reads);
    let mut old = head.clone();
    old.block.hash = crate::B256::ZERO;
    let unknown = replay.answering(quorum.transaction(&tx(), &old)).await;
    let why = "the evidence of ethereum has no answer about the transaction";
    assert!(unknown.unwrap_err().to_string().contains(why));
    assert_eq!(replay.lacking(), [why]);
    let base = Quorum::new(&ChainId::new("base"), vec![scripts[0].provider("node")], 1).unwrap();
    assert!(
        replay
            .answering(base.transaction(&tx(), &head))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn heads_are_answered_in_their_order_and_large_answers_not_at_all() {
    let (scripts, quorum) = three();
    let (heads, mut reads) = recorded(async {
        let first = quorum.fresh_head().await.unwrap();
        scripts.iter().for_each(|script| script.mine(5));
        [first, quorum.fresh_head().await.unwrap()]
    })
    .await;
    assert_ne!(heads[0], heads[1]);
    let replay = Replay::new(reads.clone());
    for wanted in [&heads[0], &heads[1], &heads[1]] {
        assert_eq!(
            &replay.answering(quorum.fresh_head()).await.unwrap(),
            wanted
        );
    }
    let kept = [
        reads[0].answer.clone(),
        Shown::Large(reads[0].answer.digest()),
        Shown::Sequence(1),
    ];
    assert_eq!(kept[0].digest(), kept[1].digest());
    reads.truncate(1);
    for (answer, wanted) in kept
        .into_iter()
        .zip(["", "only its digest", "another kind"])
    {
        reads[0].answer = answer;
        let said = Replay::new(reads.clone())
            .answering(quorum.fresh_head())
            .await;
        let why = said
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(
            why.contains(wanted) && why.is_empty() == wanted.is_empty(),
            "{why}"
        );
    }
}
