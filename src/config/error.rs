//! Why hapax does not start with these settings: the key, where it was set, what is allowed.

use std::path::PathBuf;

/// A setting that is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The configuration file cannot be read.
    #[error("cannot read the configuration file {path}")]
    File { path: PathBuf, source: std::io::Error },
    /// The configuration file is not TOML.
    #[error("{path} is not valid TOML: {detail}")]
    Toml { path: PathBuf, detail: String },
    /// An environment variable that is nearly a setting's.
    #[error(
        "the environment variable {name} is not a setting; the setting's variable is {right}, with HAPAX in capitals and \
         two underscores after it and after the section"
    )]
    MisspeltVariable {
        /// As set; its value may be a secret.
        name: String,
        /// As it has to be.
        right: String,
    },
    #[error("unknown key {key} in {origin}; {allowed}")]
    UnknownKey {
        /// With its section.
        key: String,
        /// Where it was set.
        origin: String,
        /// What there is instead.
        allowed: String,
    },
    /// A value of another type.
    #[error("{key} in {origin}: {detail}")]
    Type {
        /// With its section.
        key: String,
        /// Where it was set.
        origin: String,
        /// What was found and what was expected.
        detail: String,
    },
    /// A value that cannot be.
    #[error("{key} = {value}: {allowed}")]
    Impossible {
        /// With its section.
        key: &'static str,
        /// As set; never a secret.
        value: String,
        allowed: String,
    },
    /// A secret given twice.
    #[error("{key} and {key}_file are both set; give one of them")]
    GivenTwice {
        /// Without `_file`.
        key: &'static str,
    },
    /// A secret's file cannot be used.
    #[error("{key} = {path}: {detail}")]
    SecretFile {
        /// With its section.
        key: &'static str,
        path: PathBuf,
        detail: String,
    },
    /// Open to strangers, without a key.
    #[error(
        "refusing to listen on {listen}, which other machines may reach, without an API key. Set one \
         (HAPAX__AUTH__API_KEY_FILE=/path/to/key, or HAPAX__AUTH__API_KEY), or listen on 127.0.0.1"
    )]
    OpenWithoutKey { listen: std::net::SocketAddr },
}
