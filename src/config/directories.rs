//! The directories of the store, for commands that need nothing else of the configuration.

use std::path::PathBuf;

use super::DATA_DIR;

/// `DATA_DIR` alone, for commands that only need to find a running daemon.
pub fn data_dir(variables: impl IntoIterator<Item = (String, String)>) -> PathBuf {
    directories(variables).0
}

/// `DATA_DIR` and `JOURNAL_DIR`, for commands that need nothing else.
pub fn directories(
    variables: impl IntoIterator<Item = (String, String)>,
) -> (PathBuf, Option<PathBuf>) {
    let (mut data, mut journal) = (PathBuf::from(DATA_DIR), None);
    for (name, value) in variables {
        match name.as_str() {
            _ if value.trim().is_empty() => {}
            "DATA_DIR" => data = value.into(),
            "JOURNAL_DIR" => journal = Some(value.into()),
            _ => {}
        }
    }
    (data, journal)
}
