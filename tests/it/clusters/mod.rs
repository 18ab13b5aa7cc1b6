//! Stored duplicates form clusters. Each cluster is a star around its first-seen representative, whatever is inserted,
//! linked, replaced and deleted, and whenever the server stops.
//!
//! Signatures are given, so a test decides which documents are similar. They have 64 slots, of which 52 must be equal,
//! and so many bands that no such pair is ever missed.

mod given;
mod model;
mod promotions;
mod served;
mod stars;
mod writers;
