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
        self.list(&format!("KEYS {pattern}"))
    }

    /// Sends a command, and returns a list of texts.
    pub fn list(&mut self, line: &str) -> Vec<String> {
        let answer = self.send(line);
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

/// Returns the postings and ids that lead to no stored document.
pub fn dangling(cluster: &RedisCluster) -> Vec<String> {
    let mut states = BTreeMap::new();
    each_record(cluster, |node, key| {
        let number = key.rsplit(":r").next().expect("a number").to_owned();
        states.insert(number, node.tell(&format!("GETRANGE {key} 0 0")));
    });
    let mut dangling = Vec::new();
    for address in primaries(cluster) {
        let mut node = Node::connect(&address);
        for pattern in ["hapax:*:b*", "hapax:*:c.*", "hapax:*:i*"] {
            for key in node.keys(pattern) {
                let command = if key.ends_with('+') { "ZRANGE" } else { "HVALS" };
                let range = if key.ends_with('+') { " 0 -1" } else { "" };
                let values = node.list(&format!("{command} {key}{range}"));
                let numbers = values.iter().flat_map(|value| value.trim_start_matches('+').split(','));
                let is_lost =
                    |number: &&str| !number.is_empty() && states.get(*number).is_none_or(|state| state != "s");
                dangling.extend(numbers.filter(is_lost).map(|number| format!("{key}: {number}")));
            }
        }
    }
    dangling
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
