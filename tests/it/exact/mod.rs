//! Exact verification: every reported match is at or above the threshold by its shingles. This holds for every `keep`,
//! whatever the estimate is, before and after a restart, and under concurrency.

mod borderline;
mod brute_force;
mod decided;
mod served;
mod steps;
