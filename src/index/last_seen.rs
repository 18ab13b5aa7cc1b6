//! Place -> the time its document was last seen: four bytes a document, in chunks that never move. `due` says whether a
//! document has expired. Readers and writers take no lock. When a place is reused, its former time is no longer valid,
//! so code that acts on a time checks it again under the decision lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::place::Place;
use crate::types::{TimestampMs, overdue};

/// Times are counted in half seconds since the collection was created, rounded up, so that no document expires early.
const TICK_MS: i64 = 500;
/// Marks a time that is later than the one on disk.
const UNWRITTEN: u32 = 1 << 31;
/// The last time that can be represented, 34 years after the collection was created. Later times are stored as this
/// one.
const TICK_MAX: u32 = UNWRITTEN - 1;
/// The time to live is divided into this many parts. A last-seen time is written to disk if it is in another part than
/// the time on disk.
const PARTS_OF_TTL: i64 = 64;

/// The places in the first chunk. Each further chunk is twice as large as the one before, so 22 chunks are enough for
/// all places.
const FIRST_CHUNK_PLACES: u64 = 1024;
const CHUNKS: usize = 22;

/// The time at which the document of each place was last seen.
pub struct LastSeen {
    made: TimestampMs,
    chunks: [OnceLock<Box<[AtomicU32]>>; CHUNKS],
}

/// The work that a document's last-seen time requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Nothing,
    /// No time has become known since the time to live was set: read it from the disk.
    Read,
    /// The time is too long ago: delete the document.
    Delete,
    /// The time is later than the time on disk: write it.
    Write,
}

impl LastSeen {
    /// Makes an empty set of times, for a collection created at `made`.
    pub(super) fn new(made: TimestampMs) -> Self {
        Self { made, chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// Sets the time of a document that has just been put at the place.
    pub(super) fn set(&self, place: Place, seen: TimestampMs) {
        self.cell(place).store(self.tick(seen), Ordering::Relaxed);
    }

    /// Notes that the document was seen. Returns whether `seen` is later than the time that was known so far.
    pub fn touch(&self, place: Place, seen: TimestampMs, ttl: Duration) -> bool {
        let new = self.tick(seen);
        let part = (ttl.as_millis() as i64 / PARTS_OF_TTL / TICK_MS).clamp(1, i64::from(TICK_MAX)) as u32;
        let later = |old: u32| {
            let (tick, unwritten) = (old & TICK_MAX, old & UNWRITTEN);
            let unwritten = if tick / part == new / part { unwritten } else { UNWRITTEN };
            (new > tick).then_some(new | unwritten)
        };
        self.cell(place).fetch_update(Ordering::Relaxed, Ordering::Relaxed, later).is_ok()
    }

    /// Sets the time that was found on disk, if none is known.
    pub fn learn(&self, place: Place, seen: TimestampMs) {
        // A time that was noted in the meantime is later.
        _ = self.cell(place).compare_exchange(0, self.tick(seen), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Forgets the time of an empty place. If a document takes the place at this moment, the worst result is that its
    /// time becomes unknown.
    pub fn forget(&self, place: Place) {
        self.cell(place).store(0, Ordering::Relaxed);
    }

    /// Returns the work that is due for a place.
    pub fn due(&self, place: Place, now: TimestampMs, ttl: Duration) -> Due {
        let value = self.get(place);
        let last_seen = self.time(value & TICK_MAX);
        match value {
            0 => Due::Read,
            // `TICK_MAX` also represents all later times, so the true time is unknown. This happens if the clock of the
            // machine was decades behind when the collection was created.
            _ if value & TICK_MAX == TICK_MAX => {
                if value & UNWRITTEN != 0 {
                    Due::Write
                } else {
                    Due::Nothing
                }
            }
            _ if overdue(last_seen, now, ttl) > Duration::ZERO => Due::Delete,
            _ if value & UNWRITTEN != 0 => Due::Write,
            _ => Due::Nothing,
        }
    }

    /// Returns the time at which the document at the place was last seen, rounded up by half a second at most; `None`
    /// if it is not known.
    pub fn last_seen(&self, place: Place) -> Option<TimestampMs> {
        let tick = self.get(place) & TICK_MAX;
        (tick > 0).then(|| self.time(tick))
    }

    /// Returns the time to write to disk, and marks it as written.
    pub fn take_unwritten(&self, place: Place) -> Option<TimestampMs> {
        let value = self.cell(place).fetch_and(TICK_MAX, Ordering::Relaxed);
        (value & UNWRITTEN != 0).then(|| self.time(value & TICK_MAX))
    }

    /// Marks a time as unwritten again, because the disk refused it.
    pub fn not_written(&self, place: Place) {
        self.cell(place).fetch_or(UNWRITTEN, Ordering::Relaxed);
    }

    /// Returns the bytes that this many places take.
    pub(super) fn bytes_for(places: u64) -> u64 {
        places * size_of::<AtomicU32>() as u64
    }

    /// Converts a time to ticks. The result is at least 1, because 0 means that no time is known.
    fn tick(&self, at: TimestampMs) -> u32 {
        let since = at.0.saturating_sub(self.made.0).max(1);
        since.saturating_add(TICK_MS - 1).saturating_div(TICK_MS).min(i64::from(TICK_MAX)) as u32
    }

    fn time(&self, tick: u32) -> TimestampMs {
        TimestampMs(self.made.0 + i64::from(tick) * TICK_MS)
    }

    fn get(&self, place: Place) -> u32 {
        let (level, offset) = locate(place);
        self.chunks[level].get().map_or(0, |chunk| chunk[offset].load(Ordering::Relaxed))
    }

    fn cell(&self, place: Place) -> &AtomicU32 {
        let (level, offset) = locate(place);
        // The allocator zeroes the chunk, so pages without documents take no memory.
        let chunk = || bytemuck::allocation::zeroed_slice_box((FIRST_CHUNK_PLACES << level) as usize);
        &self.chunks[level].get_or_init(chunk)[offset]
    }
}

fn locate(place: Place) -> (usize, usize) {
    let position = u64::from(place.0) + FIRST_CHUNK_PLACES;
    let level = (position.ilog2() - FIRST_CHUNK_PLACES.ilog2()) as usize;
    (level, (position - (FIRST_CHUNK_PLACES << level)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::PLACES_MAX;

    const MADE: TimestampMs = TimestampMs(1_700_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    fn at(ms: i64) -> TimestampMs {
        TimestampMs(MADE.0 + ms)
    }

    #[test]
    fn no_document_is_overdue_early_and_none_much_too_late() {
        let seen = LastSeen::new(MADE);
        for ms in [-5000, 0, 1, 499, 500, 501, 86_400_123] {
            seen.set(Place(3), at(ms));
            let gone = ms.max(0) + 3_600_000;
            assert_eq!(seen.due(Place(3), at(gone), HOUR), Due::Nothing, "{ms}");
            assert_eq!(seen.due(Place(3), at(gone + TICK_MS + 1), HOUR), Due::Delete, "{ms}");
        }
    }

    #[test]
    fn a_time_out_of_range_becomes_the_last_one() {
        let seen = LastSeen::new(MADE);
        for far in [i64::MAX - MADE.0, i64::from(TICK_MAX) * TICK_MS * 3] {
            seen.set(Place(0), at(far));
            assert_eq!(seen.last_seen(Place(0)), Some(at(i64::from(TICK_MAX) * TICK_MS)));
            assert_eq!(seen.take_unwritten(Place(0)), None);
            // It was seen at that time or later, so it must not expire.
            assert_eq!(seen.due(Place(0), at(far.saturating_sub(MADE.0)), HOUR), Due::Nothing);
        }
    }

    #[test]
    fn times_are_noted_at_once_and_written_once_in_each_part_of_the_time_to_live() {
        let seen = LastSeen::new(MADE);
        seen.set(Place(7), at(0));
        let mut written = 0;
        for second in 1..=3600 {
            assert!(seen.touch(Place(7), at(second * 1000), HOUR));
            assert!(!seen.touch(Place(7), at(second * 1000 - 700), HOUR), "an earlier time changes nothing");
            assert_eq!(seen.last_seen(Place(7)), Some(at(second * 1000)));
            if seen.due(Place(7), at(second * 1000), HOUR) == Due::Write {
                assert_eq!(seen.take_unwritten(Place(7)), Some(at(second * 1000)));
                written += 1;
            }
        }
        assert!((60..=66).contains(&written), "written {written} times");
        assert_eq!(seen.take_unwritten(Place(7)), None);
        seen.not_written(Place(7));
        assert_eq!(seen.take_unwritten(Place(7)), Some(at(3_600_000)));
    }

    #[test]
    fn a_noted_time_overrides_the_time_on_disk() {
        let seen = LastSeen::new(MADE);
        assert_eq!(seen.due(Place(1), at(0), HOUR), Due::Read);
        seen.learn(Place(1), at(1000));
        assert_eq!(seen.last_seen(Place(1)), Some(at(1000)));
        assert!(seen.touch(Place(2), at(9000), HOUR));
        seen.learn(Place(2), at(1000));
        assert_eq!(seen.last_seen(Place(2)), Some(at(9000)));
        seen.forget(Place(2));
        assert_eq!(seen.due(Place(2), at(9000), HOUR), Due::Read);
    }

    #[test]
    fn every_place_has_a_cell() {
        assert!(locate(Place(PLACES_MAX as u32 - 1)).0 < CHUNKS);
        assert_eq!(locate(Place(0)), (0, 0));
        assert_eq!(locate(Place(1023)), (0, 1023));
        assert_eq!(locate(Place(1024)), (1, 0));
    }
}
