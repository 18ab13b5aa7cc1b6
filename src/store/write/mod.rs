//! Changes -> disk: the one who writes to a collection's file, and the thread beside it that moves the log into the
//! database. Must never know of the index, nor of who waits for a commit.

mod batch;
pub(in crate::store) mod checkpoint;
mod checkpointer;
mod documents;
mod emptying;
pub(in crate::store) mod log_bound;
mod poison;
pub(in crate::store) mod promotion;
mod touch;
mod update;
pub(in crate::store) mod writer;
