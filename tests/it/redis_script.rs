//! `contrib/redis-cluster` starts real Redis and Valkey Clusters and ends them, and `contrib/redis-compose.yaml` has the
//! same cluster for Docker.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::library;
use crate::support::redis::{Kind, RedisCluster, script};
use crate::support::sources::root;

/// Returns whether a node answers at this address.
fn answers(address: &str) -> bool {
    let Ok(mut node) = TcpStream::connect(address) else { return false };
    let mut line = String::new();
    node.write_all(b"PING\r\n").is_ok() && BufReader::new(node).read_line(&mut line).is_ok() && line == "+PONG\r\n"
}

/// Returns the rows of `status`: address, role, id, slots, pid and state.
fn status(cluster: &RedisCluster) -> Vec<Vec<String>> {
    let printed = cluster.run("status", &[]);
    printed.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

fn state(cluster: &RedisCluster, node: usize) -> String {
    status(cluster)[node][5].clone()
}

/// Runs a command that must end with status 2 and one line on stderr. Returns this line.
fn refused(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("python3 runs");
    let (printed, said) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr).into_owned());
    assert_eq!((status.code(), &*printed, said.lines().count()), (Some(2), "", 1), "{command:?}: {said}");
    said
}

fn a_cluster_starts_loses_nodes_and_ends(kind: Kind) {
    let Some(cluster) = RedisCluster::up(kind) else { return };
    assert_eq!(cluster.nodes().len(), 6);
    assert!(cluster.nodes().iter().all(|node| node.starts_with("127.0.0.1:") && answers(node)));

    let rows = status(&cluster);
    for (index, row) in rows.iter().enumerate() {
        let (role, has_slots) = if index < 3 { ("primary", true) } else { ("replica", false) };
        assert_eq!((&row[0], &*row[1], &*row[5]), (&cluster.nodes()[index], role, "alive"), "{rows:?}");
        assert_eq!(row[3] != "-", has_slots, "{rows:?}");
    }

    cluster.stop(0);
    assert_eq!((state(&cluster, 0), answers(&cluster.nodes()[0])), ("dead".to_owned(), false));
    assert!(refused(cluster.command("pause", &["0"])).contains("is dead: use `redis-cluster start"));
    cluster.start(&cluster.nodes()[0]);
    assert_eq!((state(&cluster, 0), answers(&cluster.nodes()[0])), ("alive".to_owned(), true));
    cluster.pause(1);
    assert_eq!(state(&cluster, 1), "paused");
    assert!(refused(cluster.command("start", &["1"])).contains("is paused: use `redis-cluster resume"));
    cluster.resume(1);
    assert!(answers(&cluster.nodes()[1]));

    assert!(refused(cluster.command("stop", &["6"])).contains("there is no node 6: give an index, 0 to 5"));
    let again = cluster.command("up", &["--server", &kind.server().expect("it runs")]);
    assert!(refused(again).contains("exists: choose another --dir"));

    let rows = status(&cluster);
    cluster.run("down", &[]);
    assert!(!cluster.dir().exists());
    for pid in rows.iter().map(|row| &row[4]) {
        // Another process may have this pid now.
        let working = fs::read_link(format!("/proc/{pid}/cwd"));
        assert!(!working.is_ok_and(|path| path.starts_with(cluster.dir())), "the process {pid} still runs");
    }
    assert!(refused(cluster.command("down", &[])).contains("there is no cluster in"));
}

#[test]
fn a_redis_cluster_starts_loses_nodes_and_ends() {
    a_cluster_starts_loses_nodes_and_ends(Kind::Redis);
}

#[test]
fn a_valkey_cluster_starts_loses_nodes_and_ends() {
    a_cluster_starts_loses_nodes_and_ends(Kind::Valkey);
}

#[test]
fn a_wrong_use_ends_with_one_line() {
    let dir = library::dir();
    let refused = |arguments: &[&str]| {
        let mut command = script(arguments);
        command.current_dir(dir.path());
        refused(command)
    };
    for (arguments, words) in [
        (&[][..], "required: COMMAND"),
        (&["grow"], "invalid choice: 'grow'"),
        (&["stop"], "required: NODE"),
        (&["up", "--primaries", "0"], "--primaries: must be between 1 and 20"),
        (&["up", "--port", "80"], "--port: must be 0, or between 1024 and 55535"),
        (&["up", "--port", "55535"], "--port 55535: must be at most 55530 for 6 nodes, or 0"),
        (&["up", "--maxmemory", "lots"], "--maxmemory: must be a number of bytes"),
        (&["up", "--config", "bind 0.0.0.0"], "--config: bind cannot be set"),
        (&["up", "--server", "/no-server"], "--server /no-server: no such program"),
        (&["up", "--server", "ls"], "ls must be redis-server 7.0 or later, or valkey-server"),
        (&["down"], "redis-cluster-data: make one with `redis-cluster up`"),
        (&["status", "--dir", "."], "there is no cluster in"),
    ] {
        let said = refused(arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    if let Some(server) = Kind::Redis.server() {
        let up = ["up", "--port", "0", "--server", &server, "--config", "no-such-setting 1"];
        let said = refused(&up);
        assert!(said.contains("'no-such-setting 1'") && said.contains("correct --config"), "{said}");
    }
    let left = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 0, "a cluster that does not start leaves nothing");
}

#[test]
fn the_compose_file_makes_a_cluster_of_six_nodes() {
    let text = fs::read_to_string(root().join("contrib/redis-compose.yaml")).unwrap();
    let compose: Value = serde_saphyr::from_str(&text).expect("YAML");
    let (services, volumes) = (&compose["services"], compose["volumes"].as_object().unwrap());
    let names: Vec<String> = (0..6).map(|index| format!("node-{index}")).collect();
    assert_eq!((services.as_object().unwrap().len(), volumes.len()), (8, 6), "six nodes, `network` and `join`");
    for (name, port) in names.iter().zip(7000..) {
        let node = &services[name];
        let command = ["valkey-server", "/etc/valkey.conf", "--port", &port.to_string()];
        assert_eq!(node["command"], serde_json::json!(command));
        assert_eq!(node["configs"], serde_json::json!([{"source": "node", "target": command[1]}]));
        assert_eq!(node["volumes"], serde_json::json!([format!("{name}:/data")]));
        assert!(volumes.contains_key(name) && node["image"] == services["join"]["image"], "{node}");
        assert_eq!(node["network_mode"], "service:network", "the nodes know each other as 127.0.0.1");
    }
    // The nodes have no password, so no other machine may reach them.
    assert_eq!(services["network"]["ports"], serde_json::json!(["127.0.0.1:7000-7005:7000-7005"]));
    assert_eq!(services["join"]["depends_on"], serde_json::json!(names));
    let script = services["join"]["command"][2].as_str().unwrap();
    assert!(script.starts_with("nodes=\"7000 7001 7002 7003 7004 7005\"\n"), "{script}");
    let config = compose["configs"]["node"]["content"].as_str().unwrap();
    for line in ["cluster-enabled yes", "cluster-announce-ip 127.0.0.1", "appendonly yes"] {
        assert!(config.lines().any(|found| found == line), "{line}");
    }
}
