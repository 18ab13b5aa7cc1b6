//! The similarity of two documents, and how it was computed.

/// How a similarity was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Estimated from the slots of two signatures.
    Estimate,
    /// Computed from the contents themselves.
    Exact,
}

impl Method {
    /// Returns the name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::Exact => "exact",
        }
    }
}

/// A Jaccard similarity with its 95 % interval. If the similarity is exact, both ends of the interval equal it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Similarity {
    /// The similarity, from 0 to 1.
    pub value: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
    pub method: Method,
}

/// The numbers of distinct shingles of two documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    pub both: u64,
    /// In the document of the request.
    pub query: u64,
    /// In the document that was found.
    pub found: u64,
}

impl Overlap {
    pub fn either(self) -> u64 {
        self.query + self.found - self.both
    }

    /// Returns the Jaccard similarity. A document without shingles has no similarity, and is never compared.
    pub fn similarity(self) -> Similarity {
        let value = self.both as f64 / self.either() as f64;
        Similarity { value, low: value, high: value, method: Method::Exact }
    }

    /// Returns the share of the query's shingles that the match has too.
    pub fn containment_in_match(self) -> f64 {
        self.both as f64 / self.query as f64
    }

    /// Returns the share of the match's shingles that the query has too.
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
    /// By the shingles themselves if the estimate is too near to the threshold, otherwise by equal slots.
    Borderline,
    /// By the shingles themselves.
    Exact,
}

impl Verify {
    pub const ALL: [Self; 3] = [Self::Estimate, Self::Borderline, Self::Exact];

    /// Whether shingles are compared, always or sometimes.
    pub fn compares_shingles(self) -> bool {
        self != Self::Estimate
    }

    /// Returns the name in the API and on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            Self::Borderline => "borderline",
            Self::Exact => "exact",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verify| verify.as_str() == name)
    }
}

/// Rounds a ratio to six decimals; no estimate is more precise.
pub fn ratio(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_six_decimals() {
        assert_eq!(ratio(0.914_062_499), 0.914_062);
        assert_eq!(ratio(1.0), 1.0);
    }
}
