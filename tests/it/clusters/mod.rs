//! Stored duplicates form clusters. Each cluster is a star around its first-seen representative, whatever is inserted,
//! linked, replaced and deleted, and whenever the server stops.
//!
//! The tests choose the signatures themselves, so they decide which documents are similar. A signature has 64 slots.
//! Two documents are similar if 52 slots are equal, and there are so many bands that no such pair is ever missed.

mod given;
mod model;
mod promotions;
mod served;
mod stars;
mod writers;
