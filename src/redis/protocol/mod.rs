//! The protocol by which servers insert, look up, change and delete documents in one cluster, as state machines. A machine gets
//! answers and says which commands to send next. It sends nothing, knows no clock and makes no random numbers, so
//! `model/` can try every order of events on the same code.

mod check;
mod delete;
mod faults;
mod insert;
mod known;
#[cfg(test)]
mod model;
mod others;
mod rest;
mod sweep;
mod terms;
mod update;

pub(crate) use check::{Check, Checked};
pub(crate) use delete::{Delete, Deleted};
pub(crate) use insert::{Insert, Inserted};
pub(crate) use known::How;
pub(crate) use others::{Bounds, Met};
pub(crate) use rest::{Open, Rest, left, rest_of, rest_of_replaced};
pub(crate) use sweep::{Sweep, Swept};
pub(crate) use terms::{Answer, Band, Body, Command, Found, Head, Next, Ref, Reply, State, Step, Token};
pub(crate) use update::{Update, Updated};
