//! A text from outside -> its beginning, for answers and errors: a long value must not make them long.

/// Returns at most `chars_max` characters of the text, and `…` if there are more.
pub fn beginning(text: &str, chars_max: usize) -> String {
    let beginning: String = text.chars().take(chars_max).collect();
    if beginning.len() < text.len() { beginning + "…" } else { beginning }
}
