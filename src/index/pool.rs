//! Buckets of postings, handed out a page at a time.
//! A bucket is a cache line: twelve entries of 32 bits, a tag of eight bits for each, how many it holds, and how many
//! went past it because it was full. Pages that a table gives up are kept for the next that asks: tables grow all the
//! time, and an allocator would leave holes of every size behind.

use parking_lot::Mutex;

use super::chunks::Chunks;
use super::sync::{AtomicU64, Ordering};

/// Entries in a bucket.
pub(super) const BUCKET_ENTRIES: usize = 12;
/// Buckets in a page: the steps in which tables grow.
pub(super) const PAGE_BUCKETS: usize = 64;
const BUCKET_CELLS: usize = 8;
const PAGE_BYTES: u64 = (PAGE_BUCKETS * BUCKET_CELLS * size_of::<u64>()) as u64;

/// Tags stand in the first two cells, eight and four; then come the two counts.
const TAG_CELLS: usize = 2;
const LEN_SHIFT: u32 = 32;
const PASSED_SHIFT: u32 = 40;
/// Where the count of those that went past stays, once there: it is no longer known.
const PASSED_MAX: u64 = 0xFF;

/// All pages of some tables.
pub(super) struct Pool {
    pages: Chunks,
    free: Mutex<Free>,
    /// Bytes that lists of postings keep elsewhere.
    list_bytes: AtomicU64,
}

#[derive(Default)]
struct Free {
    /// Given up by some table.
    pages: Vec<u32>,
    /// Pages from here on were never used.
    next: u32,
}

/// Twelve entries with their tags. Writers hold the lock of the table it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Bucket<'a>(&'a [AtomicU64]);

impl Pool {
    pub(super) fn new() -> Self {
        Self { pages: Chunks::new(PAGE_BUCKETS * BUCKET_CELLS), free: Mutex::default(), list_bytes: AtomicU64::new(0) }
    }

    /// An empty page.
    pub(super) fn take(&self) -> u32 {
        let mut free = self.free.lock();
        if let Some(page) = free.pages.pop() {
            return page;
        }
        let page = free.next;
        self.pages.make(page);
        free.next += 1;
        page
    }

    /// Takes pages back.
    pub(super) fn give(&self, pages: &[u32]) {
        for &page in pages {
            (0..PAGE_BUCKETS).for_each(|at| self.bucket(page, at).clear());
        }
        self.free.lock().pages.extend_from_slice(pages);
    }

    #[inline]
    pub(super) fn bucket(&self, page: u32, at: usize) -> Bucket<'_> {
        let cells = self.pages.row(page).expect("a page that was handed out");
        Bucket(&cells[at * BUCKET_CELLS..][..BUCKET_CELLS])
    }

    /// Notes that a list took or gave back so many bytes.
    pub(super) fn lists_changed(&self, from: u64, to: u64) {
        self.list_bytes.fetch_add(to.wrapping_sub(from), Ordering::Relaxed);
    }

    /// Bytes of pages in use and of lists.
    pub(super) fn bytes(&self) -> u64 {
        let free = self.free.lock();
        (u64::from(free.next) - free.pages.len() as u64) * PAGE_BYTES + self.list_bytes.load(Ordering::Relaxed)
    }
}

impl Bucket<'_> {
    /// Entries it holds; they stand at the positions below.
    #[inline]
    pub(super) fn len(self) -> usize {
        (self.counts() >> LEN_SHIFT & 0xFF) as usize
    }

    /// Whether entries that belong here or before may stand in the next bucket.
    #[inline]
    pub(super) fn passed(self) -> bool {
        self.counts() >> PASSED_SHIFT & PASSED_MAX != 0
    }

    #[inline]
    pub(super) fn entry(self, at: usize) -> u32 {
        (self.0[TAG_CELLS + at / 2].load(Ordering::Relaxed) >> (at % 2 * 32)) as u32
    }

    /// Positions whose tag is this one, in ascending order.
    #[inline]
    pub(super) fn tagged(self, tag: u8) -> impl Iterator<Item = usize> {
        let (first, second) = (self.0[0].load(Ordering::Relaxed), self.counts());
        let (first, second) = (zero_bytes(first ^ repeat(tag)), zero_bytes(second ^ repeat(tag)) & 0x8080_8080);
        let mut positions = (gather(first) | gather(second) << 8) & ((1 << self.len()) - 1);
        std::iter::from_fn(move || {
            let at = positions.trailing_zeros();
            (positions != 0).then(|| {
                positions &= positions - 1;
                at as usize
            })
        })
    }

    /// Adds an entry; false if there is no room.
    pub(super) fn push(self, tag: u8, entry: u32) -> bool {
        let len = self.len();
        if len == BUCKET_ENTRIES {
            return false;
        }
        self.put(len, tag, entry);
        self.set_counts(self.counts() + (1 << LEN_SHIFT));
        true
    }

    /// Takes an entry out; the last one takes its position.
    pub(super) fn swap_remove(self, at: usize) {
        let last = self.len() - 1;
        self.put(at, self.tag(last), self.entry(last));
        self.set_counts(self.counts() - (1 << LEN_SHIFT));
    }

    /// Puts another entry of the same key in the place of one.
    pub(super) fn set_entry(self, at: usize, entry: u32) {
        set_bits(&self.0[TAG_CELLS + at / 2], at % 2 * 32, u64::from(u32::MAX), u64::from(entry));
    }

    /// Notes that an entry went past.
    pub(super) fn pass(self) {
        if self.counts() >> PASSED_SHIFT & PASSED_MAX < PASSED_MAX {
            self.set_counts(self.counts() + (1 << PASSED_SHIFT));
        }
    }

    /// Notes that one that had gone past is gone.
    pub(super) fn unpass(self) {
        if self.counts() >> PASSED_SHIFT & PASSED_MAX < PASSED_MAX {
            self.set_counts(self.counts() - (1 << PASSED_SHIFT));
        }
    }

    #[inline]
    pub(super) fn prefetch(self) {
        hapax_core::prefetch(&self.0[0]);
    }

    fn clear(self) {
        self.0.iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
    }

    fn tag(self, at: usize) -> u8 {
        (self.0[at / 8].load(Ordering::Relaxed) >> (at % 8 * 8)) as u8
    }

    fn put(self, at: usize, tag: u8, entry: u32) {
        set_bits(&self.0[at / 8], at % 8 * 8, 0xFF, u64::from(tag));
        self.set_entry(at, entry);
    }

    #[inline]
    fn counts(self) -> u64 {
        self.0[1].load(Ordering::Relaxed)
    }

    fn set_counts(self, cell: u64) {
        self.0[1].store(cell, Ordering::Relaxed);
    }
}

fn set_bits(cell: &AtomicU64, shift: usize, mask: u64, bits: u64) {
    cell.store(cell.load(Ordering::Relaxed) & !(mask << shift) | bits << shift, Ordering::Relaxed);
}

#[inline]
fn repeat(byte: u8) -> u64 {
    u64::from(byte) * 0x0101_0101_0101_0101
}

/// The highest bit of each byte that is 0, and no other.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    !(((word & LOW) + LOW) | word | LOW)
}

/// Bit 8i+7 becomes bit i.
#[inline]
fn gather(word: u64) -> u32 {
    ((word >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_finds_just_what_it_holds() {
        let pool = Pool::new();
        let page = pool.take();
        let bucket = pool.bucket(page, 3);
        let mut model: Vec<(u8, u32)> = Vec::new();
        for step in 0..5000_u32 {
            let random = step.wrapping_mul(2_654_435_761) >> 7;
            let tag = [0, 1, 0x7F, 0x80, 0xFF][random as usize % 5];
            if random % 7 < 4 {
                assert_eq!(bucket.push(tag, step), model.len() < BUCKET_ENTRIES);
                if model.len() < BUCKET_ENTRIES {
                    model.push((tag, step));
                }
            } else if !model.is_empty() {
                let at = random as usize / 7 % model.len();
                bucket.swap_remove(at);
                model.swap_remove(at);
            }
            assert_eq!(bucket.len(), model.len());
            for tag in [0, 1, 0x7F, 0x80, 0xFF, 5] {
                let found: Vec<_> = bucket.tagged(tag).map(|at| (at, bucket.entry(at))).collect();
                let expected: Vec<_> =
                    (0..model.len()).filter(|&at| model[at].0 == tag).map(|at| (at, model[at].1)).collect();
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn passing_is_counted_until_there_are_too_many() {
        let pool = Pool::new();
        let bucket = pool.bucket(pool.take(), 0);
        assert!(!bucket.passed());
        (0..254).for_each(|_| bucket.pass());
        (0..254).for_each(|_| bucket.unpass());
        assert!(!bucket.passed());
        (0..300).for_each(|_| bucket.pass());
        (0..300).for_each(|_| bucket.unpass());
        assert!(bucket.passed(), "after 255 nobody knows");
        assert_eq!(bucket.len(), 0);
    }

    #[test]
    fn pages_given_up_come_back_empty() {
        let pool = Pool::new();
        let page = pool.take();
        assert_eq!(pool.bytes(), PAGE_BYTES);
        pool.bucket(page, 63).push(7, 7);
        pool.give(&[page]);
        assert_eq!(pool.bytes(), 0);
        assert_eq!(pool.take(), page);
        assert_eq!(pool.bucket(page, 63).len(), 0);
    }
}
