//! The paths of a certificate and of its key -> the contents of these files. Knows nothing of the meaning of the
//! contents.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::CertificateError;
use crate::plain_file::open_plain_file;

/// The longest file that is read. A chain of certificates takes a few kilobytes.
const BYTES_MAX: u64 = 1 << 20;

/// The files of a certificate and of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// The contents of both files, read at the same time.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl CertificateFiles {
    /// `certificate` is a PEM file with the server's certificate, followed by those of its authorities. `key` is a PEM
    /// file with the private key.
    pub fn new(certificate: PathBuf, key: PathBuf) -> Self {
        Self { certificate, key }
    }

    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    pub fn key(&self) -> &Path {
        &self.key
    }

    pub(super) fn read(&self) -> Result<Contents, CertificateError> {
        Ok(Contents { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }
}

impl Contents {
    pub(super) fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let mut text = Vec::new();
    let read = open_plain_file(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut text));
    read.map_err(|source| CertificateError::Unreadable { path: path.to_owned(), source })?;
    if text.len() as u64 > BYTES_MAX {
        return Err(CertificateError::TooLong { path: path.to_owned(), bytes_max: BYTES_MAX });
    }
    Ok(text)
}
