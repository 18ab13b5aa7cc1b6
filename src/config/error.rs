//! The reasons why hapax does not start with the given settings: the key, where it was set, what is allowed.

use std::path::PathBuf;

use crate::tls::CertificateError;

/// A setting that was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The configuration file cannot be read.
    #[error("cannot read the configuration file {path}")]
    File { path: PathBuf, source: std::io::Error },
    /// The configuration file is not TOML.
    #[error("{path} is not valid TOML: {detail}")]
    Toml { path: PathBuf, detail: String },
    /// An environment variable has almost the name of a setting.
    #[error(
        "the environment variable {name} is not a setting; did you mean {right}? Write HAPAX in capitals, with two \
         underscores after it and after the section"
    )]
    MisspeltVariable {
        /// The name only: the value may be a secret.
        name: String,
        /// The correct name.
        right: String,
    },
    #[error("unknown key {key} in {origin}; {allowed}")]
    UnknownKey {
        /// The key with its section.
        key: String,
        /// The source that set it.
        origin: String,
        /// The keys that exist.
        allowed: String,
    },
    /// A value has the wrong type.
    #[error("{key} in {origin}: {detail}")]
    Type {
        /// The key with its section.
        key: String,
        /// The source that set it.
        origin: String,
        /// The type that is expected, and the value that was found.
        detail: String,
    },
    /// A value is not allowed.
    #[error("{key} = {value}: {allowed}")]
    Impossible {
        /// The key with its section.
        key: &'static str,
        /// The value as it was set. A secret is never put here.
        value: String,
        allowed: String,
    },
    /// A secret was given twice.
    #[error("{key} and {key}_file are both set; set only one of them")]
    GivenTwice {
        /// The key without `_file`.
        key: &'static str,
    },
    /// The file of a secret cannot be used.
    #[error("{key} = {path}: {detail}")]
    SecretFile {
        /// The key with its section.
        key: &'static str,
        path: PathBuf,
        detail: String,
    },
    /// The files of the certificate cannot be used.
    #[error("[tls]: {0}")]
    Tls(CertificateError),
    /// The certificate that the cluster asks for cannot be used.
    #[error("redis.cert_file and redis.key_file: {0}")]
    RedisTls(CertificateError),
    /// The server would be open to other machines without a key.
    #[error(
        "refusing to listen on {listen} without an API key, because other machines may reach it. Set a key \
         (HAPAX__AUTH__API_KEY_FILE=/path/to/key, or HAPAX__AUTH__KEYS_FILE=/path/to/keys.toml for several keys), or \
         listen on 127.0.0.1"
    )]
    OpenWithoutKey { listen: std::net::SocketAddr },
}
