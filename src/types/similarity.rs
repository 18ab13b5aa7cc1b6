//! How alike two documents are, and how that was found.

/// How a similarity was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// From the slots of two signatures.
    Estimate,
    /// From the contents themselves.
    Exact,
}

impl Method {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::Exact => "exact",
        }
    }
}

/// A Jaccard similarity with its 95 % interval, which is the similarity itself where that is exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Similarity {
    /// 0 to 1.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// How it was found.
    pub method: Method,
}

/// Distinct shingles of a document and of one like it, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    pub both: u64,
    /// In the document that was asked about.
    pub query: u64,
    /// In the one that was found.
    pub found: u64,
}

impl Overlap {
    pub fn either(self) -> u64 {
        self.query + self.found - self.both
    }

    /// The Jaccard similarity; documents without a shingle have none, and are never compared.
    pub fn similarity(self) -> Similarity {
        let value = self.both as f64 / self.either() as f64;
        Similarity { value, low: value, high: value, method: Method::Exact }
    }

    /// Share of the asked document's shingles that are in the found one.
    pub fn containment_in_match(self) -> f64 {
        self.both as f64 / self.query as f64
    }

    /// Share of the found document's shingles that are in the asked one.
    pub fn containment_of_match(self) -> f64 {
        self.both as f64 / self.found as f64
    }
}

/// How a match is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verify {
    /// By equal slots of the signatures.
    #[default]
    Estimate,
    /// By the shingles themselves.
    Exact,
}

impl Verify {
    pub const ALL: [Self; 2] = [Self::Estimate, Self::Exact];

    /// The name on the wire and on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::Exact => "exact",
        }
    }
}
