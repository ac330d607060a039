//! The case families that are refused here although the reference answers them: lenient parsing
//! that lets one thing be spelled in several ways, or that guesses what the caller meant.
//!
//! A family is recognised by its note, which starts with `QUIRK` and contains `note`.

/// One row of the table: cases of `file` (`*`: any) whose note contains `note` are refused.
pub struct Family {
    pub file: &'static str,
    pub note: &'static str,
    #[allow(dead_code)]
    pub reason: &'static str,
}

/// Every family that is refused on purpose. A listed case that is answered is a failure.
pub const REFUSED: &[Family] = &[];

/// Whether a case with this note must be refused.
pub fn refused(file: &str, note: &str) -> bool {
    note.starts_with("QUIRK")
        && REFUSED
            .iter()
            .any(|row| (row.file == "*" || row.file == file) && note.contains(row.note))
}
