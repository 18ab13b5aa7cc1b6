//! Files of ready signatures. A collection that is exported, loaded and exported again makes equal files. A loaded
//! collection answers like the one that it was exported from, and like one into which the texts were posted. A file that
//! is wrong makes nothing, and the error names the file, the row and the column.

mod importing;
mod offline;
mod online;
mod refusals;
mod round_trip;
pub mod table;

/// The words of a document that no other `n` has.
fn text(n: u64) -> String {
    crate::support::client::words(n)
}
