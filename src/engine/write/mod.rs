//! Writing: one commit order per collection.
//!
//! A write takes its id's latch and a place in the queue (`id_turn`). It is decided under one lock (`lock`) by
//! `insert`, `repeat` or `delete`, with the rules in `rules`, and changes index and clusters (`effects`). It is
//! answered once the committer has written it to disk (`commit`), or it is undone if the disk refuses (`undo`).

mod clusters;
mod commit;
mod commit_window;
mod delete;
mod effects;
mod holder;
mod id_turn;
mod insert;
mod insertion;
mod label_deletion;
mod latch;
mod lock;
mod merge;
mod merge_place;
mod order;
mod payload_room;
mod repeat;
pub(crate) mod rules;
mod ticket;
mod undo;
mod writes;

pub(crate) use clusters::Clusters;
pub(crate) use commit::start as start_committer;
pub(crate) use delete::{delete, expire, insert_empty};
pub(crate) use insert::insert;
pub(crate) use insertion::Insertion;
pub(crate) use label_deletion::delete_labelled;
pub(crate) use merge::{MergeAsked, begin_merge, note_refused};
pub(crate) use merge_place::MergePlace;
pub(crate) use order::Order;
pub(crate) use payload_room::PayloadBudget;
pub use ticket::Ticket;
pub(crate) use writes::Writes;
