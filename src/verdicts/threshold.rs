//! The only place that says which numbers are valid thresholds.

use super::{CollectionError, Result};

/// Refuses a number that is not a valid threshold.
pub fn check_threshold(threshold: f64) -> Result<f64> {
    if threshold > 0.0 && threshold <= 1.0 {
        return Ok(threshold);
    }
    Err(CollectionError::Invalid { field: "threshold", detail: "must be a number above 0 and at most 1".into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_over_0_and_at_most_1() {
        for threshold in [f64::MIN_POSITIVE, 0.5, 1.0] {
            assert_eq!(check_threshold(threshold).unwrap(), threshold);
        }
        for refused in [0.0, -0.0, -0.5, 1.0 + f64::EPSILON, f64::INFINITY, f64::NAN] {
            assert!(check_threshold(refused).is_err(), "{refused}");
        }
    }
}
