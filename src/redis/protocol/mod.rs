//! The protocol by which servers insert, look up, change and delete documents in one cluster, as state machines. A machine gets
//! answers and says which commands to send next. It sends nothing, knows no clock and makes no random numbers, so
//! `model/` can try every order of events on the same code.

mod check;
mod delete;
mod faults;
mod insert;
#[cfg(test)]
mod model;
mod others;
mod terms;
mod update;

pub(crate) use check::{Check, Checked};
pub(crate) use delete::{Delete, rest_of};
pub(crate) use insert::{Insert, Inserted};
pub(crate) use others::Bounds;
pub(crate) use terms::{Answer, Band, Body, Command, Found, Head, Next, Ref, Reply, State, Step, Token};
pub(crate) use update::{Update, Updated};
