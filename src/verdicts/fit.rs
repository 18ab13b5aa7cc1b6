//! Answers of many parts, cut to fit.

/// How many of `parts`, from the first on, fit into so many bytes; the first always does.
pub fn fitting<T>(parts: &[T], bytes_max: usize, bytes: impl Fn(&T) -> usize) -> usize {
    let mut all = 0;
    let fit = parts.iter().take_while(|part| {
        all += bytes(part);
        all <= bytes_max
    });
    fit.count().max(1).min(parts.len())
}
