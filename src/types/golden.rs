//! A labelled pair of texts, by which a collection's verdicts are measured.

/// Two texts, and whether they are duplicates of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldenPair {
    /// The name by which answers refer to the pair, if the client gave one.
    pub name: Option<String>,
    pub a: String,
    pub b: String,
    pub duplicate: bool,
}

impl GoldenPair {
    /// Returns the size of the texts and the name, in bytes.
    pub fn bytes(&self) -> usize {
        self.a.len() + self.b.len() + self.name.as_ref().map_or(0, String::len)
    }
}
