//! The JSON that an example printed -> the lines that go into the page.

use serde::de::IgnoredAny;

/// The width in characters beyond which a value is broken between its fields.
const WIDTH: usize = 118;

/// Formats JSON values, each on lines of its own.
pub fn json(printed: &str) -> String {
    let is_value = |line: &str| serde_json::from_str::<IgnoredAny>(line).is_ok();
    if printed.lines().all(is_value) {
        printed.lines().map(filled).collect::<Vec<_>>().join("\n")
    } else {
        filled(printed)
    }
}

/// Formats one value, with as many fields in a line as fit.
fn filled(value: &str) -> String {
    let (mut done, mut line) = (String::new(), String::new());
    for (depth, piece) in pieces(value) {
        if line.chars().count() + piece.trim_end().chars().count() > WIDTH && !line.trim().is_empty() {
            done.push_str(line.trim_end());
            done.push('\n');
            line = " ".repeat(depth);
        }
        line.push_str(&piece);
    }
    done + &line
}

/// Cuts a value after each comma and adds a space after commas and colons. Each piece comes with its depth.
fn pieces(value: &str) -> Vec<(usize, String)> {
    let mut pieces = vec![(0, String::new())];
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for character in value.chars() {
        if !in_string && character.is_whitespace() {
            continue;
        }
        let piece = &mut pieces.last_mut().expect("never empty").1;
        piece.push(character);
        if in_string {
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            '"' => in_string = true,
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ':' => piece.push(' '),
            ',' => {
                piece.push(' ');
                pieces.push((depth, String::new()));
            }
            _ => {}
        }
    }
    pieces
}

#[test]
fn long_json_is_broken_between_fields() {
    assert_eq!(json("{\"a\":1,\"b\":\"x,:{\\\"\"}\n{\"c\":[]}\n"), "{\"a\": 1, \"b\": \"x,:{\\\"\"}\n{\"c\": []}");
    assert_eq!(json("{\n  \"a\": 1,\n  \"b\": 2\n}\n"), "{\"a\": 1, \"b\": 2}");
    let long = format!("{{\"a\":\"{0}\",\"b\":[{{\"c\":\"{0}\",\"d\":1}}],\"e\":2}}", "x".repeat(80));
    let wanted = format!("{{\"a\": \"{0}\",\n \"b\": [{{\"c\": \"{0}\", \"d\": 1}}], \"e\": 2}}", "x".repeat(80));
    assert_eq!(json(&long), wanted);
}
