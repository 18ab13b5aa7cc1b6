//! Claims about the whole service, each tested against the real thing. One binary, so that it links once.
#![allow(clippy::print_stderr, unreachable_pub)]

mod durability;
mod support;
