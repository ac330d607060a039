//! When a delivery is tried again, and when it is given up. Pure.
//!
//! A delivery gets a first try and ten retries; the pause is 10 s × 2ⁿ ± 20 %, at most an hour (guide: protocol 11.15).

use std::time::{Duration, UNIX_EPOCH};

/// The most tries of one delivery: the first, and ten retries.
pub const TRIES: usize = 11;
/// The longest pause in milliseconds, whatever `Retry-After` says.
pub const LONGEST: u64 = 60 * 60 * 1_000;
/// The age in milliseconds after which a delivery is not tried any more.
pub const AGE: u64 = 24 * 60 * 60 * 1_000;
/// The most deliveries that wait for one endpoint; the worker gives further ones up at once.
pub const BACKLOG: u64 = 10_000;
const FIRST: u64 = 10_000;

/// The outcome of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The receiver's status, and the time that its `Retry-After` names in unix milliseconds.
    Status(u16, Option<u64>),
    /// No answer, with the reason.
    Failed(String),
    /// The sender may not call the endpoint until it changes, with the reason.
    Barred(String),
}

/// What happens to a delivery after a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Delivered,
    /// Another try at this time, in unix milliseconds.
    Again(u64),
    /// The delivery is given up, with the reason.
    Dead(String),
}

/// What follows from the reply to try number `tries` at `now` (unix milliseconds). `random` is any number. 410 (Gone)
/// gives the delivery up at once.
pub fn after(reply: &Reply, tries: usize, now: u64, random: u64) -> Next {
    match reply {
        Reply::Status(200..=299, _) => Next::Delivered,
        Reply::Status(410, _) => Next::Dead("the receiver says 410".into()),
        Reply::Barred(why) => Next::Dead(why.clone()),
        Reply::Status(..) | Reply::Failed(_) if tries >= TRIES => {
            Next::Dead(format!("{tries} tries, the last: {}", said(reply)))
        }
        Reply::Status(_, asked) => {
            let asked = asked.unwrap_or_default().min(now + LONGEST);
            Next::Again(asked.max(now + pause(tries, random)))
        }
        Reply::Failed(_) => Next::Again(now + pause(tries, random)),
    }
}

/// The reason to give up a delivery owed since `since`; `None` while it is young enough at `now` (unix milliseconds).
pub fn too_old(since: u64, now: u64) -> Option<String> {
    let old = now.saturating_sub(since) > AGE;
    old.then(|| format!("older than {} hours", AGE / 3_600_000))
}

/// The reply as text for the operator.
pub fn said(reply: &Reply) -> String {
    match reply {
        Reply::Status(status, _) => format!("status {status}"),
        Reply::Failed(why) | Reply::Barred(why) => why.clone(),
    }
}

/// Milliseconds between try number `tries` and the next.
fn pause(tries: usize, random: u64) -> u64 {
    let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX);
    let pause = 2_u64.saturating_pow(doublings).saturating_mul(FIRST);
    let permille = 800 + random % 401;
    (pause.saturating_mul(permille) / 1_000).min(LONGEST)
}

/// The time of a `Retry-After` (seconds or a date) in unix milliseconds.
pub fn retry_after(text: &str, now: u64) -> Option<u64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(now + u64::from(seconds) * 1_000);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let since = date.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn failed() -> Reply {
        Reply::Failed("no route".into())
    }

    fn pause_of(reply: &Reply, tries: usize, random: u64) -> u64 {
        match after(reply, tries, NOW, random) {
            Next::Again(at) => at - NOW,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pauses_double_and_differ_by_a_fifth() {
        for (tries, seconds) in [(1, 10), (2, 20), (3, 40), (6, 320), (9, 2_560)] {
            assert_eq!(pause_of(&failed(), tries, 200), seconds * 1_000, "{tries}");
            assert_eq!(pause_of(&failed(), tries, 0), seconds * 800);
            assert_eq!(pause_of(&failed(), tries, 400), seconds * 1_200);
            let any = pause_of(&failed(), tries, u64::MAX);
            assert!((seconds * 800..=seconds * 1_200).contains(&any));
        }
    }

    #[test]
    fn ten_retries_then_dead_with_the_last_reason() {
        let dead = after(&failed(), 11, NOW, 0);
        assert_eq!(dead, Next::Dead("11 tries, the last: no route".into()));
        let dead = after(&Reply::Status(500, Some(NOW + 1)), 11, NOW, 0);
        assert_eq!(dead, Next::Dead("11 tries, the last: status 500".into()));
        // The last pause would be longer than an hour.
        for random in [0, 200, 400] {
            assert_eq!(pause_of(&failed(), 10, random), LONGEST, "{random}");
        }
    }

    #[test]
    fn statuses_decide() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(
                after(&Reply::Status(status, None), 11, NOW, 0),
                Next::Delivered
            );
        }
        for status in [
            100, 199, 300, 301, 302, 307, 308, 400, 401, 404, 429, 500, 503,
        ] {
            let next = after(&Reply::Status(status, None), 1, NOW, 200);
            assert_eq!(next, Next::Again(NOW + 10_000), "{status}");
        }
        let gone = after(&Reply::Status(410, None), 1, NOW, 0);
        assert_eq!(gone, Next::Dead("the receiver says 410".into()));
        let barred = Reply::Barred("only https is called".into());
        let dead = after(&barred, 1, NOW, 0);
        assert_eq!(dead, Next::Dead("only https is called".into()));
    }

    #[test]
    fn retry_after_lengthens_a_pause_up_to_the_cap() {
        for (asked, pause) in [
            (0, 10_000),
            (3_000, 10_000),
            (90_000, 90_000),
            (u64::MAX - NOW, LONGEST),
        ] {
            let reply = Reply::Status(503, Some(NOW + asked));
            assert_eq!(pause_of(&reply, 1, 200), pause, "{asked}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        for (text, at) in [
            ("120", Some(NOW + 120_000)),
            (" 0 ", Some(NOW)),
            ("Tue, 14 Nov 2023 22:15:20 GMT", Some(NOW + 120_000)),
            ("Tuesday, 14-Nov-23 22:15:20 GMT", Some(NOW + 120_000)),
            ("Thu, 01 Jan 1970 00:00:01 GMT", Some(1_000)),
            ("-5", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(retry_after(text, NOW), at, "{text:?}");
        }
    }
}
