//! The labels of documents, and the scopes of checks. Each document has a `lot`, which updates change, and a `half`,
//! which depends on its content.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hapax::types::{DocId, Label, Labels, Scope, ScopeTerm};
use rand::{Rng, RngExt};

use super::world::Of;

/// The lots that writers use.
pub const LOTS: u64 = 6;
/// The lot of documents that are not deleted by label.
pub const KEPT: u64 = LOTS;

pub fn lot(number: u64) -> Label {
    Label::new("lot", &number.to_string()).unwrap()
}

fn half(of: Of) -> Label {
    Label::new("half", &(of.1 % 2).to_string()).unwrap()
}

pub fn labels(of: Of, number: u64) -> Labels {
    Labels::new(vec![lot(number), half(of)]).unwrap()
}

/// The documents that a check may find.
#[derive(Clone, Copy, Debug, Default)]
pub struct Within {
    /// A lot, and whether documents with this lot are left out instead of found.
    pub lot: Option<(u64, bool)>,
    /// A half, and whether documents with this half are left out instead of found.
    pub half: Option<(u64, bool)>,
}

impl Within {
    pub const ALL: Self = Self { lot: None, half: None };

    pub fn random(rng: &mut impl Rng) -> Self {
        let lot = rng.random_bool(0.6).then(|| (rng.random_range(0..LOTS), rng.random_bool(0.5)));
        let half = rng.random_bool(0.4).then(|| (rng.random_range(0..2), rng.random_bool(0.5)));
        Self { lot, half }
    }

    /// Returns the scope in the form that a check takes.
    pub fn scope(self) -> Option<Arc<Scope>> {
        let lot = self.lot.map(|(number, lacks)| ScopeTerm { label: lot(number), lacks });
        let half = self.half.map(|(number, lacks)| ScopeTerm { label: half((0, number)), lacks });
        let terms: Vec<ScopeTerm> = lot.into_iter().chain(half).collect();
        (!terms.is_empty()).then(|| Arc::new(Scope::new(terms).unwrap()))
    }

    /// Returns whether a document with these labels is in the scope.
    pub fn takes(self, labels: Option<&Labels>) -> bool {
        let meets = |name: &str, (number, lacks): (u64, bool)| {
            (labels.and_then(|labels| labels.get(name)) == Some(number.to_string().as_str())) != lacks
        };
        self.lot.is_none_or(|lot| meets("lot", lot)) && self.half.is_none_or(|half| meets("half", half))
    }
}

/// All lots that were ever sent with an id and a content, by id and content.
#[derive(Default)]
pub struct Sent(Mutex<BTreeMap<(DocId, Of), Vec<u64>>>);

impl Sent {
    /// Records a document before it is sent.
    pub fn note(&self, id: &DocId, of: Of, lot: u64) {
        let mut all = self.0.lock().unwrap();
        let lots = all.entry((id.clone(), of)).or_default();
        if !lots.contains(&lot) {
            lots.push(lot);
        }
    }

    /// Returns whether a document with this id, and with a content for which `is_equal` returns true, may have been in
    /// the scope at some time.
    pub fn may_be_in(&self, id: &DocId, is_equal: impl Fn(Of) -> bool, within: Within) -> bool {
        let all = self.0.lock().unwrap();
        let all = all.range((id.clone(), Of::default())..).take_while(|((other, _), _)| other == id);
        let mut equal = all.filter(|((_, of), _)| is_equal(*of));
        equal.any(|((_, of), lots)| lots.iter().any(|&lot| within.takes(Some(&labels(*of, lot)))))
    }
}
