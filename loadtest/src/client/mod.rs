//! Requests on a schedule -> a tally of their outcomes. This module does not know the meaning of a request.

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
