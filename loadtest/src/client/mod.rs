//! Requests on a schedule -> a tally of what became of them. Nothing here knows what a request asks for.

mod connection;
mod drive;
mod request;
mod tally;

pub(crate) use connection::{Connection, Target};
pub(crate) use drive::{Pace, Plan, Work, drive};
pub(crate) use request::{Answer, Fate, Request};
pub(crate) use tally::{Kind, Latencies, Second, Tally, latencies};

#[cfg(test)]
pub(crate) use tally::Entry;
