//! One connection, which is used by one request at a time, and is opened again if the server closed it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::request::{Answer, Request};

/// The server that requests go to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    host: HeaderValue,
    authorization: Option<HeaderValue>,
    timeout: Duration,
}

impl Target {
    pub(crate) fn new(address: SocketAddr, api_key: Option<&str>, timeout: Duration) -> Result<Arc<Self>> {
        let host = HeaderValue::from_str(&address.to_string()).context("an address is a header value")?;
        let authorization = api_key.map(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))?;
            value.set_sensitive(true);
            Ok::<_, anyhow::Error>(value)
        });
        let authorization =
            authorization.transpose().context("the API key has characters that a header cannot have")?;
        Ok(Arc::new(Self { address, host, authorization, timeout }))
    }

    fn request(&self, request: &Request) -> hyper::Request<Full<Bytes>> {
        let mut made = hyper::Request::new(Full::new(request.body.clone()));
        *made.method_mut() = request.method.clone();
        *made.uri_mut() = request.target.clone();
        let headers = made.headers_mut();
        headers.insert(HOST, self.host.clone());
        if let Some(value) = &self.authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        if !request.content_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(request.content_type));
        }
        if !request.encoding.is_empty() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(request.encoding));
        }
        made
    }
}

pub(crate) struct Connection {
    target: Arc<Target>,
    sender: Option<SendRequest<Full<Bytes>>>,
    /// The number of connections opened so far.
    pub(crate) opened: u64,
}

impl Connection {
    pub(crate) fn new(target: Arc<Target>) -> Self {
        Self { target, sender: None, opened: 0 }
    }

    /// Sends a request and reads the whole answer. If a request could not be sent because the server had closed an idle
    /// connection, it is sent again on a new one.
    pub(crate) async fn send(&mut self, request: &Request) -> Result<Answer> {
        let limit = self.target.timeout;
        let answer = tokio::time::timeout(limit, self.exchange(request)).await;
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                self.sender = None;
                Err(error)
            }
            Err(_) => {
                self.sender = None;
                bail!("no answer within {limit:?}")
            }
        }
    }

    async fn exchange(&mut self, request: &Request) -> Result<Answer> {
        let response = match self.begin(request).await {
            Err(error) if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled) => {
                self.sender = None;
                self.begin(request).await?
            }
            begun => begun?,
        };
        let status = response.status().as_u16();
        let mut body = Vec::new();
        let mut incoming = response.into_body();
        while let Some(frame) = incoming.frame().await {
            if let Ok(data) = frame.context("the answer was cut")?.into_data() {
                body.extend_from_slice(&data);
            }
        }
        Ok(Answer { status, body })
    }

    async fn begin(&mut self, request: &Request) -> Result<hyper::Response<Incoming>> {
        let mut sender = match self.sender.take().filter(|sender| !sender.is_closed()) {
            Some(sender) => sender,
            None => self.open().await?,
        };
        sender.ready().await?;
        let response = sender.send_request(self.target.request(request)).await;
        self.sender = Some(sender);
        Ok(response?)
    }

    async fn open(&mut self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.target.address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The task ends when the sender is dropped. Its error is also reported as the error of the request.
        tokio::spawn(connection);
        self.opened += 1;
        Ok(sender)
    }
}
