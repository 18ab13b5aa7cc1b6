//! Secrets that are given directly or in a file. Input: a text or a path. Output: the secret, or an error that names
//! the problem and its solution. The error never contains the secret.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::ranges::impossible;
use crate::keys::{KeysError, KeysFile};

/// Keys whose values are never printed.
pub(super) const SECRETS: [(&str, &str); 2] = [("auth", "api_key"), ("hashing", "secret")];

/// Returns a secret that is given directly or in a file. It is an error to give both.
pub(super) fn secret<T>(
    key: &'static str,
    file_key: &'static str,
    given: Option<String>,
    file: Option<PathBuf>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, ConfigError> {
    match (given, file) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(ConfigError::GivenTwice { key }),
        (Some(text), None) => parse(&text).map(Some).map_err(|allowed| impossible(key, "********", allowed)),
        (None, Some(path)) => {
            let refuse = |detail| ConfigError::SecretFile { key: file_key, path: path.clone(), detail };
            parse(&read_secret(&path).map_err(refuse)?).map(Some).map_err(refuse)
        }
    }
}

/// Reads a secret from a file, without the newline that editors put at its end.
pub fn read_secret(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => denied(path),
        _ => error.to_string(),
    })?;
    let secret = text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line));
    if secret.is_empty() { Err("the file is empty".into()) } else { Ok(secret.to_owned()) }
}

/// Reads a keys file for the first time.
pub(super) fn keys_file(path: PathBuf) -> Result<KeysFile, ConfigError> {
    KeysFile::read(&path).map_err(|error| {
        let detail = match &error {
            KeysError::Read(error) if error.kind() == ErrorKind::PermissionDenied => denied(&path),
            KeysError::Read(error) if error.kind() == ErrorKind::NotFound => {
                format!("{error}; make it with `hapax keys add NAME --keys-file FILE --scopes SCOPES`")
            }
            error => error.to_string(),
        };
        ConfigError::SecretFile { key: "auth.keys_file", path, detail }
    })
}

/// Advises the user about a file that this process may not read. Most often the file belongs to root, and the process
/// in a container runs as another user.
pub(super) fn denied(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(file) = std::fs::metadata(path) else {
        return "permission denied: this process may not enter the directory of the file".into();
    };
    let (owner, mode) = (file.uid(), file.mode() & 0o7777);
    let Some(own) = own_uid() else {
        return format!(
            "permission denied: the file belongs to user {owner}, with mode {mode:03o}; let this process read it"
        );
    };
    format!(
        "permission denied: this process runs as user {own}, but the file belongs to user {owner}, with mode \
         {mode:03o}. Give the file to the user of the process (`chown {own} FILE`, with mode 400), or run the process \
         as a user that may read it (`docker run --user`)"
    )
}

#[cfg(target_os = "linux")]
fn own_uid() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(target_os = "linux"))]
fn own_uid() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In an earlier version, a container whose key file belonged to root said only "Permission denied (os error 13)".
    #[test]
    fn a_file_that_may_not_be_read_says_whose_it_is_and_what_to_do() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600)).unwrap();
        let said = denied(file.path());
        assert!(said.contains("mode 600"), "{said}");
        if let Some(own) = own_uid() {
            assert!(said.contains(&format!("chown {own} ")) && said.contains("--user"), "{said}");
        }
    }
}
