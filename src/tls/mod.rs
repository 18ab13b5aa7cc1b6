//! TLS for listeners. In: a certificate and its key, in two files. Out: an [`Acceptor`] that always uses the last
//! certificate and key that belonged together. Knows nothing of sockets or of HTTP.

mod acceptor;
mod certificate;
mod error;
mod files;
mod watch;

pub use acceptor::{Acceptor, failure};
pub use certificate::Certificate;
pub use error::CertificateError;
pub use files::CertificateFiles;
pub use watch::{Life, watch};
