//! Targets -> banding, and the probability that a banding finds a pair. More bands find more candidates; more rows in a
//! band find fewer.

mod areas;
mod choice;
mod curve;
mod defaults;
mod probability;
mod signature;
mod simulate;
mod spread;
mod unrelated;

pub use areas::smallest_areas;
pub use choice::{Asked, Choice, NoBanding, Targets, choose, choose_among, weigh};
pub use curve::{CurvePoints, similarity_at, steepest};
pub use defaults::{default_banding, default_banding_of_format_2};
pub use probability::{
    candidate_probability, certain_min, matching_probability, slot_agreement, survivor_min, verdict_probability,
};
pub use signature::{index_bytes, standard_error};
pub use simulate::{SimulatedPoint, Simulation, simulate};
pub use spread::SketchedPair;
pub use unrelated::Unrelated;
