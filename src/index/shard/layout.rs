//! Key -> bucket and tag in a shard, and back: a bucket and a tag tell the first bits of a key. Pure; knows nothing of
//! entries or pages.
//!
//! The first `depth` bits of a key select the shard. The rest is read as a fraction of 1. In a shard of 100 buckets, the
//! key 0.1234 belongs to bucket 12, and its tag is what follows, 0.34, in 256ths. If the shard grows to 150 buckets, the
//! tag stays as it is. Bucket 12 and this tag tell that the key is between 0.1233 and 0.1235, so the entry moves to
//! bucket 18. Only if a boundary between two new buckets is in this range, or if an entry is not in its own bucket, the
//! key itself is needed. With each growth tags tell less, because the keys of one bucket have fewer different tags. So
//! after a few growths, each entry gets a new tag.

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
        self.home_of(key << self.depth)
    }

    #[inline]
    fn home_of(self, fraction: u64) -> usize {
        ((u128::from(fraction) * u128::from(self.buckets)) >> 64) as usize
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

    /// Returns the layout of the shard with this many buckets. Entries keep their tags, unless these would tell too little.
    pub(super) fn resized(self, buckets: usize) -> Self {
        let new = Self::new(self.depth, buckets);
        let kept = Self { tag_buckets: self.tag_buckets, ..new };
        if kept.has_fine_tags() { kept } else { new }
    }

    /// Returns the layout of half of the shard with this many buckets. Entries keep their tags if possible.
    pub(super) fn halved(self, buckets: usize) -> Self {
        let half = Self { tag_buckets: self.tag_buckets / 2, depth: self.depth + 1, ..self };
        if self.tag_buckets.is_multiple_of(2) { half.resized(buckets) } else { Self::new(half.depth, buckets) }
    }

    /// Returns whether entries have the same tags as in the layout from which this one was made.
    pub(super) fn has_tags_of(self, earlier: Self) -> bool {
        self.tag_buckets << (self.depth - earlier.depth) == earlier.tag_buckets
    }

    /// Returns whether tags are made for at most as many buckets as there are, and not for far fewer.
    fn has_fine_tags(self) -> bool {
        let (buckets, tag_buckets) = (u64::from(self.buckets), u64::from(self.tag_buckets));
        tag_buckets <= buckets && buckets <= tag_buckets * GROWTH_MAX
    }

    /// Returns a function of a tag. It returns the middle of the range of keys that have the tag and may be in this bucket;
    /// `None` if there are several such ranges. If the range begins or ends in another bucket, its middle may be there,
    /// too. The bits that select the shard are 0.
    #[inline]
    pub(super) fn guesses(self, bucket: usize) -> impl Fn(u8) -> Option<u64> {
        let (buckets, tag_buckets) = (u64::from(self.buckets), u64::from(self.tag_buckets));
        let steps = tag_buckets * TAGS;
        let (first, end) = (bucket as u64 * steps / buckets, (bucket as u64 + 1) * steps);
        let half_step = u128::from((1 << 63) / tag_buckets);
        move |tag| {
            let step = first + u64::from(tag.wrapping_sub(first as u8));
            debug_assert!(step * buckets < end, "a key with this tag belongs to this bucket");
            let is_only = (step + TAGS) * buckets >= end;
            let middle = (u128::from(2 * step + 1) * half_step) >> u8::BITS;
            is_only.then_some(middle as u64 >> self.depth)
        }
    }

    /// Returns a function of a guess. It returns whether all keys that the guess stands for belong to the same bucket. The
    /// guess was made with the same tags.
    #[inline]
    pub(super) fn clear_guesses(self) -> impl Fn(u64) -> bool {
        let half = (1 << (63 - u8::BITS)) / u64::from(self.tag_buckets);
        // The guess is rounded.
        let half = half + half / 64;
        move |guess| {
            let fraction = guess << self.depth;
            self.home_of(fraction.saturating_sub(half)) == self.home_of(fraction.saturating_add(half))
        }
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
        let after = before.resized(150);
        let guess = before.guesses(12)(tag).unwrap();
        assert!(after.has_tags_of(before) && after.clear_guesses()(guess));
        assert_eq!((after.home(guess), after.tag(guess), after.home(key), after.tag(key)), (18, tag, 18, tag));
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
        /// Whatever a shard does, a clear guess is as good as the key.
        #[test]
        fn a_clear_guess_has_the_bucket_and_the_tag_of_the_key(
            key: u64,
            depth in 0..11_u8,
            pages in 1..2000_usize,
            steps in proptest::collection::vec((100..200_usize, any::<bool>()), 1..6),
        ) {
            let mut layout = Layout::new(depth, pages * 64);
            for (percent, halves) in steps {
                let (bucket, tag) = (layout.home(key), layout.tag(key));
                let buckets = (layout.buckets() * percent / 100 / 64 / if halves { 2 } else { 1 }).max(1) * 64;
                let next = if halves { layout.halved(buckets) } else { layout.resized(buckets) };
                if let Some(guess) = layout.guesses(bucket)(tag).filter(|_| next.has_tags_of(layout)) {
                    prop_assert_eq!(layout.tag(guess), tag);
                    prop_assert_eq!(layout.is_in_second_half(guess), layout.is_in_second_half(key));
                    prop_assert_eq!(next.tag(guess), next.tag(key));
                    prop_assert!(!next.clear_guesses()(guess) || next.home(guess) == next.home(key));
                }
                layout = next;
            }
        }

        #[test]
        fn few_guesses_are_unclear(key: u64, pages in 1..200_usize) {
            let layout = Layout::new(4, pages * 64);
            let next = layout.resized(pages * 96);
            let unclear = (0..1000_u64)
                .map(|step| hapax_core::fmix64(key.wrapping_add(step)))
                .filter(|&key| !layout.guesses(layout.home(key))(layout.tag(key)).is_some_and(next.clear_guesses()))
                .count();
            prop_assert!(unclear < 30, "{unclear} of 1000");
        }
    }
}
