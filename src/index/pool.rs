//! Buckets of postings, handed out in pages. Here a bucket is a cache line, not all documents of one band key. A bucket
//! has twelve entries of 32 bits. Each entry has a tag of eight bits, and one bit that says whether the entry belongs
//! to an earlier bucket. A bucket also has two numbers: the number of its entries, and the number of entries that went
//! to a later bucket because this one was full. Pages that a table returns are kept for the next request: tables grow
//! all the time, and an allocator would leave unused gaps of every size.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Zeroable;
use parking_lot::Mutex;

use super::ahead;
use super::chunks::LINE_BYTES;

/// The entries in a bucket.
pub(super) const BUCKET_ENTRIES: usize = 12;
/// The buckets in a page. Tables grow in steps of a page.
pub(super) const PAGE_BUCKETS: usize = 64;
/// The number of pages in the first slab, and the maximum number of pages in a slab (64 MiB). Each further slab is as
/// large as all slabs before it together, up to the maximum. Pages that are not used yet take no memory.
const SLAB_PAGES: [usize; 2] = [16, 1 << 14];
/// When the count of passed entries reaches this value, it stays there, because it is no longer exact.
const PASSED_MAX: u8 = u8::MAX;

/// Twelve entries with their tags.
#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Bucket {
    tags: [u8; BUCKET_ENTRIES],
    len: u8,
    passed: u8,
    /// One bit for each entry: whether the entry is a stray, which belongs to an earlier bucket.
    strays: u16,
    entries: [u32; BUCKET_ENTRIES],
}

const _: () = assert!(size_of::<Bucket>() == LINE_BYTES);

/// The pages of some tables.
#[derive(Default)]
pub(super) struct Pool {
    pages: Mutex<Pages>,
    used: AtomicU64,
    /// The bytes that lists of postings take outside of pages.
    list_bytes: AtomicU64,
}

#[derive(Default)]
struct Pages {
    free: Vec<Page>,
    made: usize,
    /// The newest slab. Its pages from `next` to `end` have not been handed out.
    slab: Option<Arc<Slab>>,
    next: usize,
    end: usize,
}

/// Some buckets, owned exclusively.
pub(super) struct Page {
    buckets: NonNull<[Bucket; PAGE_BUCKETS]>,
    _slab: Arc<Slab>,
}

/// Zeroed memory for pages, with room to align them to a cache line.
struct Slab(NonNull<[u64]>);

impl Pool {
    pub(super) fn take(&self) -> Page {
        self.used.fetch_add(1, Ordering::Relaxed);
        self.pages.lock().take()
    }

    pub(super) fn give(&self, mut pages: Vec<Page>) {
        pages.iter_mut().for_each(|page| page.fill(Bucket::zeroed()));
        self.used.fetch_sub(pages.len() as u64, Ordering::Relaxed);
        self.pages.lock().free.extend(pages);
    }

    /// Notes that the bytes of a list changed from `from` to `to`.
    pub(super) fn lists_changed(&self, from: u64, to: u64) {
        self.list_bytes.fetch_add(to.wrapping_sub(from), Ordering::Relaxed);
    }

    /// Returns the bytes of pages in use and of lists.
    pub(super) fn bytes(&self) -> u64 {
        let pages = self.used.load(Ordering::Relaxed) * size_of::<[Bucket; PAGE_BUCKETS]>() as u64;
        pages + self.list_bytes.load(Ordering::Relaxed)
    }
}

impl Pages {
    fn take(&mut self) -> Page {
        if let Some(page) = self.free.pop() {
            return page;
        }
        if self.next == self.end {
            let pages = self.made.clamp(SLAB_PAGES[0], SLAB_PAGES[1]);
            self.slab = Some(Arc::new(Slab::new(pages)));
            (self.next, self.end) = (0, pages);
            self.made += pages;
        }
        let slab = self.slab.as_ref().expect("the slab has just been made, or has pages left");
        self.next += 1;
        Page { buckets: slab.page(self.next - 1), _slab: Arc::clone(slab) }
    }
}

impl Slab {
    fn new(pages: usize) -> Self {
        let words = (pages * size_of::<[Bucket; PAGE_BUCKETS]>() + LINE_BYTES) / size_of::<u64>();
        // The slab is allocated as words and not as buckets. For buckets, the allocator would write zeros over memory
        // that the system has zeroed already.
        let words = Box::leak(bytemuck::allocation::zeroed_slice_box::<u64>(words));
        Self(NonNull::from(words))
    }

    fn page(&self, number: usize) -> NonNull<[Bucket; PAGE_BUCKETS]> {
        let start = self.0.cast::<u8>();
        let offset = start.align_offset(LINE_BYTES) + number * size_of::<[Bucket; PAGE_BUCKETS]>();
        assert!(offset + size_of::<[Bucket; PAGE_BUCKETS]>() <= self.0.len() * size_of::<u64>(), "a page of this slab");
        let end = start.addr().get() + self.0.len() * size_of::<u64>();
        ahead::used(start.addr().get() + offset, size_of::<[Bucket; PAGE_BUCKETS]>(), end);
        // SAFETY: the page is within the slab, as has just been checked.
        unsafe { start.add(offset) }.cast()
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box. Each page keeps its slab alive, so all pages have been dropped.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: a slab owns its memory, and any thread may drop it, because no page refers to it any longer.
unsafe impl Send for Slab {}
// SAFETY: a shared slab hands out addresses of pages and does not read the pages.
unsafe impl Sync for Slab {}
// SAFETY: a page owns its buckets, which are plain numbers: each page is handed out once and returned whole.
unsafe impl Send for Page {}
// SAFETY: a shared page is only read: writing takes `&mut Page`, and no two pages have a bucket in common.
unsafe impl Sync for Page {}

impl Deref for Page {
    type Target = [Bucket; PAGE_BUCKETS];

    #[inline]
    fn deref(&self) -> &Self::Target {
        // SAFETY: aligned and within a slab that lives as long as the page; initialized to zeros, which are a valid
        // bucket; no other page has these buckets.
        unsafe { self.buckets.as_ref() }
    }
}

impl DerefMut for Page {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: aligned and within a slab that lives as long as the page; initialized to zeros, which are a valid
        // bucket; no other page has these buckets, and `&mut self` is the only way to this page.
        unsafe { self.buckets.as_mut() }
    }
}

impl Bucket {
    #[inline]
    pub(super) fn entries(&self) -> &[u32] {
        &self.entries[..usize::from(self.len).min(BUCKET_ENTRIES)]
    }

    /// Returns the entries with their tags, and whether they are strays.
    #[inline]
    pub(super) fn tags(&self) -> impl Iterator<Item = (u8, u32, bool)> {
        self.entries().iter().enumerate().map(|(at, &entry)| (self.tags[at], entry, self.strays & 1 << at != 0))
    }

    /// Returns whether entries that belong here or in an earlier bucket may be in the next bucket.
    #[inline]
    pub(super) fn passed(&self) -> bool {
        self.passed != 0
    }

    /// Returns whether a later bucket may have entries that belong here or in an earlier bucket. Also returns true if
    /// this bucket is full, because the next entry must go to a later bucket.
    #[inline]
    pub(super) fn overflows(&self) -> bool {
        self.passed() | (usize::from(self.len) == BUCKET_ENTRIES)
    }

    /// Returns the positions with this tag, in ascending order, with the entries there.
    #[inline]
    pub(super) fn tagged(&self, tag: u8) -> impl Iterator<Item = (usize, u32)> {
        let mut positions = self.positions(tag);
        std::iter::from_fn(move || {
            if positions == 0 {
                return None;
            }
            let at = positions.trailing_zeros() as usize % 16;
            positions &= positions - 1;
            Some((at, *self.entries.get(at)?))
        })
    }

    /// Returns true only if no entry that belongs here has this tag. Also returns false if entries went to a later
    /// bucket, because those entries are not looked at.
    #[inline]
    pub(super) fn has_none(&self, tag: u8) -> bool {
        !self.passed() && self.positions(tag) == 0
    }

    /// Returns a bit for each entry, which says whether the entry has this tag.
    #[inline]
    fn positions(&self, tag: u8) -> u32 {
        equal_tags(self.tags, tag) & ((1 << self.len) - 1)
    }

    /// Adds an entry, which is a stray if it belongs to an earlier bucket. Returns false if there is no room.
    #[inline]
    pub(super) fn push(&mut self, tag: u8, entry: u32, is_stray: bool) -> bool {
        let len = usize::from(self.len);
        if len >= BUCKET_ENTRIES {
            return false;
        }
        (self.tags[len], self.entries[len]) = (tag, entry);
        self.strays |= u16::from(is_stray) << len;
        self.len += 1;
        true
    }

    /// Removes an entry. The last entry takes its position.
    pub(super) fn swap_remove(&mut self, at: usize) {
        self.len -= 1;
        let last = usize::from(self.len);
        (self.tags[at], self.entries[at]) = (self.tags[last], self.entries[last]);
        let stray = self.strays >> last & 1;
        self.strays = self.strays & !(1 << at | 1 << last) | if at == last { 0 } else { stray << at };
    }

    /// Replaces an entry with another of the same key.
    pub(super) fn set_entry(&mut self, at: usize, entry: u32) {
        self.entries[at] = entry;
    }

    /// Notes that an entry passed this bucket and went to a later one.
    pub(super) fn pass(&mut self) {
        self.passed = self.passed.saturating_add(1);
    }

    /// Notes that an entry which had passed this bucket was removed.
    pub(super) fn unpass(&mut self) {
        if self.passed < PASSED_MAX {
            self.passed -= 1;
        }
    }
}

/// Compares each of `tags` with `tag`. Returns a bit for each, which is set if the two are equal.
#[inline]
fn equal_tags(tags: [u8; BUCKET_ENTRIES], tag: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
        let [first, second] = words(tags);
        // SAFETY: every x86-64 processor has SSE2.
        let equal = unsafe {
            let tags = _mm_set_epi64x(second as i64, first as i64);
            _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(tag as i8)))
        };
        equal as u32 & ((1 << BUCKET_ENTRIES) - 1)
    }
    #[cfg(not(target_arch = "x86_64"))]
    equal_tags_anywhere(tags, tag)
}

/// Like [`equal_tags`], on every processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn equal_tags_anywhere(tags: [u8; BUCKET_ENTRIES], tag: u8) -> u32 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let equal = words(tags).map(|word| {
        let word = word ^ (u64::from(tag) * 0x0101_0101_0101_0101);
        // The highest bit of each byte that is 0, and no other bits.
        let zeros = !(((word & LOW) + LOW) | word | LOW);
        // Bit 8i+7 becomes bit i.
        ((zeros >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    });
    (equal[0] | equal[1] << 8) & ((1 << BUCKET_ENTRIES) - 1)
}

/// Returns the tags in two words, padded with zeros.
#[inline]
fn words([t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, ta, tb]: [u8; BUCKET_ENTRIES]) -> [u64; 2] {
    [[t0, t1, t2, t3, t4, t5, t6, t7], [t8, t9, ta, tb, 0, 0, 0, 0]].map(u64::from_le_bytes)
}

#[cfg(all(test, not(hapax_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_finds_just_what_it_holds() {
        let mut bucket = Bucket::zeroed();
        let mut model: Vec<(u8, u32, bool)> = Vec::new();
        // Miri is a thousand times slower.
        for step in 0..if cfg!(miri) { 100 } else { 5000_u32 } {
            let random = step.wrapping_mul(2_654_435_761) >> 7;
            let tag = [0, 1, 0x7F, 0x80, 0xFF][random as usize % 5];
            if random % 7 < 4 {
                let is_stray = random % 3 == 0;
                assert_eq!(bucket.push(tag, step, is_stray), model.len() < BUCKET_ENTRIES);
                if model.len() < BUCKET_ENTRIES {
                    model.push((tag, step, is_stray));
                }
            } else if !model.is_empty() {
                let at = random as usize / 7 % model.len();
                bucket.swap_remove(at);
                model.swap_remove(at);
            }
            assert_eq!(bucket.entries(), model.iter().map(|&(_, entry, _)| entry).collect::<Vec<_>>());
            let tags: Vec<_> = bucket.tags().collect();
            assert_eq!(tags, model);
            for tag in [0, 1, 0x7F, 0x80, 0xFF, 5] {
                let found: Vec<_> = bucket.tagged(tag).collect();
                let tagged = |&at: &usize| model[at].0 == tag;
                let expected: Vec<_> = (0..model.len()).filter(tagged).map(|at| (at, model[at].1)).collect();
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn equal_tags_are_the_same_on_every_processor() {
        for step in 0..if cfg!(miri) { 50 } else { 5000_u64 } {
            let random = hapax_core::fmix64(step);
            let tags: [u8; BUCKET_ENTRIES] =
                std::array::from_fn(|at| [0, 1, 0x7F, 0x80, 0xFF][(random >> at) as usize % 5]);
            for tag in [0, 1, 0x7F, 0x80, 0xFF, 5] {
                let expected = (0..BUCKET_ENTRIES).filter(|&at| tags[at] == tag).fold(0, |bits, at| bits | 1 << at);
                assert_eq!((equal_tags(tags, tag), equal_tags_anywhere(tags, tag)), (expected, expected));
            }
        }
    }

    #[test]
    fn passing_is_counted_until_there_are_too_many() {
        let mut bucket = Bucket::zeroed();
        assert!(!bucket.passed());
        (0..254).for_each(|_| bucket.pass());
        (0..254).for_each(|_| bucket.unpass());
        assert!(!bucket.passed());
        (0..300).for_each(|_| bucket.pass());
        (0..300).for_each(|_| bucket.unpass());
        assert!(bucket.passed(), "after 255 the count is unknown");
    }

    #[test]
    fn pages_do_not_overlap_and_come_back_empty() {
        let pool = Pool::default();
        let mut pages: Vec<Page> = (0..100).map(|_| pool.take()).collect();
        for (number, page) in pages.iter_mut().enumerate() {
            page.iter_mut().for_each(|bucket| assert!(bucket.push(7, number as u32, false)));
        }
        for (number, page) in pages.iter().enumerate() {
            assert_eq!(std::ptr::from_ref(&page[0]).addr() % LINE_BYTES, 0);
            assert!(page.iter().all(|bucket| bucket.entries() == [number as u32]));
        }
        assert_eq!(pool.bytes(), 100 * 4096);
        pool.give(pages);
        assert_eq!(pool.bytes(), 0);
        let again = pool.take();
        drop(pool);
        assert!(again.iter().all(|bucket| bucket.entries().is_empty()), "a page keeps its memory");
    }
    /// Pages are written by the thread that owns them, read by all threads, returned by any thread, and outlive their
    /// pool.
    #[test]
    fn pages_go_between_threads() {
        const THREADS: u32 = 3;
        // These are more pages than the first slab has, so that different threads make and free slabs.
        let pages_each = if cfg!(miri) { 8 } else { 200 };
        let pool = Pool::default();
        let fill = |thread: u32| {
            let mut pages: Vec<Page> = (0..pages_each).map(|_| pool.take()).collect();
            for page in &mut pages {
                page.iter_mut().step_by(9).for_each(|bucket| assert!(bucket.push(1, thread, false)));
            }
            let back = pages.split_off(pages.len() / 2);
            pool.give(back);
            pages
        };
        let filled: Vec<(u32, Vec<Page>)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|thread| (thread, scope.spawn(move || fill(thread)))).collect();
            threads.into_iter().map(|(thread, pages)| (thread, pages.join().expect("no thread panics"))).collect()
        });
        drop(pool);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for (thread, pages) in &filled {
                        assert!(
                            pages.iter().all(|page| page[0].entries() == [*thread] && page[1].entries().is_empty())
                        );
                    }
                });
            }
        });
        for (_, pages) in filled {
            std::thread::spawn(move || drop(pages)).join().expect("freeing a slab does not panic");
        }
    }
}
