//! Habits of wording that make a reader go back and read a sentence again, and what to write instead.
//!
//! The list is short on purpose: each entry is something that was common here, is easy to recognise by its words, and
//! is hardly ever right. The list cannot find a sentence that is merely long or dense.

use std::sync::LazyLock;

use regex::Regex;

/// One habit.
pub struct Tic {
    pub pattern: Regex,
    /// What to write instead.
    pub instead: &'static str,
}

/// Pattern; what to write instead; a text that has it; the same in plain English.
type Entry = (&'static str, &'static str, &'static str, &'static str);

const LIST: [Entry; 17] = [
    (
        r"(?i)\b(whoever|nobody|somebody)\b|\b(caller|reader|writer|thread|task|request|client|lookup|commit|connection|document)s? who\b",
        "code is `it`; name the caller, the thread or the request",
        "Whoever holds the lock.",
        "The thread that holds the lock.",
    ),
    (
        r"(?:^|[.:;!?)]\s+)(?:What|Which|Whose|Who|Where)\s[^?.]*(?:[.:;]|$)",
        "a statement begins with its subject: name the thing",
        "What SQLite keeps in the folder.",
        "The files that SQLite keeps in the folder.",
    ),
    (
        r"\b(?:of|to|from|with|for|than|in|by|as|on|at|into|beyond|after|before|and|but|or|beside|besides|over|through|without|that|all)\s+what\s+(?:is|are|was|were|has|had|it|they|there|cannot|comes|goes|stays|others|a|the|another)\b",
        "`what is ...` as a thing: name the thing",
        "It removes the oldest and what is left of killed runs.",
        "It removes the oldest and the leftovers of killed runs.",
    ),
    (
        r"\b(?:where|Where)\s+(?:a|an|no|nothing|none|there|it|they|that|this|not|all|one|either|both|neither|several|many|any|some|such)\b",
        "`if` for conditions, `where` for places",
        "It waits where there is no room.",
        "It waits if there is no room.",
    ),
    (r"(?i)\bbut\s+for\b", "`except`", "All but for one.", "All except one."),
    (r"(?i)\banew\b", "`again`", "It is made anew.", "It is made again."),
    (r"(?i)\b(?:stands|stand|stood)\b", "`is`, `is stored`, `stays`", "It stands in the log.", "It is in the log."),
    (r"(?i)\bsights?\b", "`last-seen time`", "A sight is written later.", "A last-seen time is written later."),
    (
        r"(?i)\b(?:broken?|breaks?|breaking)[\s-]off\b",
        "`interrupted`, `ended early`",
        "It broke off.",
        "It was interrupted.",
    ),
    (r"(?i)\bcall(?:ed|s|ing)?\s+(?:it\s+)?off\b", "`cancel`", "It was called off.", "It was cancelled."),
    (
        r"\b(?:is|are|was|were)\s+(?:not\s+)?to\s+be\b",
        "`must be`, `will be`",
        "What was to be kept.",
        "The rows to keep.",
    ),
    (
        r"(?i)\bno\s+more(?:[.,;:]|$)",
        "`no longer`, `not again`",
        "It takes writes no more.",
        "It no longer takes writes.",
    ),
    (r"(?i)\bgive(?:s|n)?\s+out\b", "`returns`, `hands out`", "The disk gives out zeros.", "The disk returns zeros."),
    (r"(?i)\bbe(?:side|neath)\b", "`next to`, `with`, `under`", "A file beside it.", "A file next to it."),
    (
        r"\b(?:come|comes|came|coming)\s+to\s+(?:its|an|the|their|nothing)\b",
        "`ends`, `fails`",
        "It came to nothing.",
        "It failed.",
    ),
    (
        r"(?i)\b(?:allowed|asked\s+for|expected|wanted)\s+(?:is|are|was|were)\b",
        "subject, verb, object: `must be 1 to 10`",
        "Allowed is 1 to 10.",
        "It must be between 1 and 10.",
    ),
    (
        r"(?i)\b(?:lest|thereof|hitherto|wherein|thereby|whereby|as yet|till|(?:next|this|last|earlier|former|previous)\s+li(?:fe|ves))\b",
        "the usual word: `or`, `so`, `until`, `run`",
        "It lasts till the next life.",
        "It lasts until the next run.",
    ),
];

/// All habits.
pub static TICS: LazyLock<Vec<Tic>> = LazyLock::new(|| {
    let tic = |&(pattern, instead, ..): &Entry| Tic { pattern: Regex::new(pattern).unwrap(), instead };
    LIST.iter().map(tic).collect()
});

#[test]
fn each_is_found_and_its_plain_form_has_none() {
    for (tic, &(_, _, tired, plain)) in TICS.iter().zip(&LIST) {
        assert!(tic.pattern.is_match(tired), "{tired}");
        let found = TICS.iter().find(|tic| tic.pattern.is_match(plain));
        assert!(found.is_none(), "{plain}: {}", found.unwrap().instead);
    }
}
