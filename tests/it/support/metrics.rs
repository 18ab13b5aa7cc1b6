//! The names of metrics in texts.

use hapax::telemetry::names;
use regex::Regex;

/// Returns the names in a text that look like names of hapax's metrics, or of the series of a histogram, but do not
/// exist.
pub fn unknown_metrics(text: &str) -> Vec<String> {
    let name = Regex::new(r"\bhapax_[a-z0-9_]+").unwrap();
    let is_known = |found: &str| {
        names::all().any(|metric| {
            let rest = found.strip_prefix(metric.name);
            rest.is_some_and(|rest| ["", "_bucket", "_sum", "_count"].contains(&rest))
        })
    };
    name.find_iter(text).map(|found| found.as_str()).filter(|found| !is_known(found)).map(str::to_owned).collect()
}
