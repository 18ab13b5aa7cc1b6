//! TLS for listeners. In: a certificate and its key, in two files. Out: an [`Acceptor`] that always uses the last
//! certificate and key that belonged together. `client` is for connections to other servers. Knows nothing of sockets or
//! of HTTP.

mod acceptor;
mod certificate;
mod client;
mod error;
mod files;
mod watch;

pub use acceptor::{Acceptor, failure};
pub use certificate::Certificate;
pub use client::{ClientSettings, authorities_in, authorities_of_the_system, client_settings};
pub use error::CertificateError;
pub use files::CertificateFiles;
pub use watch::{Life, watch};
