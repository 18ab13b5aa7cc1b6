//! The client side of the HTTP API, as far as the verbs need it.
//! Comes in: a server's URL and a key. Goes out: answers, or errors that say what to do.
//! Must never know: what a verb makes of an answer.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::config::read_secret;

/// Where the server is, and how to be let in.
#[derive(Clone, Debug, clap::Args)]
pub struct ServerArgs {
    /// The server to talk to
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub server: String,
    /// File with the API key, if the server wants one [default: the key in $HAPAX__AUTH__API_KEY, if set]
    #[arg(long, value_name = "FILE", env = "HAPAX__AUTH__API_KEY_FILE", hide_env_values = true)]
    pub api_key_file: Option<PathBuf>,
}

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Not a URL that this client speaks.
    #[error("--server {url}: {detail}")]
    Url {
        /// As given.
        url: String,
        /// What is allowed.
        detail: &'static str,
    },
    /// The key's file cannot be used.
    #[error("--api-key-file {path}: {detail}")]
    KeyFile {
        /// As given.
        path: PathBuf,
        /// Why not.
        detail: String,
    },
    /// No server answers.
    #[error("cannot reach {url}: {detail}. Is it running? Start it with `hapax serve`, or name another with --server")]
    Unreachable {
        /// The server.
        url: String,
        /// Why not.
        detail: String,
    },
    /// The connection broke while a request was under way.
    #[error("the connection to {url} broke: {detail}")]
    Broken {
        /// The server.
        url: String,
        /// How.
        detail: String,
    },
    /// The server refused.
    #[error("the server answers {status}: {detail}{}", advice(*status))]
    Refused {
        /// HTTP status.
        status: u16,
        /// Its sentence.
        detail: String,
        /// When it asks to be asked again.
        retry_after: Option<Duration>,
    },
}

impl ClientError {
    /// Whether the same request may succeed a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 502 | 503 | 504),
            Self::Url { .. } | Self::KeyFile { .. } => false,
        }
    }
}

fn advice(status: u16) -> &'static str {
    match status {
        401 => ". Give its key with --api-key-file",
        _ => "",
    }
}

/// What every error body holds.
#[derive(Debug, Deserialize)]
pub struct Problem {
    /// HTTP status.
    pub status: u16,
    /// One sentence.
    #[serde(default)]
    pub detail: String,
}

/// A server to talk to. Cheap to clone; connections are shared.
#[derive(Clone)]
pub struct Client {
    agent: Agent,
    base: String,
    authorization: Option<String>,
}

impl Client {
    /// Checks the URL and reads the key; talks to nobody yet.
    pub fn new(args: &ServerArgs) -> Result<Self, ClientError> {
        let client = Self::without_key(&args.server)?;
        let key = match &args.api_key_file {
            Some(path) => {
                let refuse = |detail| ClientError::KeyFile { path: path.clone(), detail };
                Some(read_secret(path).map_err(refuse)?)
            }
            None => std::env::var("HAPAX__AUTH__API_KEY").ok(),
        };
        Ok(Self { authorization: key.map(|key| format!("Bearer {key}")), ..client })
    }

    /// For routes that need no key.
    pub fn without_key(server: &str) -> Result<Self, ClientError> {
        let base = server.trim_end_matches('/').to_owned();
        let refuse = |detail| Err(ClientError::Url { url: server.to_owned(), detail });
        if base.starts_with("https://") {
            return refuse("this client speaks plain HTTP; talk to the server itself, not to a TLS proxy before it");
        }
        if !base.strip_prefix("http://").is_some_and(|host| !host.is_empty() && !host.contains('/')) {
            return refuse("a URL such as http://127.0.0.1:8080");
        }
        let agent = Agent::config_builder()
            // Proxies of the environment are for the web; a hapax is a neighbour.
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

    /// The server's URL.
    pub fn url(&self) -> &str {
        &self.base
    }

    /// An error at once if no server listens. Later a server that is gone is waited for: it may be restarting.
    pub fn reach(&self) -> Result<(), ClientError> {
        self.get("/livez").map(|_| ())
    }

    /// Sends NDJSON and returns the answer's lines as they come. `path` begins with `/`, query included.
    pub fn post_lines(&self, path: &str, lines: &[u8]) -> Result<impl Read + use<>, ClientError> {
        let mut request = self.agent.post(format!("{}{path}", self.base)).content_type("application/x-ndjson");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let answer = self.accept(request.send(lines))?;
        Ok(answer.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// Sends JSON and returns the answer's text; an error unless the server grants it.
    pub fn post_json(&self, path: &str, body: &str) -> Result<String, ClientError> {
        let mut request = self.agent.post(format!("{}{path}", self.base)).content_type("application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let mut answer = self.accept(request.send(body))?;
        answer.body_mut().read_to_string().map_err(|error| self.transport(error))
    }

    /// The status and the text of a short answer.
    pub fn get(&self, path: &str) -> Result<(u16, String), ClientError> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let mut answer = request.call().map_err(|error| self.transport(error))?;
        let text = answer.body_mut().read_to_string().map_err(|error| self.transport(error))?;
        Ok((answer.status().as_u16(), text))
    }

    /// The text of an answer of any length; an error unless the server grants it.
    pub fn get_whole(&self, path: &str) -> Result<String, ClientError> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let answer = self.accept(request.call())?;
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
            Ok(problem) => problem.detail,
            Err(_) => "the answer is not from hapax".into(),
        };
        Err(ClientError::Refused { status, detail, retry_after: retry_after.map(Duration::from_secs) })
    }

    fn transport(&self, error: ureq::Error) -> ClientError {
        use std::io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
        let (url, detail) = (self.base.clone(), error.to_string());
        match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                ClientError::Url { url, detail: "a URL such as http://127.0.0.1:8080" }
            }
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

/// Percent-encodes a value of a query: everything but the unreserved characters of RFC 3986, section 2.3.
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
