//! The integration tests, one file a claim.
mod bounds;
mod linearizable;
mod support;
