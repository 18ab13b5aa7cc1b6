//! A server for tests, which gives the same answers whatever it is asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use super::client::Client;
use super::trust::Trust;

/// Answers one request after another with these bodies. Returns a client of it, and the bodies of the requests.
pub(super) fn answering(answers: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
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
