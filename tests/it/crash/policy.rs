//! The expected effect of a merge on a document, by the options of the merge.

use std::collections::BTreeMap;

use serde_json::{Value, json};

#[derive(Clone, Copy)]
pub struct Policy {
    /// Whether duplicates are stored. If not, they are skipped.
    pub stores: bool,
    /// Whether other content of an id is replaced. If not, the document is refused.
    pub replaces: bool,
}

impl Policy {
    /// Returns the values of `on_duplicate` and `on_existing`.
    pub fn options(self) -> [&'static str; 2] {
        [if self.stores { "store" } else { "skip" }, if self.replaces { "replace" } else { "conflict" }]
    }

    pub fn input(self, from: &str) -> Value {
        let [on_duplicate, on_existing] = self.options();
        json!({ "from": from, "on_duplicate": on_duplicate, "on_existing": on_existing })
    }

    /// Decides on a document as the server must decide. `merged` has the number of each id's text. Returns the outcome
    /// and, if the server reports it, whether the document is a duplicate.
    pub fn decide(self, merged: &mut BTreeMap<String, u32>, id: &str, text: u32) -> (&'static str, Option<bool>) {
        let duplicate = merged.iter().any(|(other, one)| other != id && *one == text);
        let outcome = match merged.get(id) {
            Some(there) if *there == text => return ("unchanged", None),
            Some(_) if !self.replaces => return ("refused", None),
            Some(_) if duplicate && !self.stores => {
                merged.remove(id);
                return ("removed", Some(true));
            }
            None if duplicate && !self.stores => return ("skipped", Some(true)),
            Some(_) => "replaced",
            None => "inserted",
        };
        merged.insert(id.to_owned(), text);
        (outcome, Some(duplicate))
    }
}
