//! The files of a corpus on this machine: read and signed chunk by chunk, and written when the result is complete. Verbs
//! that need no server use this.

pub(super) mod columns;
pub(super) mod format;
pub(super) mod histogram;
pub(super) mod kept;
pub(super) mod kept_records;
pub(super) mod named;
pub(super) mod order;
pub(super) mod output;
pub(super) mod picture;
pub(super) mod rank;
pub(super) mod settings;
pub(super) mod signing;
pub(super) mod table;
