//! Texts of groups. All texts of a group are duplicates of each other, and of no text of another group.

/// A text of a group, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    pub group: u64,
    pub variant: u64,
}

const WORDS: u64 = 300;

impl Content {
    /// Returns the text: the words of the group, one of which is changed.
    pub fn text(self) -> String {
        let Self { group, variant } = self;
        let word = |at: u64| if at == variant { format!("changed{variant}") } else { format!("g{group}w{at}") };
        (0..WORDS).map(word).collect::<Vec<_>>().join(" ")
    }

    /// Returns the metadata, which names the numbers.
    pub fn metadata(self) -> serde_json::Value {
        serde_json::json!({"group": self.group, "variant": self.variant})
    }

    /// Reads the metadata of a document.
    pub fn of(metadata: &serde_json::Value) -> Self {
        let number = |name: &str| metadata[name].as_u64().unwrap_or_else(|| panic!("not sent: {metadata}"));
        Self { group: number("group"), variant: number("variant") }
    }
}
