//! Exact verification: what is reported is at or above the threshold by the shingles themselves, whatever is kept,
//! whatever the estimate said, before and after a restart, under concurrency.

mod brute_force;
mod decided;
mod served;
mod steps;
