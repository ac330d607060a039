//! The combinations of several lists of signatures, one of each.

/// Every way to take one item of each list; the last list varies fastest. Lazy: the number of ways is the product of
/// the lengths.
pub fn combinations<T>(lists: &[Vec<T>]) -> impl Iterator<Item = Vec<&T>> {
    let mut next = Some(vec![0; lists.len()]);
    std::iter::from_fn(move || {
        let row = next.take()?;
        let taken = lists.iter().zip(&row).map(|(list, at)| list.get(*at));
        let taken = taken.collect::<Option<Vec<_>>>()?;
        next = following(lists, row);
        Some(taken)
    })
}

fn following<T>(lists: &[Vec<T>], mut row: Vec<usize>) -> Option<Vec<usize>> {
    for (list, at) in lists.iter().zip(&mut row).rev() {
        *at += 1;
        if *at < list.len() {
            return Some(row);
        }
        *at = 0;
    }
    None
}
