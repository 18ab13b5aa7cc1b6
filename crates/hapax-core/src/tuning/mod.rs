//! Targets -> banding, and the probability that a banding finds a pair. More bands find more candidates; more rows in a
//! band find fewer.

mod choice;
mod defaults;
mod probability;
mod simulate;
mod spread;

pub use choice::{Asked, Choice, NoBanding, Targets, choose};
pub use defaults::{default_banding, default_banding_of_format_2};
pub use probability::{candidate_probability, matching_probability, slot_agreement, survivor_min, verdict_probability};
pub use simulate::{SimulatedPoint, Simulation, simulate};
pub use spread::SketchedPair;
