//! Merges defaults, file, environment and flags into one tree that has the origin of each value. Input: the four
//! sources. Output: the merged tree, and its [`Raw`] form. It refuses keys that no setting has. It must never know which
//! values are valid.

use std::ffi::OsString;
use std::path::PathBuf;

use figment::error::{Actual, Kind};
use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::error::ConfigError;
use super::raw::Raw;
use super::secrets::SECRETS;

/// The largest number of letters in which a misspelt key may differ from the key that was meant.
const EDITS_MAX: usize = 2;
/// The least number of letters that an unknown key and the key that was meant must have in common at their beginning.
const BEGINNING_MIN: usize = 4;
/// The documented defaults, compiled in.
const DEFAULTS: &str = include_str!("../../config/default.toml");
/// The name that figment gives the defaults, because they are a text in memory.
pub(super) const DEFAULTS_NAME: &str = "TOML";
/// The prefix of all environment variables of hapax. It has two underscores because Kubernetes sets
/// `HAPAX_PORT=tcp://…` for a service named hapax.
const ENVIRONMENT_PREFIX: &str = "HAPAX__";

/// The sources of settings, except the defaults.
#[derive(Debug, Default)]
pub struct Sources {
    /// `--config`.
    pub file: Option<PathBuf>,
    /// Names and values. A name without the prefix `HAPAX__` is ignored, unless it is a misspelt setting.
    pub environment: Vec<(OsString, OsString)>,
    /// A flag, the key that it sets (`server.listen`), and its value.
    pub flags: Vec<(&'static str, &'static str, String)>,
}

impl Sources {
    /// Returns this file and the environment of the process.
    pub fn of_process(file: Option<PathBuf>) -> Self {
        Self { file, environment: std::env::vars_os().collect(), flags: Vec::new() }
    }

    /// Merges all sources. Later ones override earlier ones.
    pub fn merge(&self) -> Result<Figment, ConfigError> {
        let mut figment = Figment::from(Toml::string(DEFAULTS));
        let defaults = figment.clone();
        if let Some(path) = &self.file {
            let text =
                std::fs::read_to_string(path).map_err(|source| ConfigError::File { path: path.clone(), source })?;
            let file = Figment::from(Toml::string(&text));
            if let Err(error) = file.data() {
                return Err(ConfigError::Toml { path: path.clone(), detail: without_source(&error.kind.to_string()) });
            }
            figment = figment.merge(FileText { path: path.clone(), text });
        }
        for (name, value) in &self.environment {
            let Some(name) = name.to_str() else { continue };
            if let Some(right) = misspelt(name) {
                return Err(ConfigError::MisspeltVariable { name: name.to_owned(), right });
            }
            if !name.starts_with(ENVIRONMENT_PREFIX) {
                continue;
            }
            let key = name[ENVIRONMENT_PREFIX.len()..].to_ascii_lowercase().replace("__", ".");
            let origin = format!("the environment variable {name}");
            let Some(text) = value.to_str() else {
                return Err(ConfigError::Type { key, origin, detail: "the value is not UTF-8".into() });
            };
            figment = figment.merge(Setting::new(origin, key, text, &defaults));
        }
        for (flag, key, text) in &self.flags {
            figment = figment.merge(Setting::new(format!("the flag {flag}"), (*key).into(), text, &defaults));
        }
        Ok(figment)
    }

    /// Returns the merged settings, before they are checked.
    pub fn extract(figment: &Figment) -> Result<Raw, ConfigError> {
        refuse_unknown_keys(figment)?;
        figment.extract().map_err(|error: figment::Error| ConfigError::Type {
            key: error.path.join("."),
            origin: error.metadata.as_ref().map_or_else(|| "the settings".into(), |origin| origin.name.to_string()),
            detail: match SECRETS.iter().any(|(section, key)| error.path.iter().eq([section, key])) {
                // The message does not contain the value.
                true => "must be a string in quotes".into(),
                false => wrong_type(error.kind),
            },
        })
    }
}

/// Leaves out the lines of the file that the parser quotes, because they may contain a secret.
fn without_source(message: &str) -> String {
    let is_quoted = |line: &&str| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').starts_with('|');
    message.lines().filter(|line| !is_quoted(line)).collect::<Vec<_>>().join(", ")
}

/// Describes the expected type and the value found, without the names of Rust's types.
fn wrong_type(kind: Kind) -> String {
    let (Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected)) = kind else {
        return kind.to_string();
    };
    let negative = match found {
        Actual::Signed(number) => number < 0,
        Actual::Float(number) => number < 0.0,
        _ => false,
    };
    let found = match found {
        Actual::Str(text) => format!("{text:?}"),
        Actual::Bool(value) => value.to_string(),
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => number.to_string(),
        Actual::Seq => "a list".into(),
        Actual::Map => "a table".into(),
        other => other.to_string(),
    };
    let expected = match expected.to_string().as_str() {
        "u32" | "u64" if negative => "a whole number of at least 0",
        "u32" | "u64" => "a whole number",
        "f64" => "a number",
        "a string" | "path string" => "a string in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list, such as [\"one\", \"two\"]",
        other => return format!("must be {other}; it is {found}"),
    };
    format!("must be {expected}; it is {found}")
}

/// Keys that can be set but have no default.
const OPTIONAL: [(&str, &str); 12] = [
    ("auth", "api_key"),
    ("auth", "api_key_file"),
    ("auth", "keys_file"),
    ("default_collection", "keep"),
    ("hashing", "secret"),
    ("hashing", "secret_file"),
    ("limits", "memory_max_bytes"),
    ("redis", "password_file"),
    ("redis", "acks"),
    ("redis", "ca_file"),
    ("redis", "cert_file"),
    ("redis", "key_file"),
];
/// The keys of [`OPTIONAL`] whose values are numbers.
const OPTIONAL_NUMBERS: [&str; 1] = ["limits.memory_max_bytes"];

/// Common wrong names of `HAPAX__AUTH__API_KEY` and other secrets. If such a variable were ignored, the server would
/// run without the key.
const SECRETS_WITHOUT_SECTION: [(&str, &str); 5] = [
    ("HAPAX_API_KEY", "HAPAX__AUTH__API_KEY"),
    ("HAPAX_API_KEY_FILE", "HAPAX__AUTH__API_KEY_FILE"),
    ("HAPAX_KEYS_FILE", "HAPAX__AUTH__KEYS_FILE"),
    ("HAPAX_SECRET", "HAPAX__HASHING__SECRET"),
    ("HAPAX_SECRET_FILE", "HAPAX__HASHING__SECRET_FILE"),
];

/// Returns the correct name of a variable that differs from the name of a setting only in case, underscores or other
/// marks. Variables such as `HAPAX_PORT` and `HAPAX_SERVICE_HOST`, which Kubernetes sets for a service named hapax, do
/// not resemble a setting.
fn misspelt(name: &str) -> Option<String> {
    let folded = fold(name);
    if !folded.starts_with("HAPAX_") {
        return None;
    }
    let known = tree(&Figment::from(Toml::string(DEFAULTS)));
    let keys = known.iter().flat_map(|(section, content)| {
        content.as_dict().into_iter().flat_map(Dict::keys).map(move |key| (section.as_str(), key.as_str()))
    });
    let variables = keys.chain(OPTIONAL).map(|(section, key)| {
        format!("{ENVIRONMENT_PREFIX}{}__{}", section.to_ascii_uppercase(), key.to_ascii_uppercase())
    });
    let right = variables.into_iter().find(|right| fold(right) == folded).or_else(|| {
        SECRETS_WITHOUT_SECTION.iter().find(|(short, _)| *short == folded).map(|(_, right)| (*right).to_owned())
    })?;
    // The section and the key may be in lower case.
    let meant = name.starts_with(ENVIRONMENT_PREFIX) && name.eq_ignore_ascii_case(&right);
    (!meant).then_some(right)
}

/// Returns the name in upper case, with one underscore for each run of characters that are not letters or digits.
fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_ascii_alphanumeric() {
            folded.push(character.to_ascii_uppercase());
        } else if !folded.ends_with('_') {
            folded.push('_');
        }
    }
    folded
}

/// Refuses unknown keys. `deny_unknown_fields` refuses them too, but does not say where the key was set or which keys
/// the section has.
fn refuse_unknown_keys(figment: &Figment) -> Result<(), ConfigError> {
    let known = tree(&Figment::from(Toml::string(DEFAULTS)));
    let origin_of = |value: &Value| origin(figment, value);
    for (section, content) in tree(figment) {
        let Some(defaults) = known.get(&section).and_then(Value::as_dict) else {
            let sections: Vec<_> = known.keys().map(String::as_str).collect();
            let allowed = match nearest(&section, &sections) {
                Some(near) => format!("did you mean {near}? The sections are {}", sections.join(", ")),
                None => format!("the sections are {}", sections.join(", ")),
            };
            return Err(ConfigError::UnknownKey { key: section, origin: origin_of(&content), allowed });
        };
        let Some(keys) = content.as_dict() else {
            let (key, origin) = (section, origin_of(&content));
            return Err(ConfigError::Type { key, origin, detail: "must be a section, not a value".into() });
        };
        let optional = || OPTIONAL.iter().filter(|(of, _)| *of == section).map(|(_, key)| *key);
        for (key, value) in keys {
            if !defaults.contains_key(key) && !optional().any(|known| known == key) {
                let names: Vec<_> = defaults.keys().map(String::as_str).chain(optional()).collect();
                let allowed = match nearest(key, &names) {
                    Some(near) => {
                        format!("did you mean {section}.{near}? The keys of [{section}] are {}", names.join(", "))
                    }
                    None => format!("the keys of [{section}] are {}", names.join(", ")),
                };
                return Err(ConfigError::UnknownKey {
                    key: format!("{section}.{key}"),
                    origin: origin_of(value),
                    allowed,
                });
            }
        }
    }
    Ok(())
}

/// Returns the name that was probably meant: one that differs in at most [`EDITS_MAX`] letters. Otherwise returns the
/// name that has the longest beginning in common with `name`, if this beginning is more than half of `name` or the
/// whole other name.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |other: &&str| strsim::osa_distance(name, other);
    let typo = known.iter().copied().min_by_key(|other| distance(other));
    let common = |other: &&str| name.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let begun = known.iter().copied().rev().max_by_key(common);
    typo.filter(|other| distance(other) <= EDITS_MAX && distance(other) < other.len().min(name.len())).or_else(|| {
        let long = |other: &&str| common(other) * 2 > name.len() || common(other) == other.len();
        begun.filter(|other| common(other) >= BEGINNING_MIN && long(other))
    })
}

/// Returns the merged values by section.
pub(super) fn tree(figment: &Figment) -> Dict {
    let mut data = figment.data().expect("each source was parsed when it was merged");
    data.remove(&Profile::Default).unwrap_or_default()
}

/// Whether a source other than the defaults set this key.
pub(super) fn is_set(figment: &Figment, key: &str) -> bool {
    figment.find_metadata(key).is_some_and(|metadata| !metadata.name.starts_with(DEFAULTS_NAME))
}

/// Sets a key to a value that is derived from other settings, or from the system.
pub(super) fn derive(figment: Figment, key: &str, value: u64, origin: &str) -> Figment {
    figment.merge(Setting { origin: origin.to_owned(), key: key.to_owned(), value: Value::from(value) })
}

/// Returns the source that set a value.
pub(super) fn origin(figment: &Figment, value: &Value) -> String {
    let value = match value {
        Value::Dict(_, keys) => keys.values().next().unwrap_or(value),
        leaf => leaf,
    };
    figment.get_metadata(value.tag()).map_or_else(|| "the settings".into(), |metadata| metadata.name.to_string())
}

/// The text of a file that has already been read.
struct FileText {
    path: PathBuf,
    text: String,
}

impl Provider for FileText {
    fn metadata(&self) -> Metadata {
        Metadata::named(format!("the file {}", self.path.display()))
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Toml::string(&self.text).data()
    }
}

/// One value from one variable or flag. Each value has its own provider, so that an error can name the source.
struct Setting {
    origin: String,
    key: String,
    value: Value,
}

impl Setting {
    /// Makes a setting of `text`. The value is a string unless the default of the key is a number, `true` or `false`:
    /// an API key of digits is still a string. The items of a list are separated by commas.
    fn new(origin: String, key: String, text: &str, defaults: &Figment) -> Self {
        let default = defaults.find_value(&key).ok();
        if default.as_ref().is_some_and(|default| matches!(default, Value::Array(..))) {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            return Self { origin, key, value: Value::from(items.collect::<Vec<_>>()) };
        }
        if let (Some(Value::Bool(..)), Ok(yes)) = (&default, text.parse::<bool>()) {
            return Self { origin, key, value: Value::from(yes) };
        }
        let number =
            default.is_some_and(|default| default.to_num().is_some()) || OPTIONAL_NUMBERS.contains(&key.as_str());
        let value = match (number, text.parse::<u64>(), text.parse::<f64>()) {
            (true, Ok(integer), _) => Value::from(integer),
            (true, _, Ok(real)) => Value::from(real),
            _ => Value::from(text),
        };
        Self { origin, key, value }
    }
}

impl Provider for Setting {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let nested = figment::util::nest(&self.key, self.value.clone());
        let dict = nested.into_dict().unwrap_or_else(|| Dict::from([(self.key.clone(), self.value.clone())]));
        Ok(Map::from([(Profile::Default, dict)]))
    }
}
