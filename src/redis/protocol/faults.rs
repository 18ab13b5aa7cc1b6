//! Faults of the protocol that tests plant, to show that the model check finds them. Without a test there are none.

/// A fault of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Fault {
    /// A document ignores younger ones that are being inserted.
    IgnoresYounger,
    /// The postings of a band are read before the posting is written.
    ReadsFirst,
    /// A document that another one has wounded is stored without another look at the postings.
    NoSecondRead,
    /// Tokens are counted.
    CountsTokens,
    /// A record that is absent, aborted or deleted is ignored without a write.
    TrustsAbsence,
    /// A document that is stored, but not sealed, is called a duplicate without a write.
    TrustsKept,
    /// No write is waited for.
    NoWait,
    /// A write that changes nothing counts as replicated.
    TrustsNoOp,
    /// If a write was executed twice, the second answer is taken for that of another server's write.
    ForgetsItsWrites,
}

#[cfg(test)]
thread_local! {
    pub(super) static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Returns whether a test has planted this fault in this thread.
#[cfg(test)]
pub(crate) fn has(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Returns whether a test has planted this fault in this thread.
#[cfg(not(test))]
pub(crate) fn has(_: Fault) -> bool {
    false
}
