//! Stored duplicates form clusters. Each is a star around its first-seen representative, whatever is inserted, linked,
//! replaced and deleted, and whenever the server stops.
//!
//! Signatures are given, so that a test decides which documents are similar: 64 slots, of which 52 must be equal, and
//! so many bands that no such pair is ever missed.

mod given;
mod model;
mod promotions;
mod served;
mod stars;
mod writers;
