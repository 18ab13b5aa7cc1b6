//! Files of precomputed signatures. If a collection is exported, loaded and exported again, both exports are equal. A
//! loaded collection answers like the exported collection, and like a collection into which the texts were posted. A
//! faulty file creates nothing, and the error names the file, the row and the column.

mod importing;
mod offline;
mod online;
mod refusals;
mod round_trip;
pub mod table;

/// Returns the words of a document. Texts of different `n` have different words.
fn text(n: u64) -> String {
    crate::support::client::words(n)
}
