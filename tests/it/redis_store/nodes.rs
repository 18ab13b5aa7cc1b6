//! The nodes of a cluster, without hapax's client.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use crate::support::redis::RedisCluster;

/// A connection to a node. Commands are lines of words.
pub struct Node(BufReader<TcpStream>);

impl Node {
    pub fn connect(address: &str) -> Self {
        Self(BufReader::new(TcpStream::connect(address).expect("the node is there")))
    }

    /// Sends a command. Returns a number or a status as it is written, or a text of one line.
    pub fn tell(&mut self, line: &str) -> String {
        let answer = self.send(line);
        if answer.starts_with('$') { self.line() } else { answer }
    }

    /// Returns the keys that the pattern matches.
    pub fn keys(&mut self, pattern: &str) -> Vec<String> {
        let answer = self.send(&format!("KEYS {pattern}"));
        let count: usize = answer.trim_start_matches('*').parse().expect("a list");
        (0..count).map(|_| (self.line(), self.line()).1).collect()
    }

    fn send(&mut self, line: &str) -> String {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).expect("it reads");
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("it answers");
        line.trim_end().to_owned()
    }
}

/// Returns the addresses of the primaries that are alive and have slots.
pub fn primaries(cluster: &RedisCluster) -> Vec<String> {
    let rows = cluster.run("status", &[]);
    let rows = rows.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[1] == "primary" && row[3] != "-" && row[5] == "alive").map(|row| row[0].to_owned()).collect()
}

/// Calls `each` for each record, with its node and its key. Returns their number.
pub fn each_record(cluster: &RedisCluster, mut each: impl FnMut(&mut Node, &str)) -> usize {
    let mut count = 0;
    for address in primaries(cluster) {
        let mut node = Node::connect(&address);
        for key in node.keys("hapax:*:r*") {
            each(&mut node, &key);
            count += 1;
        }
    }
    count
}

/// Counts the records by their states. Records of nine bytes have no document.
pub fn records(cluster: &RedisCluster) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    each_record(cluster, |node, key| {
        let state = node.tell(&format!("GETRANGE {key} 0 0"));
        let bare = if node.tell(&format!("STRLEN {key}")) == ":9" { " bare" } else { "" };
        *counts.entry(format!("{state}{bare}")).or_default() += 1;
    });
    counts
}
