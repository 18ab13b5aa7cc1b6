//! A threshold and a number of slots -> the banding that datasketch's `MinHashLSH` picks.
//!
//! datasketch adds up two areas at the S-curve: one for the pairs below the threshold that become candidates, and one
//! for the pairs above the threshold that do not become candidates. All similarities have the same weight. Therefore
//! the banding may miss many pairs just above the threshold, to save candidates at similarities that real pairs seldom
//! have.

/// The nodes of Gauss and Legendre on -1..=1, and their weights.
const NODES: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
    (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
    (0.906_179_845_938_664, 0.236_926_885_056_189_1),
];

/// Returns the bands and rows for which the sum of both areas is smallest: `∫ 1 - (1 - s^r)^b ds` from 0 to the
/// threshold, and `∫ (1 - s^r)^b ds` from there to 1. Both areas have the same weight, which is the default of
/// datasketch. If several sums are equal, it returns the banding with the fewest bands, and then the fewest rows.
///
/// # Panics
/// If `slots` is 0.
pub fn smallest_areas(threshold: f64, slots: u32) -> (u32, u32) {
    let below = nodes(0.0, threshold.clamp(0.0, 1.0), slots);
    let above = nodes(threshold.clamp(0.0, 1.0), 1.0, slots);
    let errors = (1..=slots).flat_map(|rows| {
        let mut found = Area::of(&below, rows);
        let mut missed = Area::of(&above, rows);
        let weight: f64 = below.iter().map(|node| node.1).sum();
        (1..=slots / rows).map(move |bands| (weight - found.of_next_band() + missed.of_next_band(), bands, rows))
    });
    let smallest = errors.min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (_, bands, rows) = smallest.expect("at least one slot");
    (bands, rows)
}

/// The area under `(1 - s^r)^b` for one r, with one more band at each step.
struct Area {
    /// For each node: `1 - s^r`, its power so far, and the weight.
    nodes: Vec<(f64, f64, f64)>,
}

impl Area {
    fn of(nodes: &[(f64, f64)], rows: u32) -> Self {
        Self { nodes: nodes.iter().map(|(s, weight)| (1.0 - s.powi(rows as i32), 1.0, *weight)).collect() }
    }

    fn of_next_band(&mut self) -> f64 {
        self.nodes
            .iter_mut()
            .map(|(one, power, weight)| {
                *power *= *one;
                *power * *weight
            })
            .sum()
    }
}

/// Returns nodes and weights for an integral from `low` to `high`. With more slots, the curves are steeper and need
/// more nodes.
fn nodes(low: f64, high: f64, slots: u32) -> Vec<(f64, f64)> {
    let panels = slots.max(256);
    let half = (high - low) / f64::from(panels) / 2.0;
    let centres = (0..panels).map(|panel| low + (f64::from(panel) * 2.0 + 1.0) * half);
    centres.flat_map(|centre| NODES.map(|(at, weight)| (centre + at * half, weight * half))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ∫ (1 - s^r)^b ds from `low` to `high`, by the binomial theorem; exact for few bands.
    fn exact(bands: u32, rows: u32, low: f64, high: f64) -> f64 {
        let mut choose = 1.0;
        (0..=bands)
            .map(|n| {
                if n > 0 {
                    choose *= -f64::from(bands - n + 1) / f64::from(n);
                }
                let power = f64::from(rows * n + 1);
                choose * (high.powf(power) - low.powf(power)) / power
            })
            .sum()
    }

    /// The threshold, the number of permutations, and the bands and rows that datasketch picks.
    const PICKED: [(f64, u32, (u32, u32)); 23] = [
        (0.05, 128, (32, 1)),
        (0.1, 128, (64, 2)),
        (0.2, 128, (28, 2)),
        (0.3, 128, (37, 3)),
        (0.4, 128, (32, 4)),
        (0.5, 128, (25, 5)),
        (0.6, 128, (18, 7)),
        (0.7, 128, (14, 9)),
        (0.75, 128, (11, 11)),
        (0.8, 128, (9, 13)),
        (0.85, 128, (8, 16)),
        (0.9, 128, (5, 25)),
        (0.95, 128, (3, 42)),
        (0.3, 64, (21, 3)),
        (0.5, 64, (14, 4)),
        (0.7, 64, (8, 8)),
        (0.8, 64, (5, 11)),
        (0.9, 64, (3, 21)),
        (0.3, 256, (64, 4)),
        (0.5, 256, (42, 6)),
        (0.7, 256, (25, 10)),
        (0.8, 256, (17, 15)),
        (0.9, 256, (9, 28)),
    ];

    #[test]
    fn areas_are_those_of_the_polynomials() {
        for (low, high) in [(0.0, 0.5), (0.5, 1.0), (0.0, 1.0), (0.99, 1.0), (0.3, 0.3)] {
            for rows in [1, 2, 5, 13, 100] {
                let mut area = Area::of(&nodes(low, high, 128), rows);
                for bands in 1..=10 {
                    let (found, exact) = (area.of_next_band(), exact(bands, rows, low, high));
                    assert!((found - exact).abs() < 1e-9, "{bands}x{rows} {low}..{high}: {found}, is {exact}");
                }
            }
        }
    }

    /// The curve of a thousand bands of one row falls from 1 to nearly 0 within a few thousandths.
    #[test]
    fn steep_curves_have_enough_nodes() {
        let mut area = Area::of(&nodes(0.0, 1.0, 1024), 1);
        let last = (1..=1024).map(|_| area.of_next_band()).last().expect("some");
        assert!((last - 1.0 / 1025.0).abs() < 1e-9, "{last}");
    }

    /// The expected bands and rows are those that `MinHashLSH(threshold, num_perm)` of datasketch 2.0.0 picks.
    #[test]
    fn picks_are_those_of_datasketch() {
        for (threshold, slots, picked) in PICKED {
            assert_eq!(smallest_areas(threshold, slots), picked, "threshold {threshold}, {slots} permutations");
        }
    }

    #[test]
    fn the_ends_of_the_thresholds() {
        assert_eq!(smallest_areas(0.0, 128), (128, 1), "nothing is below: find all");
        assert_eq!(smallest_areas(1.0, 128), (1, 128), "nothing is above: find as little as possible");
        assert_eq!(smallest_areas(0.5, 1), (1, 1));
    }
}
