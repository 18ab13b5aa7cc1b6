//! The part of an HTTP client that the commands need. Input: the URL of a server, and a key. Output: answers, or errors
//! that say what to do. Knows nothing of the use of an answer.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use ureq::http::{HeaderValue, Method, Request, Response};
use ureq::{Agent, Body, SendBody};

use super::trust::{self, Trust, TrustError};
use crate::config::read_secret;

/// The server's URL, the key that it requires, and the authorities that may have signed its certificate.
#[derive(Clone, Debug, clap::Args)]
pub struct ServerArgs {
    /// URL of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub server: String,
    /// File with the API key, if the server requires one [default: the key in $HAPAX__AUTH__API_KEY, if it is set]
    #[arg(long, value_name = "FILE", env = "HAPAX__AUTH__API_KEY_FILE", hide_env_values = true)]
    pub api_key_file: Option<PathBuf>,
    /// File with the certificates of the authorities to trust, in PEM form, if the URL begins with https:// [default:
    /// those of the system]
    #[arg(long, value_name = "FILE", env = "HAPAX_CA_FILE")]
    pub ca: Option<PathBuf>,
}

/// The form that a URL must have.
const URL_FORM: &str = "must be a URL such as http://127.0.0.1:8080 or https://hapax.internal:8080";

/// The form that a key must have.
const KEY_FORM: &str = "must be one line of printable ASCII characters";

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// This client cannot use the URL.
    #[error("--server {url}: {detail}")]
    Url {
        url: String,
        /// The form that a URL must have.
        detail: &'static str,
    },
    /// The key's file cannot be read.
    #[error("--api-key-file {path}: {detail}")]
    KeyFile { path: PathBuf, detail: String },
    /// The key in the environment cannot be sent.
    #[error("HAPAX__AUTH__API_KEY: {KEY_FORM}")]
    Key,
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The server is not the one that the URL names, or this could not be checked.
    #[error("cannot connect to {url}: {detail}")]
    Handshake { url: String, detail: String },
    /// No server answers.
    #[error(
        "cannot reach {url}: {detail}. Start a server with `hapax serve`, or give the URL of another server with \
         --server"
    )]
    Unreachable { url: String, detail: String },
    /// The connection was lost during a request.
    #[error("lost the connection to {url}: {detail}")]
    Broken { url: String, detail: String },
    /// The server refused the request.
    #[error("the server answered {status}: {detail}{}", advice(*status))]
    Refused {
        status: u16,
        /// The `detail` of the server's problem.
        detail: String,
        /// How long the server asks to wait before the next attempt.
        retry_after: Option<Duration>,
    },
    /// There is no server, and the data directory refused the request.
    #[error("{detail}")]
    Declined {
        status: u16,
        detail: String,
        /// How long to wait before the next attempt.
        retry_after: Option<Duration>,
    },
}

fn advice(status: u16) -> &'static str {
    match status {
        401 => ". Give the server's API key with --api-key-file",
        _ => "",
    }
}

/// The fields of a problem that the commands need.
#[derive(Debug, Deserialize)]
pub struct Problem {
    pub status: u16,
    /// The stable name of the problem.
    #[serde(default)]
    pub code: String,
    /// A sentence that says what happened.
    #[serde(default)]
    pub detail: String,
    /// The fault of each field, if values are not valid.
    #[serde(default)]
    errors: Vec<WrongField>,
}

#[derive(Debug, Deserialize)]
struct WrongField {
    field: String,
    detail: String,
}

impl Problem {
    /// Returns a sentence for people who do not see `errors`. If there are several errors, `detail` only says that
    /// `errors` lists them.
    pub(super) fn sentence(&self) -> String {
        match self.errors.as_slice() {
            [first, others @ ..] if !others.is_empty() => {
                let (count, fields) = (others.len(), if others.len() == 1 { "field is" } else { "fields are" });
                format!("{}: {}; and {count} more {fields} not valid", first.field, first.detail)
            }
            _ => self.detail.clone(),
        }
    }
}

/// A client of one server. Cloning is cheap, and clones share connections.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    base: String,
    authorization: Option<HeaderValue>,
}

impl Client {
    /// Checks the URL and reads the key. It does not connect.
    pub fn new(args: &ServerArgs) -> Result<Self, ClientError> {
        let client = Self::without_key(&args.server, &Trust::new(args.ca.as_deref()))?;
        let authorization = match &args.api_key_file {
            Some(path) => {
                let refuse = |detail| ClientError::KeyFile { path: path.clone(), detail };
                let key = read_secret(path).map_err(refuse)?;
                Some(bearer(&key).ok_or_else(|| refuse(KEY_FORM.to_owned()))?)
            }
            None => match std::env::var_os("HAPAX__AUTH__API_KEY") {
                // Secrets that were read from files often end in a newline.
                Some(key) => Some(key.to_str().and_then(|key| bearer(key.trim_end())).ok_or(ClientError::Key)?),
                None => None,
            },
        };
        Ok(Self { authorization, ..client })
    }

    /// Returns a client without a key, for routes that need none.
    pub(super) fn without_key(server: &str, trust: &Trust) -> Result<Self, ClientError> {
        let base = server.trim_end_matches('/').to_owned();
        let refuse = |detail| Err(ClientError::Url { url: server.to_owned(), detail });
        let host = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
        if !host.is_some_and(|host| !host.is_empty() && !host.contains('/')) {
            return refuse(URL_FORM);
        }
        let mut agent = Agent::config_builder();
        if base.starts_with("https://") {
            agent = agent.tls_config(trust.settings()?);
        }
        let agent = agent
            // Proxies in the environment are meant for the web, but a hapax server is usually nearby.
            .proxy(None)
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_per_read(Some(Duration::from_secs(120)))
            .timeout_per_write(Some(Duration::from_secs(120)))
            .user_agent(concat!("hapax/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Ok(Self { agent, base, authorization: None })
    }

    /// Returns the server's URL.
    pub fn url(&self) -> &str {
        &self.base
    }

    /// Fails at once if no server listens. Later requests are repeated if the server is gone, because it may be
    /// restarting.
    pub fn reach(&self) -> Result<(), ClientError> {
        self.get("/livez").map(|_| ())
    }

    /// Sends NDJSON and returns the lines of the answer as they arrive. `path` begins with `/` and includes the query.
    pub fn post_lines(&self, path: &str, lines: &[u8]) -> Result<impl Read + use<>, ClientError> {
        let mut request = self.agent.post(format!("{}{path}", self.base)).content_type("application/x-ndjson");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let answer = self.accept(request.send(lines))?;
        Ok(answer.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// Sends JSON and returns the text of an answer of any length. A status other than success is an error.
    pub fn post_json(&self, path: &str, body: &str) -> Result<String, ClientError> {
        let mut request = self.agent.post(format!("{}{path}", self.base)).content_type("application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let answer = self.accept(request.send(body))?;
        self.whole(answer)
    }

    /// Sends a file and returns the text of a short answer. `bytes` is the size of the file, if it is known. The answer
    /// may take as long as the server needs.
    pub(super) fn post_file(&self, path: &str, mut file: impl Read, bytes: Option<u64>) -> Result<String, ClientError> {
        let mut request =
            self.agent.post(format!("{}{path}", self.base)).content_type("application/vnd.apache.parquet");
        if let Some(bytes) = bytes {
            request = request.header("content-length", bytes);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let request = request.config().timeout_per_read(None).build();
        let mut answer = self.accept(request.send(SendBody::from_reader(&mut file)))?;
        answer.body_mut().read_to_string().map_err(|error| self.transport(error))
    }

    /// Sends a request, with JSON or without a body, and returns the status and the text of a short answer. A status
    /// other than success is an error. The answer may take as long as the server needs.
    pub(super) fn send(&self, method: Method, path: &str, json: Option<&str>) -> Result<(u16, String), ClientError> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let refuse = |error| self.transport(ureq::Error::Http(error));
        let answer = match json {
            Some(json) => {
                let request = request.header("content-type", "application/json").body(json).map_err(refuse)?;
                self.agent.run(self.agent.configure_request(request).timeout_per_read(None).build())
            }
            None => {
                let request = request.body(()).map_err(refuse)?;
                self.agent.run(self.agent.configure_request(request).timeout_per_read(None).build())
            }
        };
        let mut answer = self.accept(answer)?;
        let status = answer.status().as_u16();
        answer.body_mut().read_to_string().map(|text| (status, text)).map_err(|error| self.transport(error))
    }

    /// Returns the status and the text of a short answer.
    pub fn get(&self, path: &str) -> Result<(u16, String), ClientError> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let mut answer = request.call().map_err(|error| self.transport(error))?;
        let text = answer.body_mut().read_to_string().map_err(|error| self.transport(error))?;
        Ok((answer.status().as_u16(), text))
    }

    /// Returns the text of an answer of any length. A status other than success is an error.
    pub fn get_whole(&self, path: &str) -> Result<String, ClientError> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let answer = self.accept(request.call())?;
        self.whole(answer)
    }

    /// Reads an answer of any length. Without the limit that is set here, `ureq` would stop after 10 MiB.
    fn whole(&self, answer: Response<Body>) -> Result<String, ClientError> {
        let text = answer.into_body().into_with_config().limit(u64::MAX).read_to_string();
        text.map_err(|error| self.transport(error))
    }

    fn accept(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, ClientError> {
        let mut answer = answer.map_err(|error| self.transport(error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status().as_u16();
        let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        let detail = match serde_json::from_str::<Problem>(&text) {
            Ok(problem) => problem.sentence(),
            Err(_) if status == 400 && self.base.starts_with("http://") => {
                "the answer is not from a hapax server. If the server speaks TLS, give its URL with https://".into()
            }
            Err(_) => "the answer is not from a hapax server".into(),
        };
        Err(ClientError::Refused { status, detail, retry_after: retry_after.map(Duration::from_secs) })
    }

    fn transport(&self, error: ureq::Error) -> ClientError {
        use std::io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
        let (url, detail) = (self.base.clone(), error.to_string());
        if let Some(error) = trust::handshake_error(&error) {
            return ClientError::Handshake { url, detail: trust::explain(error) };
        }
        match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => ClientError::Url { url, detail: URL_FORM },
            ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                ClientError::Unreachable { url, detail }
            }
            ureq::Error::Io(io)
                if matches!(io.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | AddrNotAvailable) =>
            {
                ClientError::Unreachable { url, detail: io.to_string() }
            }
            _ => ClientError::Broken { url, detail },
        }
    }
}

/// Returns the header that contains a key. `None`: the key has characters that a header cannot contain.
fn bearer(key: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("Bearer {key}")).ok()
}

/// Percent-encodes a query value: all bytes except the unreserved characters of RFC 3986, section 2.3.
pub fn encode(value: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// A server that sends prepared answers to any requests.
#[cfg(test)]
pub(super) mod scripted {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::{Client, Trust};

    /// Answers one request after another with these bodies. Returns a client of this server, and the bodies of the
    /// requests.
    pub(in crate::cli) fn answering(answers: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let client = Client::without_key(&url, &Trust::new(None)).unwrap();
        let answer = move |answer: String| {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
            stream.get_mut().write_all(&[head, answer].concat().into_bytes()).unwrap();
            String::from_utf8(body).unwrap()
        };
        (client, std::thread::spawn(|| answers.into_iter().map(answer).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::scripted::answering;

    #[test]
    fn an_answer_may_be_as_long_as_the_server_makes_it() {
        let long = "x".repeat(11 << 20);
        let (client, server) = answering(vec![long.clone()]);
        assert!(client.post_json("/extract", "{}").is_ok_and(|text| text == long));
        assert_eq!(server.join().unwrap(), ["{}"]);
    }
}
