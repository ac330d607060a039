use super::*;

fn queue(next: u64, skipped: &[u64]) -> Queue {
    let skipped = skipped.to_vec();
    Queue { next, skipped }
}

#[test]
fn a_queue_begins_where_the_chain_is_and_passes_what_others_used() {
    let jump = |next, mined| Jump { next, mined };
    assert_eq!(Queue::take(None, 7), Ok((7, queue(8, &[]), None)));
    let (behind, level) = (Queue::take(Some(queue(7, &[2])), 5), queue(8, &[2]));
    assert_eq!(behind, Ok((7, level, None)));
    let passed = (9, queue(10, &[2, 7, 8]), Some(jump(7, 9)));
    assert_eq!(Queue::take(Some(queue(7, &[2])), 9), Ok(passed));
    let farthest = Queue::take(Some(queue(7, &[])), 7 + MOST_JUMP);
    assert_eq!(farthest.map(|(nonce, ..)| nonce), Ok(23));
    let too_far = Queue::take(Some(queue(7, &[])), 8 + MOST_JUMP);
    assert_eq!(too_far, Err(jump(7, 24)));
}

#[test]
fn gaps_are_nonces_that_the_chain_waits_for_and_nobody_has() {
    let resources = |nonces: &[u64]| nonces.iter().copied().map(resource).collect::<Vec<_>>();
    let found = queue(9, &[6, 1]).standing(5, &[5, 7]);
    assert_eq!(found.gaps, resources(&[6, 8]));
    assert_eq!(found.spare, resources(&[6]));
    assert_eq!(found.tidied, Some(queue(9, &[1]).bytes()));
    assert_eq!(found.believing, None);
    let settled = queue(9, &[1]).standing(2_000, &[]);
    assert_eq!((settled.gaps, settled.spare), (vec![], vec![]));
    assert_eq!(settled.tidied, Some(queue(9, &[]).bytes()));
    let skipped: Vec<_> = [1].into_iter().chain(1_984..2_000).collect();
    assert_eq!(settled.believing, Some(queue(2_000, &skipped).bytes()));
    assert_eq!(queue(5, &[]).standing(5, &[]), Standing::default());
}

#[test]
fn a_queue_is_read_as_written_and_nothing_else_is() {
    let written = queue(300, &[7, u64::MAX]);
    assert_eq!(Queue::read(&written.bytes()), Ok(written.clone()));
    assert_eq!(nonce(&resource(7)), Ok(7));
    let mut other = written.bytes().to_vec();
    other[0] = 2;
    for foreign in [&other[..], &[], &[1], &[1, 2, 3]] {
        assert!(Queue::read(foreign).is_err());
        assert!(nonce(foreign).is_err());
    }
}
