//! The commands that hapax sends, and whether the user may send them. Each command is tried on a key that nothing else
//! uses. A node checks permissions before all else, so every error except a missing permission means that the user has
//! the permission.

use redis::{Cmd, Value};

use super::cluster::ClusterError;

/// The key with which commands are tried, after the prefix.
const KEY: &str = "permissions";

/// Each command as a rule of an ACL names it, with the arguments with which it is tried. `KEY` stands for the key. The
/// commands of scripts are among them. In this order they leave no key, and no connection in the state `ASKING`.
pub(super) const NEEDED: [(&str, &[&str]); 26] = [
    ("asking", &[]),
    ("cluster|info", &[]),
    ("cluster|nodes", &[]),
    ("cluster|slots", &[]),
    ("evalsha", &["0000000000000000000000000000000000000000", "1", "KEY"]),
    ("info", &["server"]),
    ("script|load", &["return 1"]),
    ("wait", &["0", "1"]),
    ("hsetnx", &["KEY", "a", "1"]),
    ("hset", &["KEY", "a", "1"]),
    ("hget", &["KEY", "a"]),
    ("hgetall", &["KEY"]),
    ("hdel", &["KEY", "a"]),
    ("zadd", &["KEY", "1", "a"]),
    ("zcount", &["KEY", "1", "1"]),
    ("zrange", &["KEY", "0", "0"]),
    ("zrem", &["KEY", "a"]),
    ("set", &["KEY", "1"]),
    ("get", &["KEY"]),
    ("exists", &["KEY"]),
    ("incr", &["KEY"]),
    ("incrby", &["KEY", "1"]),
    ("setrange", &["KEY", "0", "1"]),
    ("getrange", &["KEY", "0", "0"]),
    ("strlen", &["KEY"]),
    ("unlink", &["KEY"]),
];

/// Returns the commands of [`NEEDED`].
pub(super) fn trials(prefix: &str) -> impl Iterator<Item = Cmd> {
    NEEDED.iter().map(move |(name, arguments)| {
        let mut command = Cmd::new();
        name.split('|').for_each(|word| _ = command.arg(word.to_uppercase()));
        for argument in *arguments {
            match *argument {
                "KEY" => command.arg(format!("{prefix}:{KEY}")),
                argument => command.arg(argument),
            };
        }
        command
    })
}

/// Returns the names of the commands that were not permitted, given the answers to [`trials`].
pub(super) fn forbidden(answers: &[Result<Value, ClusterError>]) -> Vec<&'static str> {
    let tried = NEEDED.iter().zip(answers);
    let forbidden = tried.filter(|(_, answer)| matches!(answer, Err(ClusterError::NoPermission { .. })));
    forbidden.map(|((name, _), _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Returns the words in capitals behind each of these beginnings.
    fn words_behind<'a>(source: &'a str, beginning: &'a str) -> impl Iterator<Item = String> + 'a {
        source.split(beginning).skip(1).map(|rest| {
            let word: String = rest.chars().take_while(char::is_ascii_uppercase).collect();
            word.to_lowercase()
        })
    }

    fn sources(dir: &Path, read: &mut Vec<String>) {
        for file in std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()) {
            if file.is_dir() {
                sources(&file, read);
            } else if !file.ends_with("tests.rs") && !file.ends_with("nodes.rs") {
                read.push(std::fs::read_to_string(file).unwrap());
            }
        }
    }

    #[test]
    fn every_command_in_the_source_is_listed_and_no_other() {
        let mut read = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/redis"), &mut read);
        let sent: BTreeSet<_> = read
            .iter()
            .filter_map(|source| source.split("#[cfg(test)]\nmod tests").next())
            .flat_map(|source| {
                ["redis::cmd(\"", "Packed::new(\"", "redis.call('"]
                    .into_iter()
                    .flat_map(|beginning| words_behind(source, beginning))
            })
            // A node permits AUTH to everyone, and may refuse the others.
            .filter(|word| !["auth", "config", "ping"].contains(&&**word))
            .collect();
        let listed: BTreeSet<_> = NEEDED.iter().map(|(name, _)| name.split('|').next().unwrap().to_owned()).collect();
        assert_eq!(sent, listed);
    }

    #[test]
    fn the_documented_user_may_send_these_commands() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/redis.md");
        let page = std::fs::read_to_string(page).unwrap();
        let rules = page.split("\nACL SETUSER ").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap();
        let documented: BTreeSet<_> = rules.split_whitespace().filter_map(|rule| rule.strip_prefix('+')).collect();
        let needed: BTreeSet<_> = NEEDED.iter().map(|(name, _)| *name).chain(["config|get"]).collect();
        assert_eq!(documented, needed);
    }
}
