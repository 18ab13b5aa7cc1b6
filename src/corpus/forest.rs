//! Numbers that are joined in pairs -> sets, each known by its least number. A number takes four bytes.

/// The sets so far.
#[derive(Default)]
pub(super) struct Forest {
    /// The parent of each number in the tree of its set. The root is its own parent.
    parents: Vec<u32>,
}

impl Forest {
    /// Returns `count` sets of one number each.
    pub(super) fn of(count: u32) -> Self {
        Self { parents: (0..count).collect() }
    }

    /// Adds the next number, as a set of its own.
    pub(super) fn add(&mut self) {
        self.parents.push(u32::try_from(self.parents.len()).expect("there are fewer numbers"));
    }

    pub(super) fn len(&self) -> u32 {
        self.parents.len() as u32
    }

    /// Makes one set of the sets of two numbers.
    pub(super) fn join(&mut self, one: u32, other: u32) {
        let [one, other] = [self.root(one), self.root(other)];
        // The root is the least number, so no chain becomes long: `root` shortens those that it follows.
        self.parents[one.max(other) as usize] = one.min(other);
    }

    /// Returns the least number of a set, and shortens the way to it.
    pub(super) fn root(&mut self, number: u32) -> u32 {
        let mut at = number as usize;
        while self.parents[at] as usize != at {
            let parent = self.parents[at] as usize;
            self.parents[at] = self.parents[parent];
            at = parent;
        }
        at as u32
    }
}
