//! Key -> bucket and tag in a shard, and back: a bucket and a tag determine the first bits of a key. Knows nothing of
//! entries or pages.
//!
//! The first `depth` bits of a key select the shard. The other bits are read as a fraction between 0 and 1. For
//! example, in a shard of 100 buckets, the key 0.1234 is multiplied by 100, which yields 12.34. The key therefore
//! belongs to bucket 12. Its tag is 87: the remaining fraction, 0.34, times 256, rounded down. The keys of the shard
//! are thus divided into 100 * 256 equal *steps*. Keys with the same bucket and the same tag are in the same step, and
//! the tag is the last eight bits of the step's number. If the shard grows to 150 buckets, the steps stay as they are.
//! Bucket 12 and tag 87 determine step 3159, which contains the keys from 0.12340 to 0.12344. All of these belong to
//! bucket 18, so the entry moves there. The key itself is needed only if a boundary between two new buckets is in the
//! step, or if an entry is not in its own bucket. With each growth, tags become less precise, because the keys of one
//! bucket have fewer different tags. So after a few growths, each entry gets a new tag.

/// The maximum of `buckets` divided by `tag_buckets`. If there would be more buckets, all entries get new tags.
const GROWTH_MAX: u64 = 3;
/// The number of different tags.
const TAGS: u64 = 1 << u8::BITS;

/// How the keys of a shard determine buckets and tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    buckets: u32,
    /// The number of buckets that tags are made for.
    tag_buckets: u32,
    depth: u8,
}

impl Layout {
    /// Makes the layout of a shard that `depth` bits of a key select.
    pub(super) fn new(depth: u8, buckets: usize) -> Self {
        let buckets = u32::try_from(buckets).expect("a shard has fewer entries than there are places");
        Self { buckets, tag_buckets: buckets, depth }
    }

    /// Returns how many bits of a key select the shard.
    pub(super) fn depth(self) -> u8 {
        self.depth
    }

    #[inline]
    pub(super) fn buckets(self) -> usize {
        self.buckets as usize
    }

    /// Returns the bucket that a key belongs to.
    #[inline]
    pub(super) fn home(self, key: u64) -> usize {
        ((u128::from(key << self.depth) * u128::from(self.buckets)) >> 64) as usize
    }

    #[inline]
    pub(super) fn tag(self, key: u64) -> u8 {
        ((key << self.depth).wrapping_mul(u64::from(self.tag_buckets)) >> (u64::BITS - u8::BITS)) as u8
    }

    /// Returns whether a key belongs to the second half of the shard.
    #[inline]
    pub(super) fn is_in_second_half(self, key: u64) -> bool {
        key << self.depth >> 63 == 1
    }

    /// Returns the layout of the shard with this many buckets. Entries keep their tags if these stay precise enough.
    pub(super) fn resized(self, buckets: usize) -> Self {
        let new = Self::new(self.depth, buckets);
        let kept = Self { tag_buckets: self.tag_buckets, ..new };
        if kept.has_fine_tags() { kept } else { new }
    }

    /// Returns the layout of one half of the shard, with this many buckets. Entries keep their tags if possible.
    pub(super) fn halved(self, buckets: usize) -> Self {
        let half = Self { tag_buckets: self.tag_buckets / 2, depth: self.depth + 1, ..self };
        if self.tag_buckets.is_multiple_of(2) { half.resized(buckets) } else { Self::new(half.depth, buckets) }
    }

    /// Returns whether entries have the same tags as in the layout from which this one was made.
    pub(super) fn has_tags_of(self, earlier: Self) -> bool {
        self.tag_buckets << (self.depth - earlier.depth) == earlier.tag_buckets
    }

    /// Returns whether the number of buckets that tags are made for is at most the number of buckets, and not much
    /// smaller.
    fn has_fine_tags(self) -> bool {
        let (buckets, tag_buckets) = (u64::from(self.buckets), u64::from(self.tag_buckets));
        tag_buckets <= buckets && buckets <= tag_buckets * GROWTH_MAX
    }

    /// Returns the number of steps.
    #[inline]
    pub(super) fn steps(self) -> u64 {
        u64::from(self.tag_buckets) * TAGS
    }

    /// Returns a function from a tag to the step of all keys that have the tag and belong to this bucket. The function
    /// returns `None` if these keys may have different steps. It must not be used for entries that belong to another
    /// bucket.
    #[inline]
    pub(super) fn steps_in(self, bucket: usize) -> impl Fn(u8) -> Option<u64> {
        let (bucket, buckets) = (bucket as u64, u64::from(self.buckets));
        let (first, end) = (bucket * self.steps() / buckets, ((bucket + 1) * self.steps()).div_ceil(buckets));
        move |tag| {
            let step = first + u64::from(tag.wrapping_sub(first as u8));
            debug_assert!(step < end, "an entry in its own bucket has a tag of this bucket");
            (step + TAGS >= end).then_some(step)
        }
    }

    /// Returns the bucket that all keys of a step belong to; `None` if they belong to different buckets.
    #[inline]
    pub(super) fn home_of_step(self, step: u64) -> Option<usize> {
        let (steps, buckets) = (self.steps(), u64::from(self.buckets));
        let home = step * buckets / steps;
        ((step + 1) * buckets <= (home + 1) * steps).then_some(home as usize)
    }
}

#[cfg(all(test, not(hapax_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_holds() {
        let key = (0.1234 * 2_f64.powi(64)) as u64;
        let (before, tag) = (Layout::new(0, 100), (0.34 * 256.0) as u8);
        assert_eq!((before.home(key), before.tag(key)), (12, tag));
        assert_eq!(before.steps_in(12)(tag), Some(3159));
        let after = before.resized(150);
        assert!(after.has_tags_of(before));
        assert_eq!((after.home_of_step(3159), after.home(key), after.tag(key)), (Some(18), 18, tag));
    }

    #[test]
    fn entries_get_new_tags_once_the_old_ones_tell_too_little() {
        let made = Layout::new(3, 64);
        assert_eq!(made.resized(63), Layout::new(3, 63), "they would be for more buckets than there are");
        assert_eq!(made.resized(192), Layout { buckets: 192, tag_buckets: 64, depth: 3 });
        assert_eq!(made.resized(96).resized(193), Layout::new(3, 193));
        assert_eq!(made.resized(96).halved(64), Layout { buckets: 64, tag_buckets: 32, depth: 4 });
        assert_eq!(made.halved(128), Layout::new(4, 128), "four times as many as the tags are for");
        assert_eq!(Layout::new(3, 65).halved(64), Layout::new(4, 64), "half of the buckets is not a whole number");
    }

    proptest! {
        /// After any changes of a shard, a step determines the same bucket and tag as the key.
        #[test]
        fn a_step_has_the_bucket_and_the_tag_of_its_keys(
            key: u64,
            depth in 0..11_u8,
            pages in 1..2000_usize,
            changes in proptest::collection::vec((100..200_usize, any::<bool>()), 1..6),
        ) {
            let mut layout = Layout::new(depth, pages * 64);
            for (percent, halves) in changes {
                let (bucket, tag) = (layout.home(key), layout.tag(key));
                let buckets = (layout.buckets() * percent / 100 / 64 / if halves { 2 } else { 1 }).max(1) * 64;
                let next = if halves { layout.halved(buckets) } else { layout.resized(buckets) };
                if let Some(step) = layout.steps_in(bucket)(tag) {
                    prop_assert_eq!(step as u8, tag);
                    let is_second = step >= layout.steps() / 2;
                    prop_assert_eq!(is_second, layout.is_in_second_half(key));
                    if next.has_tags_of(layout) {
                        prop_assert_eq!(next.tag(key), tag);
                        let step = if halves && is_second { step - layout.steps() / 2 } else { step };
                        prop_assert!(next.home_of_step(step).is_none_or(|home| home == next.home(key)));
                    }
                }
                layout = next;
            }
        }

        #[test]
        fn few_steps_have_no_bucket(key: u64, pages in 1..200_usize) {
            let layout = Layout::new(4, pages * 64);
            let next = layout.resized(pages * 96);
            let unknown = (0..1000_u64)
                .map(|number| hapax_core::fmix64(key.wrapping_add(number)))
                .map(|key| layout.steps_in(layout.home(key))(layout.tag(key)).expect("new tags tell the step"))
                .filter(|&step| next.home_of_step(step).is_none())
                .count();
            prop_assert!(unknown < 30, "{unknown} of 1000");
        }
    }
}
