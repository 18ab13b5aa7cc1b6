//! The sketch behind `pyhapax.compat.MinHash`: `classic` ranks of any number of slots, which can be merged.

use hapax_core::sketch::{SketchState, Sketcher};
use hapax_core::{Banding, SignatureShape, SketchKind, fmix64, tuning};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use xxhash_rust::xxh3::xxh3_64;

use crate::boundary::bytes_of;

/// The most slots of one block, which is a sketch of the core. Further slots are in further blocks, which use other
/// hashes.
const BLOCK_MAX: usize = 1024;
const BLOCK_MIN: usize = 64;
const SLOTS_MAX: usize = 1 << 16;
const EMPTY: u64 = u64::MAX;
/// The number of possible ranks: `classic` ranks of the core have 56 bits.
const RANKS: f64 = (1u64 << 56) as f64;
/// Makes the hashes of the blocks differ: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Minimum ranks of a set of hashes. For pyhapax.compat.
#[pyclass(module = "pyhapax._native")]
pub(crate) struct RankSketch {
    seed: u64,
    ranks: Vec<u64>,
    sketcher: Sketcher,
    state: SketchState,
    hashes: Vec<u64>,
}

impl RankSketch {
    fn with_ranks(seed: u64, ranks: Vec<u64>) -> PyResult<Self> {
        let slots = ranks.len();
        if !(1..=SLOTS_MAX).contains(&slots) {
            return Err(PyValueError::new_err(format!("num_perm must be between 1 and {SLOTS_MAX}, not {slots}")));
        }
        // A slot's constants do not depend on the number of slots, so the first slots of a larger sketch are the same.
        let block = slots.next_power_of_two().clamp(BLOCK_MIN, BLOCK_MAX);
        let sketcher = Sketcher::new(SketchKind::Classic, block as u32);
        Ok(Self { seed, ranks, sketcher, state: SketchState::default(), hashes: Vec::new() })
    }

    fn add(&mut self, elements: &[u64]) {
        let Self { seed, ranks, sketcher, state, hashes } = self;
        // The default seed of datasketch does not change the hashes.
        let seed = if *seed == 1 { 0 } else { fmix64(*seed) };
        for (block, ranks) in (0u64..).zip(ranks.chunks_mut(BLOCK_MAX)) {
            hashes.clear();
            hashes.extend(elements.iter().map(|hash| fmix64(hash ^ seed).wrapping_add(block.wrapping_mul(STEP))));
            sketcher.begin(state);
            sketcher.push(state, hashes);
            for (rank, new) in ranks.iter_mut().zip(state.ranks()) {
                *rank = (*rank).min(*new);
            }
        }
    }

    fn check_same(&self, other: &Self) -> PyResult<()> {
        if self.seed != other.seed {
            let (a, b) = (self.seed, other.seed);
            return Err(PyValueError::new_err(format!(
                "MinHash objects with the seeds {a} and {b} cannot be compared"
            )));
        }
        if self.ranks.len() != other.ranks.len() {
            let (a, b) = (self.ranks.len(), other.ranks.len());
            let message = format!("MinHash objects of {a} and {b} permutations cannot be compared");
            return Err(PyValueError::new_err(message));
        }
        Ok(())
    }
}

fn hash_of(element: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(bytes) = element.cast::<PyBytes>() {
        return Ok(xxh3_64(bytes.as_bytes()));
    }
    if !element.is_instance_of::<PyString>()
        && let Some((bytes, _)) = bytes_of(element)?
    {
        return Ok(xxh3_64(&bytes));
    }
    let kind = element.get_type().name()?;
    Err(PyTypeError::new_err(format!("an element must be bytes, not {kind}; encode text with .encode()")))
}

#[pymethods]
impl RankSketch {
    #[new]
    fn new(slots: usize, seed: u64) -> PyResult<Self> {
        // A number above the maximum becomes the maximum plus one, so that it is refused without a large allocation.
        let slots = if slots <= SLOTS_MAX { slots } else { SLOTS_MAX + 1 };
        Self::with_ranks(seed, vec![EMPTY; slots])
    }

    fn update(&mut self, element: &Bound<'_, PyAny>) -> PyResult<()> {
        let hash = hash_of(element)?;
        self.add(&[hash]);
        Ok(())
    }

    fn update_batch(&mut self, elements: &Bound<'_, PyAny>) -> PyResult<()> {
        let hashes: PyResult<Vec<u64>> = elements.try_iter()?.map(|element| hash_of(&element?)).collect();
        self.add(&hashes?);
        Ok(())
    }

    fn update_hashes(&mut self, hashes: Vec<u64>) {
        self.add(&hashes);
    }

    fn merge(&mut self, other: &Bound<'_, Self>) -> PyResult<()> {
        // Merging a sketch with itself changes nothing.
        let Ok(other) = other.try_borrow() else { return Ok(()) };
        self.check_same(&other)?;
        for (mine, theirs) in self.ranks.iter_mut().zip(&other.ranks) {
            *mine = (*mine).min(*theirs);
        }
        Ok(())
    }

    /// Returns how many slots are equal.
    fn matching(&self, other: &Bound<'_, Self>) -> PyResult<usize> {
        let other = other.borrow();
        self.check_same(&other)?;
        Ok(self.ranks.iter().zip(&other.ranks).filter(|(a, b)| a == b).count())
    }

    /// Returns the estimated number of distinct elements.
    fn count(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let sum: f64 = self.ranks.iter().map(|&rank| (rank as f64 + 0.5) / RANKS).sum();
        (self.ranks.len() as f64 / sum - 1.0).max(0.0)
    }

    fn is_empty(&self) -> bool {
        self.ranks.iter().all(|&rank| rank == EMPTY)
    }

    fn clear(&mut self) {
        self.ranks.fill(EMPTY);
    }

    fn copy(&self) -> PyResult<Self> {
        Self::with_ranks(self.seed, self.ranks.clone())
    }

    /// Returns the ranks as bytes, eight for each slot.
    fn ranks<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes: Vec<u8> = self.ranks.iter().flat_map(|rank| rank.to_ne_bytes()).collect();
        PyBytes::new(py, &bytes)
    }

    /// Returns the band keys of the ranks.
    fn band_keys(&self, bands: u32, rows: u32) -> PyResult<Vec<u64>> {
        let k = self.ranks.len() as u32;
        let shape = SignatureShape { k, bits: 64 };
        let banding = Banding::new(bands, rows, shape).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let packed: Vec<u8> = self.ranks.iter().flat_map(|rank| rank.to_le_bytes()).collect();
        Ok(banding.keys(&packed, shape).map(|key| key.0).collect())
    }

    fn __len__(&self) -> usize {
        self.ranks.len()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let this = slf.borrow();
        let restore = slf.get_type().getattr("restore")?;
        Ok((restore, (this.seed, this.ranks(slf.py())).into_pyobject(slf.py())?))
    }

    /// Makes a sketch from a seed and ranks.
    #[staticmethod]
    fn restore(seed: u64, ranks: &[u8]) -> PyResult<Self> {
        if !ranks.len().is_multiple_of(8) {
            return Err(PyValueError::new_err("ranks must have eight bytes each"));
        }
        let ranks = ranks.as_chunks::<8>().0.iter().map(|rank| u64::from_ne_bytes(*rank)).collect();
        Self::with_ranks(seed, ranks)
    }
}

/// Returns the bands and rows that datasketch chooses for a threshold.
#[pyfunction]
pub(crate) fn smallest_areas(threshold: f64, slots: u32) -> PyResult<(u32, u32)> {
    if !(1..=SLOTS_MAX as u32).contains(&slots) {
        return Err(PyValueError::new_err(format!("num_perm must be between 1 and {SLOTS_MAX}, not {slots}")));
    }
    Ok(tuning::smallest_areas(threshold, slots))
}
