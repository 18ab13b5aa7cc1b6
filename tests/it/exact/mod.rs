//! Exact verification: every reported match is at or above the threshold by the shingles themselves, for every `keep`,
//! whatever the estimate, before and after a restart, and under concurrency.

mod borderline;
mod brute_force;
mod decided;
mod served;
mod steps;
