//! Writing: one commit order per collection.
//!
//! A write takes its id's latch and a place in the queue (`turn`), is decided under one lock (`insert`, `repeat`,
//! `delete`; `decision` says what is to become of a document), changes index and clusters (`effects`), and is answered
//! once the committer has put it on disk (`commit`), or undone if the disk refuses (`undo`).

mod clusters;
mod commit;
pub(crate) mod decision;
mod delete;
mod effects;
mod insert;
mod insertion;
mod latch;
mod order;
mod pace;
mod payload_room;
mod repeat;
mod state;
mod ticket;
mod turn;
mod undo;

pub(crate) use clusters::Clusters;
pub(crate) use commit::start as start_committer;
pub(crate) use delete::{delete, expire, insert_empty};
pub(crate) use insert::insert;
pub(crate) use insertion::Insertion;
pub(crate) use order::Order;
pub(crate) use state::Writes;
pub use ticket::Ticket;
