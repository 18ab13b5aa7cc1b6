//! The result of a load, as JSON.

use serde::Serialize;

use super::collection::DescriptionBody;
use crate::collections::{Description, Loaded};

#[derive(Serialize)]
pub struct LoadedBody {
    documents: u64,
    links: u64,
    /// The rows without a signature.
    empty: u64,
    collection: DescriptionBody,
}

impl LoadedBody {
    pub fn new(description: Description, loaded: Loaded) -> Self {
        let Loaded { documents, links, empty } = loaded;
        Self { documents, links, empty, collection: description.into() }
    }
}
