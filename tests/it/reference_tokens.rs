//! hapax's definition of tokens, implemented in another way: regular expressions over text that other libraries have
//! folded. This implementation is slow and short. It shares no code and no tables with the core that it checks.

use std::sync::LazyLock;

use caseless::Caseless;
use regex::Regex;
use unicode_normalization::UnicodeNormalization;

/// Scripts written without spaces.
const UNSPACED: &str =
    r"\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}";

static IGNORABLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\p{Default_Ignorable_Code_Point}").unwrap());
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let unspaced = format!(r"[[\p{{L}}\p{{N}}]&&[{UNSPACED}]]");
    let spaced = format!(r"[[\p{{L}}\p{{N}}]--[{UNSPACED}]]");
    Regex::new(&format!(r"{unspaced}\p{{M}}*|{spaced}(?:\p{{M}}|{spaced})*")).unwrap()
});

/// Returns the tokens of a text under the default folding. No token of the corpora is long enough to be cut.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let folded: String = text.nfd().default_case_fold().nfkc().default_case_fold().nfkc().collect();
    let folded: String = IGNORABLE.replace_all(&folded, "").nfc().collect();
    TOKEN.find_iter(&folded).map(|token| token.as_str().to_owned()).collect()
}

#[test]
fn scripts_without_spaces_are_cut_by_character() {
    assert_eq!(tokens("Straße ราคา 漢字と café"), ["strasse", "ร", "า", "ค", "า", "漢", "字", "と", "café"]);
}
