//! gaoya's index, for `benches/index/main.rs`: the same documents and passes, in a separate process that is built for
//! this very machine. `benches/index/contender.rs` describes the commands.
//!
//! gaoya is used at its best: ids are `u32`, lists of up to four ids are stored inline, signatures are raw bytes. It
//! takes only the slots that its bands cover.

#[path = "../../../benches/index/contender.rs"]
mod contender;
#[path = "../../../benches/index/documents.rs"]
mod documents;

use std::error::Error;
use std::time::Instant;

use contender::{Build, Index, Plan, THRESHOLD};
use gaoya::minhash::{MinHashIndex, SmallVecContainer};

struct Gaoya(MinHashIndex<u8, u32, SmallVecContainer<u32, 4>>);

/// This index has a single writer, so there is no `INSERT_SHARED`.
impl Index for Gaoya {
    type Scratch = ();
    const BUILD: Option<Build<Self>> = Some(|index, documents| {
        let documents: Vec<(u32, Vec<u8>)> = documents.collect();
        let started = Instant::now();
        index.0.par_bulk_insert_pairs(documents);
        started.elapsed()
    });

    fn new(plan: &Plan) -> Self {
        Self(MinHashIndex::new_index(plan.bands, plan.rows, THRESHOLD))
    }

    fn slots(plan: &Plan) -> usize {
        plan.bands * plan.rows
    }

    fn insert(&mut self, number: u32, signature: &mut Vec<u8>) {
        self.0.insert(number, std::mem::take(signature));
    }

    fn check(&self, (): &mut (), query: &[u8]) -> usize {
        self.0.query_owned_return_similarity(query).len()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    contender::run::<Gaoya>(&arguments)
}
