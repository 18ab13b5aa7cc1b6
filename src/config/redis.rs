//! The section `[redis]`: the cluster that has the documents. Out: settings, with the certificates that were read.

use std::path::PathBuf;
use std::time::Duration;

use super::error::ConfigError;
use super::ranges::{count, impossible, milliseconds, within};
use super::raw::RawRedis;
use super::secrets::secret;
use crate::collections::RedisSettings;
use crate::tls::{
    Certificate, CertificateFiles, ClientSettings, authorities_in, authorities_of_the_system, client_settings,
};
use crate::types::Password;

/// Checks the section.
pub(super) fn redis(raw: RawRedis) -> Result<RedisSettings, ConfigError> {
    if raw.nodes.is_empty() {
        return Err(impossible("redis.nodes", "[]", "must name a node, such as \"127.0.0.1:7000\"".into()));
    }
    if raw.prefix.is_empty() || raw.prefix.len() > 64 || raw.prefix.contains(['{', '}']) {
        let allowed = "must have 1 to 64 bytes and no braces, because all keys would be on one node".into();
        return Err(impossible("redis.prefix", format!("{:?}", raw.prefix), allowed));
    }
    let password =
        secret("redis.password", "redis.password_file", None, raw.password_file, |text| Ok(Password::new(text)))?;
    let tls = tls(raw.tls, raw.ca_file, raw.cert_file, raw.key_file)?;
    Ok(RedisSettings {
        nodes: raw.nodes,
        username: Some(raw.username).filter(|name| !name.is_empty()),
        password,
        tls,
        timeout: milliseconds("redis.timeout_ms", raw.timeout_ms, 10..=60_000)?,
        acks: raw.acks.map(|acks| count("redis.acks", acks, 0..=5)).transpose()?,
        prefix: raw.prefix,
        documents_expected: within("redis.documents_expected", raw.documents_expected, 1..=1 << 40)?,
        check_interval: Duration::from_secs(within("redis.check_interval_s", raw.check_interval_s, 1..=3600)?),
    })
}

fn tls(
    is_on: bool,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
) -> Result<Option<ClientSettings>, ConfigError> {
    if !is_on {
        let files = [("redis.ca_file", ca_file), ("redis.cert_file", cert_file), ("redis.key_file", key_file)];
        return match files.into_iter().find_map(|(key, file)| Some((key, file?))) {
            None => Ok(None),
            Some((key, file)) => Err(impossible(key, file.display(), "redis.tls must be true, too".into())),
        };
    }
    let authorities = match ca_file {
        Some(path) => authorities_in(&path).map_err(|detail| {
            let allowed = format!("{detail}; it must be a file with the certificates of authorities in PEM form");
            impossible("redis.ca_file", path.display(), allowed)
        })?,
        None => authorities_of_the_system().map_err(|detail| {
            let allowed = format!("this system has no certificates of authorities{detail}; set redis.ca_file");
            impossible("redis.tls", true, allowed)
        })?,
    };
    let own = match (cert_file, key_file) {
        (None, None) => None,
        (Some(certificate), Some(key)) => {
            let files = CertificateFiles::new(certificate, key);
            Some(Certificate::read(&files).map_err(ConfigError::RedisTls)?)
        }
        (Some(file), None) => {
            return Err(impossible("redis.cert_file", file.display(), "redis.key_file must be set, too".into()));
        }
        (None, Some(file)) => {
            return Err(impossible("redis.key_file", file.display(), "redis.cert_file must be set, too".into()));
        }
    };
    Ok(Some(client_settings(authorities, own.as_ref())))
}
