//! Shortens answers that consist of many parts.

/// Returns how many of `parts`, counted from the first, fit into `bytes_max` bytes. The first part always counts as
/// fitting.
pub fn fitting<T>(parts: &[T], bytes_max: usize, bytes: impl Fn(&T) -> usize) -> usize {
    let mut all = 0;
    let fit = parts.iter().take_while(|part| {
        all += bytes(part);
        all <= bytes_max
    });
    fit.count().max(1).min(parts.len())
}
