//! Where the arguments of an exchange stand in its data (the aggregator's IDL, version 6). Pure.
//!
//! The data are a discriminator, for shared accounts the number of the accounts' owner, a list of steps, and the last
//! arguments. The program reads from the front and ignores what stands behind the last argument. So the last arguments
//! are those behind the list, and nothing may follow them: what only stands at the end is not what the program reads.

/// Bytes of a step besides what its kind has: the kind, the share, and the places of what goes in and comes out.
const STEP: usize = 1 + 3;
/// Steps of a list. A transaction has no room for more.
const MOST_STEPS: u32 = 32;

/// What stands behind the list of steps. `None` where a step is of a kind that is not known, or the data end before.
pub fn behind_steps(list: &[u8]) -> Option<&[u8]> {
    let (count, mut rest) = number(list)?;
    if count > MOST_STEPS {
        return None;
    }
    for _ in 0..count {
        let (kind, fields) = rest.split_first()?;
        let step = STEP.checked_add(fields_of(*kind, fields)?)?;
        rest = rest.get(step..)?;
    }
    Some(rest)
}

/// The bytes of a kind's own fields (`Swap` in the IDL). `None` for kinds with a list that no honest way of one signer
/// needs, and for those that came later.
fn fields_of(kind: u8, fields: &[u8]) -> Option<usize> {
    match kind {
        // A side, a direction or another flag.
        8
        | 12
        | 15..=18
        | 21
        | 23
        | 24
        | 27
        | 28
        | 39
        | 58
        | 60
        | 61
        | 64
        | 85
        | 89
        | 94
        | 95
        | 104
        | 106
        | 107
        | 110
        | 116
        | 117
        | 119
        | 121
        | 125 => Some(1),
        71 | 86 => Some(2),
        42 => Some(3),
        33 | 41 => Some(4),
        44 | 45 => Some(5),
        81 | 82 => Some(8),
        87 | 118 => Some(9),
        43 => Some(10),
        29 | 122 => Some(16),
        123 => Some(48),
        // A flag, and perhaps slices of further accounts.
        47 | 103 => match fields.get(1)? {
            0 => Some(2),
            1 => slices(fields.get(2..)?)?.checked_add(2),
            _ => None,
        },
        75 => slices(fields),
        111 | 120 | 126.. => None,
        _ => Some(0),
    }
}

/// The bytes of a list of slices of accounts: each has its use and its length.
fn slices(list: &[u8]) -> Option<usize> {
    let (count, _) = number(list)?;
    usize::try_from(count).ok()?.checked_mul(2)?.checked_add(4)
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (count, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*count), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(kinds: &[&[u8]]) -> Vec<u8> {
        let count = u32::try_from(kinds.len()).unwrap();
        let mut list = count.to_le_bytes().to_vec();
        for kind in kinds {
            list.extend(*kind);
            list.extend([100, 0, 1]);
        }
        list
    }

    #[test]
    fn steps_of_known_kinds_are_passed_over() {
        let cases: [&[&[u8]]; 8] = [
            &[&[0]],
            &[&[89, 1]],
            &[&[7], &[17, 1], &[46]],
            &[&[123; 49]],
            &[&[47, 1, 0]],
            &[&[47, 1, 1, 2, 0, 0, 0, 3, 1, 4, 2]],
            &[&[75, 1, 0, 0, 0, 3, 1], &[87; 10]],
            &[],
        ];
        for kinds in cases {
            let mut list = steps(kinds);
            list.extend([9; 19]);
            assert_eq!(behind_steps(&list), Some(&[9; 19][..]), "{kinds:?}");
        }
    }

    #[test]
    fn what_is_not_known_or_ends_before_has_no_arguments() {
        let cases: [&[&[u8]]; 6] = [
            &[&[111, 0]],
            &[&[120, 0, 0, 0, 0, 0]],
            &[&[126]],
            &[&[255]],
            &[&[47, 1, 2]],
            &[&[75, 255, 255, 255, 255]],
        ];
        for kinds in cases {
            let mut list = steps(kinds);
            list.extend([9; 19]);
            assert_eq!(behind_steps(&list), None, "{kinds:?}");
        }
        assert_eq!(behind_steps(&[]), None);
        assert_eq!(behind_steps(&[1, 0, 0]), None);
        assert_eq!(behind_steps(&steps(&[&[89, 1]])[..8]), None);
        assert_eq!(behind_steps(&u32::MAX.to_le_bytes()), None);
    }
}
