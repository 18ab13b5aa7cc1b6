//! The requests of a command -> their answers, from a server at a URL or from a server inside this process. Knows
//! nothing of the use of an answer.

use std::io::Read;

use ureq::http::Method;

use super::client::{Client, ClientError};

/// A server, or a data directory that this process serves to itself.
pub trait Api: Sync {
    /// Its URL or its directory, for messages.
    fn name(&self) -> &str;

    /// Returns the status and the text of a short answer.
    fn get(&self, path: &str) -> Result<(u16, String), ClientError>;

    /// Sends a request, with JSON or without a body, and returns the status and the text of a short answer. A status
    /// other than success is an error.
    fn send(&self, method: Method, path: &str, json: Option<&str>) -> Result<(u16, String), ClientError>;

    /// Sends lines of JSON and returns the lines of the answer as they arrive. `path` begins with `/` and includes the
    /// query.
    fn post_lines(&self, path: &str, lines: &[u8]) -> Result<Box<dyn Read>, ClientError>;
}

impl Api for Client {
    fn name(&self) -> &str {
        self.url()
    }

    fn get(&self, path: &str) -> Result<(u16, String), ClientError> {
        self.get(path)
    }

    fn send(&self, method: Method, path: &str, json: Option<&str>) -> Result<(u16, String), ClientError> {
        self.send(method, path, json)
    }

    fn post_lines(&self, path: &str, lines: &[u8]) -> Result<Box<dyn Read>, ClientError> {
        Ok(Box::new(self.post_lines(path, lines)?))
    }
}
