//! Prints the effective settings as TOML, each with its origin. Secrets are masked.

use std::fmt::Write as _;

use figment::Figment;
use figment::value::{Num, Value};

use super::secrets::SECRETS;
use super::sources::{DEFAULTS_NAME, origin, tree};

/// Returns a TOML text with the merged settings.
pub(super) fn show(figment: &Figment) -> String {
    let mut text = String::new();
    for (section, content) in tree(figment) {
        let Some(keys) = content.as_dict() else { continue };
        let _ = writeln!(text, "[{section}]");
        for (key, value) in keys {
            let shown = if SECRETS.contains(&(&*section, &**key)) { "\"********\"".into() } else { toml(value) };
            let line = format!("{key} = {shown}");
            match origin(figment, value) {
                default if default.starts_with(DEFAULTS_NAME) => writeln!(text, "{line}"),
                origin => writeln!(text, "{line:<40} # {origin}"),
            }
            .expect("writing to a string cannot fail");
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

/// Formats a single value as TOML.
fn toml(value: &Value) -> String {
    match value {
        Value::String(_, text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Bool(_, yes) => yes.to_string(),
        Value::Num(_, Num::F64(real)) => format!("{real:?}"),
        Value::Num(_, number) => number
            .to_u128()
            .map(|n| n.to_string())
            .or_else(|| number.to_i128().map(|n| n.to_string()))
            .unwrap_or_default(),
        Value::Array(_, items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Char(..) | Value::Empty(..) | Value::Dict(..) => {
            unreachable!("no key of the settings has this type, and unknown keys were refused")
        }
    }
}
