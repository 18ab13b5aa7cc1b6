//! A client's text -> its beginning, for answers: a long value must not make the answer long.

/// Returns at most `chars_max` characters of the text, and `…` if there are more.
pub(super) fn beginning(text: &str, chars_max: usize) -> String {
    let beginning: String = text.chars().take(chars_max).collect();
    if beginning.len() < text.len() { beginning + "…" } else { beginning }
}
