//! The only place that decides which numbers are valid thresholds. `index/search.rs` compares matches with the
//! threshold.

use super::{CollectionError, Result};

/// Refuses a number that is not a valid threshold.
pub fn check_threshold(threshold: f64) -> Result<f64> {
    if threshold > 0.0 && threshold <= 1.0 {
        return Ok(threshold);
    }
    // The shortest form, with `1e300` in place of 300 zeros.
    let given = format!("{threshold:?}");
    let given = given.strip_suffix(".0").unwrap_or(&given);
    let detail = format!("must be a number above 0 and at most 1; it is {given}");
    Err(CollectionError::Invalid { field: "threshold", detail })
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

    #[test]
    fn a_refusal_names_the_number() {
        for (refused, shown) in [(0.0, "0"), (-0.5, "-0.5"), (2.0, "2"), (1e300, "1e300"), (f64::NAN, "NaN")] {
            let detail = check_threshold(refused).unwrap_err().to_string();
            assert_eq!(detail, format!("must be a number above 0 and at most 1; it is {shown}"));
        }
    }
}
