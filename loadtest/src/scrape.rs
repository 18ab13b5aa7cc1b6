//! The text of `/metrics` -> values.

/// Returns the sum of a metric over its series.
pub(crate) fn sum(scrape: &str, name: &str) -> f64 {
    let values = scrape.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        if !rest.starts_with(['{', ' ']) {
            return None;
        }
        rest.rsplit(' ').next()?.parse::<f64>().ok()
    });
    values.sum()
}

/// Returns a histogram with one series: upper bounds and cumulative counts, in ascending order.
pub(crate) fn buckets(scrape: &str, name: &str) -> Vec<(f64, f64)> {
    let bucket = |line: &str| {
        let rest = line.strip_prefix(name)?.strip_prefix("_bucket{")?;
        let (labels, count) = rest.rsplit_once("} ")?;
        let (_, bound) = labels.split_once("le=\"")?;
        let bound = bound.split('"').next()?;
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
        Some((bound, count.parse().ok()?))
    };
    scrape.lines().filter_map(bucket).collect()
}

/// Returns the upper bound that this share of the observations does not exceed.
pub(crate) fn size_at(buckets: &[(f64, f64)], share: f64) -> f64 {
    let total = buckets.last().map_or(0.0, |(_, count)| *count);
    buckets.iter().find(|(_, count)| *count >= share * total).map_or(0.0, |(bound, _)| *bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_give_bounds() {
        let scrape = "x_bucket{collection=\"default\",le=\"1\"} 2\nx_bucket{collection=\"default\",le=\"2\"} 8\n\
                      x_bucket{collection=\"default\",le=\"+Inf\"} 8\nx_sum{collection=\"default\"} 14\n";
        let read = buckets(scrape, "x");
        assert_eq!(read, [(1.0, 2.0), (2.0, 8.0), (f64::INFINITY, 8.0)]);
        assert_eq!([0.25, 0.5, 1.0].map(|share| size_at(&read, share)), [1.0, 2.0, 2.0]);
        assert_eq!(sum(scrape, "x_sum"), 14.0);
    }
}
