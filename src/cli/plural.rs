//! A count -> the ending of the noun after it.

/// Returns the ending of an English noun: none for one, `s` for any other number.
pub(super) fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_is_not_several() {
        assert_eq!([0, 1, 2, 101].map(plural), ["s", "", "s", "s"]);
    }
}
