//! The sizes of buckets, which are the numbers of documents that share a band key: a running count of buckets per size
//! class.
//! It is updated with every posting, because counting all keys for each scrape would stall a large index.

use std::sync::atomic::{AtomicU64, Ordering};

/// Sizes below this have a class each. Above, there are eight classes per octave, so a class is exact to 12.5 %.
const EXACT: usize = 16;
const PER_OCTAVE: usize = 8;
const CLASSES: usize = EXACT + PER_OCTAVE * 28;

/// The sizes of the largest buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fullness {
    /// The number of documents in the fullest bucket, to within an eighth.
    pub largest: u64,
    /// The number of documents that 99 of 100 buckets do not exceed, to within an eighth.
    pub p99: u64,
}

/// The number of buckets in each size class.
pub(super) struct BucketSizes {
    counts: [AtomicU64; CLASSES],
}

impl Default for BucketSizes {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; CLASSES] }
    }
}

impl BucketSizes {
    /// Notes that a bucket of `from` documents now has `to`. 0 means that the bucket does not exist.
    pub(super) fn changed(&self, from: usize, to: usize) {
        let (from, to) = (class(from), class(to));
        if from == to {
            return;
        }
        if from != 0 {
            self.counts[from].fetch_sub(1, Ordering::Relaxed);
        }
        if to != 0 {
            self.counts[to].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of buckets with at least one document.
    pub(super) fn buckets(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn fullness(&self) -> Fullness {
        Fullness { largest: self.largest(), p99: self.quantile(0.99) }
    }

    /// Returns the number of documents in the largest bucket, rounded down to its class; 0 if there is none.
    pub(super) fn largest(&self) -> u64 {
        let class = self.counts.iter().rposition(|count| count.load(Ordering::Relaxed) != 0);
        class.map_or(0, floor)
    }

    /// Returns the size that `share` (0 to 1) of all buckets do not exceed, rounded down to its class.
    pub(super) fn quantile(&self, share: f64) -> u64 {
        let target = (self.buckets() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (class, count) in self.counts.iter().enumerate() {
            seen += count.load(Ordering::Relaxed);
            if seen >= target && seen > 0 {
                return floor(class);
            }
        }
        0
    }
}

fn class(size: usize) -> usize {
    if size < EXACT {
        return size;
    }
    let octave = size.ilog2() as usize;
    let within = (size >> (octave - PER_OCTAVE.ilog2() as usize)) - PER_OCTAVE;
    EXACT + (octave - EXACT.ilog2() as usize) * PER_OCTAVE + within
}

fn floor(class: usize) -> u64 {
    if class < EXACT {
        return class as u64;
    }
    let octave = (class - EXACT) / PER_OCTAVE + EXACT.ilog2() as usize;
    let within = (class - EXACT) % PER_OCTAVE;
    ((PER_OCTAVE + within) as u64) << (octave - PER_OCTAVE.ilog2() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_starts_at_its_floor_and_is_an_eighth_of_an_octave_wide() {
        for size in 1..100_000_usize {
            let low = floor(class(size));
            assert!(low as usize <= size && size as f64 <= low as f64 * 1.125, "{size} is in the class of {low}");
        }
        assert!(class(u32::MAX as usize) < CLASSES);
    }

    #[test]
    fn largest_and_quantile_follow_the_changes() {
        let sizes = BucketSizes::default();
        assert_eq!((sizes.largest(), sizes.quantile(0.99)), (0, 0));
        for _ in 0..99 {
            sizes.changed(0, 1);
        }
        for size in 0..14 {
            sizes.changed(size, size + 1);
        }
        assert_eq!((sizes.buckets(), sizes.largest(), sizes.quantile(0.99), sizes.quantile(1.0)), (100, 14, 1, 14));
        for size in (0..14).rev() {
            sizes.changed(size + 1, size);
        }
        assert_eq!((sizes.buckets(), sizes.largest()), (99, 1));
    }
}
