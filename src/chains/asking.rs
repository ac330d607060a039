//! Who asks, for what is shared among all who ask: half of it is for those who have a key.

use std::future::Future;

tokio::task_local! {
    static KEYED: bool;
}

/// Does `work` for somebody who has a key, or none.
pub async fn by<T>(keyed: bool, work: impl Future<Output = T>) -> T {
    KEYED.scope(keyed, work).await
}

/// Whether what is done now is done for somebody with a key; not where nobody said so.
pub fn is_keyed() -> bool {
    KEYED.try_with(|keyed| *keyed).unwrap_or_default()
}

/// Whether what is done now is done for somebody without a key; not where nobody said so.
pub fn is_stranger() -> bool {
    KEYED.try_with(|keyed| !keyed).unwrap_or_default()
}
