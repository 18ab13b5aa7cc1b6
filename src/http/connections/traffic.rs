//! Decides whether a connection receives far more bytes than its requests need. In: the bytes that the connection has
//! received, and the bytes of its requests and answers. Out: whether this is a flood, and the time at which bytes last
//! arrived.
//!
//! HTTP/2 has frames that belong to no request: PING, SETTINGS, WINDOW_UPDATE and PRIORITY. A client can send them for
//! ever. Each frame costs the server work, and no limit on requests counts these frames.

use std::sync::atomic::{AtomicU64, Ordering};

/// A client may send this many bytes for each byte of its requests and answers. If each byte of a body arrives in its
/// own DATA frame and TLS record, it takes 32 bytes.
const OVERHEAD_MAX: u64 = 40;
/// A client may send this many bytes in addition to the bytes that [`OVERHEAD_MAX`] allows.
const OVERHEAD_SPARED: u64 = 1024 * 1024;
/// The bytes that HTTP/2 counts for a header field in addition to its name and its value.
pub(super) const FIELD_BYTES: u64 = 32;

/// The bytes of one connection.
#[derive(Default)]
pub(super) struct Traffic {
    received: AtomicU64,
    /// The time at which bytes last arrived, in milliseconds.
    last_received: AtomicU64,
    /// The bytes of the headers and bodies of requests, and of the bodies of answers.
    carried: AtomicU64,
}

impl Traffic {
    /// Records that bytes arrived at this time.
    pub(super) fn receive(&self, bytes: u64, now: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
        self.last_received.store(now, Ordering::Relaxed);
    }

    /// Returns the time at which bytes last arrived, in milliseconds.
    pub(super) fn last_received(&self) -> u64 {
        self.last_received.load(Ordering::Relaxed)
    }

    /// Records a part of a request or of an answer.
    pub(super) fn carry(&self, bytes: u64) {
        self.carried.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether the client has sent so many bytes outside of requests that the connection must end.
    pub(super) fn is_flood(&self) -> bool {
        let carried = self.carried.load(Ordering::Relaxed);
        self.received.load(Ordering::Relaxed) / OVERHEAD_MAX > carried.saturating_add(OVERHEAD_SPARED / OVERHEAD_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_without_requests_are_a_flood_after_a_mebibyte() {
        let traffic = Traffic::default();
        traffic.receive(OVERHEAD_SPARED, 1);
        assert!(!traffic.is_flood());
        traffic.receive(OVERHEAD_MAX, 2);
        assert!(traffic.is_flood());
    }

    #[test]
    fn a_body_of_single_bytes_is_no_flood() {
        let traffic = Traffic::default();
        for _ in 0..1_000_000 {
            traffic.receive(32, 1);
            traffic.carry(1);
        }
        assert!(!traffic.is_flood());
    }
}
