//! Work over an answer, where it may not keep other tasks waiting: a large answer takes a second to read.

/// Bytes that are read within a millisecond or so.
const LIGHT: usize = 256 << 10;

/// What `work` over `bytes` gives: done at once, or on a thread for such work.
pub async fn carried<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if bytes <= LIGHT {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Only a panic of the work itself ends it.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
