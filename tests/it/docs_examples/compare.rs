//! The output that a page shows and the output of its example -> the first difference between them.
//! JSON is compared by value, text line by line. Times are never compared, and `…` matches anything.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// The fields whose values differ from run to run.
const MASKED: [&str; 5] = ["first_seen", "last_seen", "id_first_seen", "request_id", "version"];
const ANYTHING: &str = "…";

static TIME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:?\d\d:?\d\d(?:[.,]\d+)?Z").unwrap());

/// Returns a description of the first difference.
pub fn difference(is_json: bool, shown: &str, printed: &str) -> Option<String> {
    if is_json { json(shown, printed) } else { text(shown, printed) }
}

fn json(shown: &str, printed: &str) -> Option<String> {
    let shown = match values(shown) {
        Ok(values) => values,
        Err(error) => return Some(format!("the page shows what is not JSON: {error}")),
    };
    let printed_values = match values(printed) {
        Ok(values) => values,
        Err(error) => return Some(format!("it printed what is not JSON: {error}\n{printed}")),
    };
    let difference = value("", &Value::Array(shown), &Value::Array(printed_values))?;
    Some(format!("{difference}\nit printed:\n{printed}"))
}

fn values(text: &str) -> serde_json::Result<Vec<Value>> {
    serde_json::Deserializer::from_str(text).into_iter().collect()
}

fn value(path: &str, shown: &Value, printed: &Value) -> Option<String> {
    let masked = path.rsplit('.').next().is_some_and(|key| MASKED.contains(&key));
    match (shown, printed) {
        (Value::String(shown), _) if shown == ANYTHING => None,
        (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_)) if masked => None,
        (Value::String(shown), Value::String(printed)) if matches(shown, printed) => None,
        (Value::Number(shown), Value::Number(printed)) if shown.as_f64() == printed.as_f64() => None,
        (Value::Array(shown), Value::Array(printed)) if shown.len() == printed.len() => {
            let mut pairs = shown.iter().zip(printed).enumerate();
            pairs.find_map(|(n, (shown, printed))| value(&format!("{path}[{n}]"), shown, printed))
        }
        (Value::Object(shown), Value::Object(printed)) if shown.keys().eq(printed.keys()) => {
            let mut fields = shown.iter().zip(printed.values());
            fields.find_map(|((key, shown), printed)| value(&format!("{path}.{key}"), shown, printed))
        }
        _ if shown == printed => None,
        _ => Some(format!("{path}: the page shows {shown}, printed was {printed}")),
    }
}

fn text(shown: &str, printed: &str) -> Option<String> {
    let trimmed = |text: &str| text.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let printed = trimmed(printed);
    if matches(&trimmed(shown), &printed) {
        return None;
    }
    Some(format!("the page shows:\n{shown}\nit printed:\n{printed}"))
}

/// A line with only `…` matches any number of lines, even none. Elsewhere `…` matches text within its line.
fn matches(shown: &str, printed: &str) -> bool {
    let line = |line: &str| match line.trim() {
        ANYTHING => r"(?:.*\n)*?".to_owned(),
        _ => regex::escape(line).replace(ANYTHING, ".*") + r"\n",
    };
    let pattern: String = without_times(shown).lines().map(line).collect();
    let pattern = Regex::new(&format!(r"\A{pattern}\z")).expect("a pattern");
    let printed: String = without_times(printed).lines().map(|line| format!("{line}\n")).collect();
    pattern.is_match(&printed)
}

fn without_times(text: &str) -> String {
    TIME.replace_all(text, "TIME").into_owned()
}

#[test]
fn json_is_compared_by_value() {
    let same = |shown, printed| assert_eq!(difference(true, shown, printed), None, "{shown}");
    same("{\"a\": 1.0,\n \"b\": [\"x\"]}\n{}", "{\"b\":[\"x\"],\"a\":1}{}\n");
    same(r#"{"first_seen": "then"}"#, r#"{"first_seen": "2026-11-21T03:29:58.129Z"}"#);
    same(r#"["at 2026-11-21T03:29:58Z", "a…c", "…"]"#, r#"["at 2027-01-01T00:00:00.5Z", "abc", 17]"#);
    let differ = |shown, printed, path: &str| {
        let told = difference(true, shown, printed).expect("a difference");
        assert!(told.starts_with(path), "{told}");
    };
    differ(r#"{"a": [{"b": 1}]}"#, r#"{"a": [{"b": 2}]}"#, "[0].a[0].b: the page shows 1, printed was 2");
    differ(r#"{"a": 1}"#, r#"{"a": 1, "b": 2}"#, "[0]: ");
    differ("{}", "{} {}", ": ");
    differ(r#"{"first_seen": "then"}"#, r#"{"first_seen": null}"#, "[0].first_seen");
    differ("{", "{}", "the page shows what is not JSON");
    differ("{}", "curl: no", "it printed what is not JSON");
}

#[test]
fn text_is_compared_by_line() {
    let same = |shown, printed| assert_eq!(difference(false, shown, printed), None, "{shown}");
    same("a  \nb\n", "a\nb");
    same("in … ms\n…\nend", "in 12.5 ms\n1\n2\nend\n");
    same("…\nend", "end");
    same("begin\n…", "begin");
    same("begin\n…", "begin\n1\n2");
    same("at 2026-11-21T03:29:58Z", "at 2027-01-01T00:00:00Z");
    let differ = |shown, printed| assert!(difference(false, shown, printed).is_some(), "{shown}");
    differ("a", "a\nb");
    differ("a.c", "abc");
    differ("in … ms", "in 1\nms");
    differ("…\nend", "the end");
    differ("", "a");
}
