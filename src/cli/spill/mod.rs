//! What does not fit into memory waits in temporary files: bytes (`file.rs`), documents (`documents.rs`), the keys of bands
//! in sorted runs (`key_runs.rs`), and lines in sorted runs (`line_runs.rs`).

pub(super) mod documents;
pub(super) mod file;
pub(super) mod key_runs;
pub(super) mod line_runs;
pub(super) mod lists;
