//! The client with real clusters, which `contrib/redis-cluster` starts. It needs redis-server and Python 3.

mod nodes;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use redis::{FromRedisValue as _, Value};

use super::*;
use crate::types::Password;
use nodes::{Nodes, PASSWORD, TIMEOUT, TlsNode, command};

/// More than a run takes that ends at its deadline, on a busy machine.
const TIMEOUT_AND_A_LITTLE: Duration = Duration::from_millis(1400);

static COUNT: LazyLock<Script> =
    LazyLock::new(|| Script::new("#!lua flags=allow-oom\nreturn redis.call('INCR', KEYS[1])"));

fn plain(key: &str, words: &str, waits: bool) -> Request {
    Request { slot: Cluster::slot_of(key.as_bytes()), calls: vec![Call::plain(command(words))], waits }
}

fn count(key: &str, waits: bool) -> Request {
    let call = Call::script_on(&COUNT, key.as_bytes(), &[]);
    Request { slot: Cluster::slot_of(key.as_bytes()), calls: vec![call], waits }
}

/// Returns a key of the first slots of a primary, of which there are three.
fn key_of(primary: u16) -> String {
    let key = |number: &u32| format!("key-{primary}-{number}");
    let of_primary = |key: &String| Cluster::slot_of(key.as_bytes()) * 3 / 16384 == primary;
    let keys = (0..).map(|number| key(&number)).filter(|key| Cluster::slot_of(key.as_bytes()) < 5000 * (primary + 1));
    keys.into_iter().find(of_primary).unwrap()
}

fn acknowledged(result: &Result<Response, ClusterError>) -> Option<usize> {
    result.as_ref().unwrap().acknowledged
}

fn number(result: &Result<Response, ClusterError>) -> i64 {
    i64::from_redis_value_ref(&result.as_ref().unwrap().values[0]).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_healthy_cluster_answers_all_requests() {
    let nodes = Nodes::up();
    let cluster = nodes.client().await;
    assert_eq!(cluster.primaries().len(), 3);
    answers_have_the_order_of_the_requests(&cluster).await;
    errors_keep_their_kind_and_concern_only_their_request(&cluster).await;
    scripts_are_loaded_again_after_a_flush(&nodes, &cluster).await;
    every_primary_answers(&cluster).await;
    connections_may_be_killed_while_requests_run(&nodes, &cluster).await;
    a_slot_may_move_while_requests_run(&nodes, &cluster).await;
    a_wrong_password_is_named(&nodes).await;
    no_user_may_do_more_than_permitted(&nodes).await;
}

async fn answers_have_the_order_of_the_requests(cluster: &Cluster) {
    let two = |number: usize| {
        let key = format!("order-{number}");
        let mut request = plain(&key, &format!("SET {key} {number}"), number.is_multiple_of(3));
        request.calls.push(Call::plain(command(&format!("GET {key}"))));
        request
    };
    let answers = cluster.run((0..1000).map(two).collect()).await;
    assert_eq!(answers.len(), 1000);
    for (number, answer) in answers.iter().enumerate() {
        let values = vec![Value::Okay, Value::BulkString(number.to_string().into())];
        let acknowledged = number.is_multiple_of(3).then_some(1);
        assert_eq!(*answer, Ok(Response { values, acknowledged }), "{number}");
    }
    assert_eq!(cluster.run(Vec::new()).await, []);
}

async fn errors_keep_their_kind_and_concern_only_their_request(cluster: &Cluster) {
    let key = key_of(0);
    let set = cluster.run(vec![plain(&key, &format!("SET {key} text"), false)]).await;
    assert_eq!(set[0].as_ref().unwrap().values, [Value::Okay]);
    let both = [format!("LPUSH {key} text"), format!("GET {key}")].map(|words| plain(&key, &words, true));
    let [push, get] = cluster.run(both.into()).await.try_into().unwrap();
    let error = push.unwrap_err();
    assert!(
        matches!(&error, ClusterError::Other { command, text, .. } if command == "LPUSH" && text.starts_with("WRONGTYPE"))
    );
    assert_eq!(get.unwrap().acknowledged, Some(1));
}

async fn scripts_are_loaded_again_after_a_flush(nodes: &Nodes, cluster: &Cluster) {
    for round in 1..=3 {
        let counts = || (0..30).map(|key| count(&format!("script-{key}"), key % 2 == 0)).collect();
        assert!(cluster.run(counts()).await.iter().all(|answer| number(answer) == round));
        for primary in 0..3 {
            nodes.direct(primary).await.ask("SCRIPT FLUSH SYNC").await;
        }
    }
}

async fn every_primary_answers(cluster: &Cluster) {
    let commands = ["CLUSTER INFO", "CLUSTER INFOS", "DBSIZE"].map(command);
    let answers = cluster.on_nodes(cluster.primaries(), &commands).await;
    assert_eq!(answers.len(), 3);
    for (node, answers) in answers {
        let [Ok(info), Err(ClusterError::Other { .. }), Ok(Value::Int(_))] = &answers.unwrap()[..] else { panic!() };
        let info = String::from_redis_value_ref(info).unwrap();
        assert!(info.contains("cluster_state:ok"), "{node}: {info}");
    }
}

/// Counts all of these keys again and again until `ends`, and returns how often. No request fails, and no count is lost.
async fn keep_counting(cluster: &Cluster, keys: Vec<String>, ends: &AtomicBool) -> i64 {
    let mut before = vec![0; keys.len()];
    let mut rounds = 0;
    while !ends.load(Ordering::Relaxed) {
        let requests = keys.iter().enumerate().map(|(at, key)| count(key, at % 2 == 0)).collect();
        for (before, answer) in before.iter_mut().zip(cluster.run(requests).await) {
            let now = number(&answer);
            assert!(now > *before, "{now} after {before}");
            *before = now;
        }
        rounds += 1;
    }
    rounds
}

async fn connections_may_be_killed_while_requests_run(nodes: &Nodes, cluster: &Cluster) {
    let ends = AtomicBool::new(false);
    let keys = (0..3).map(key_of).map(|key| format!("{{{key}}}-killed")).collect();
    let kill = async {
        let mut direct = nodes.direct(0).await;
        for _ in 0..5 {
            direct.ask("CLIENT KILL TYPE normal SKIPME yes").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        ends.store(true, Ordering::Relaxed);
    };
    let (rounds, ()) = tokio::join!(keep_counting(cluster, keys, &ends), kill);
    assert!(rounds > 5, "{rounds}");
}

async fn a_slot_may_move_while_requests_run(nodes: &Nodes, cluster: &Cluster) {
    let key = key_of(0);
    let slot = Cluster::slot_of(key.as_bytes());
    // The first half exists when the slot begins to move. The rest is made while it moves.
    let keys: Vec<_> = (0..100).map(|number| format!("{{{key}}}-moved-{number}")).collect();
    let old: Vec<_> = keys[..50].iter().map(|key| count(key, false)).collect();
    assert!(cluster.run(old).await.iter().all(Result::is_ok));

    let ends = AtomicBool::new(false);
    let moves = async {
        let (mut from, mut to) = (nodes.direct(0).await, nodes.direct(1).await);
        let ids = (from.text("CLUSTER MYID").await, to.text("CLUSTER MYID").await);
        to.ask(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", ids.0)).await;
        from.ask(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", ids.1)).await;
        loop {
            let few = from.ask(&format!("CLUSTER GETKEYSINSLOT {slot} 5")).await;
            let few = Vec::<String>::from_redis_value(few).unwrap();
            if few.is_empty() {
                break;
            }
            let mut migrate = command(&format!("MIGRATE 127.0.0.1 {}", nodes.port(1)));
            migrate.arg("").arg(0).arg(5000).arg("AUTH").arg(PASSWORD).arg("KEYS").arg(few);
            let () = migrate.query_async(&mut from.0).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for node in [&mut to, &mut from] {
            node.ask(&format!("CLUSTER SETSLOT {slot} NODE {}", ids.1)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        ends.store(true, Ordering::Relaxed);
        assert!(to.text("INFO commandstats").await.contains("cmdstat_asking:"));
        assert!(from.text("INFO errorstats").await.contains("errorstat_MOVED:"));
    };
    tokio::join!(keep_counting(cluster, keys, &ends), moves);
}

async fn a_wrong_password_is_named(nodes: &Nodes) {
    for (password, reason) in [(None, "NOAUTH"), (Some("wrong"), "WRONGPASS")] {
        let config = ClusterConfig { password: password.map(Password::new), ..nodes.config() };
        let error = Cluster::connect(config).await.unwrap_err();
        assert!(matches!(&error, ClusterError::Login { reason: given, .. } if given.starts_with(reason)), "{error}");
        assert!(error.to_string().contains("correct redis.username and the file redis.password_file"), "{error}");
    }
    let config = ClusterConfig { nodes: vec!["localhost".to_owned()], ..nodes.config() };
    assert_eq!(Cluster::connect(config).await.unwrap_err(), ClusterError::Address { address: "localhost".to_owned() });
    let config = ClusterConfig { nodes: vec!["127.0.0.1:1".to_owned()], ..nodes.config() };
    let error = Cluster::connect(config).await.unwrap_err();
    assert!(matches!(&error, ClusterError::Unreachable { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn connections_may_use_tls() {
    let server = TlsNode::start();
    let address = NodeAddress::new("127.0.0.1", server.port);
    let config = |tls| ClusterConfig {
        nodes: vec![address.to_string()],
        username: None,
        password: None,
        tls,
        timeout: TIMEOUT,
        acks: 0,
    };
    let trusting = || config(Some(server.trust.clone()));
    let node = node::Node::new(address.clone(), Arc::new(trusting()));
    let began = Instant::now();
    let slots = || vec![command("CLUSTER ADDSLOTSRANGE 0 16383")];
    while let Err(error) = topology::ask(&node, &slots(), tokio::time::Instant::now() + TIMEOUT).await {
        assert!(began.elapsed() < 5 * TIMEOUT, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let cluster = Cluster::connect(trusting()).await.unwrap();
    until_all_succeed(&cluster, 5 * TIMEOUT).await;
    let waited = cluster.run(vec![count("key", true)]).await;
    assert_eq!((number(&waited[0]), acknowledged(&waited[0])), (1, Some(0)));
    let error = Cluster::connect(config(None)).await.unwrap_err();
    assert!(matches!(&error, ClusterError::Unreachable { .. }), "{error}");
}

async fn no_user_may_do_more_than_permitted(nodes: &Nodes) {
    for node in 0..6 {
        nodes.direct(node).await.ask("ACL SETUSER hapax on >guest ~key* +@all -script -set").await;
    }
    let user = (Some("hapax".to_owned()), Some(Password::new("guest")));
    let cluster =
        Cluster::connect(ClusterConfig { username: user.0, password: user.1, ..nodes.config() }).await.unwrap();
    let key = key_of(2);
    nodes.direct(2).await.ask("SCRIPT FLUSH").await;
    let requests = vec![plain(&key, &format!("SET {key} 1"), false), count(&key, false)];
    for (answer, name) in cluster.run(requests).await.into_iter().zip(["SET", "SCRIPT LOAD"]) {
        let error = answer.unwrap_err();
        assert!(matches!(&error, ClusterError::NoPermission { command, .. } if command == name), "{error}");
    }
}

/// Sends a request to each of the three primaries until all succeed. Each run ends in time.
async fn until_all_succeed(cluster: &Cluster, limit: Duration) {
    let began = Instant::now();
    loop {
        let run = Instant::now();
        let answers = cluster.run((0..3).map(|primary| count(&key_of(primary), false)).collect()).await;
        assert!(run.elapsed() < TIMEOUT_AND_A_LITTLE, "{:?}", run.elapsed());
        if answers.iter().all(Result::is_ok) {
            return;
        }
        assert!(began.elapsed() < limit, "{answers:?}");
    }
}

/// A node that does not answer is noticed after 1 s. The election takes at most 1.5 s, and the client may need 2 s more.
const FAILOVER_MAX: Duration = Duration::from_millis(5000);

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn replicas_take_over_for_paused_and_for_killed_nodes() {
    let nodes = Nodes::up();
    let cluster = nodes.client().await;
    until_all_succeed(&cluster, TIMEOUT).await;
    a_paused_node_delays_only_its_own_requests(&nodes, &cluster).await;
    a_killed_node_fails_only_its_own_requests(&nodes, &cluster).await;
    without_replicas_a_wait_ends_in_time(&cluster).await;
}

async fn a_paused_node_delays_only_its_own_requests(nodes: &Nodes, cluster: &Cluster) {
    nodes.command("pause", &["0"]);
    let others = cluster.clone();
    let others = tokio::spawn(async move {
        let began = Instant::now();
        let answers = others.run((1..3).map(|primary| count(&key_of(primary), true)).collect()).await;
        (began.elapsed(), answers)
    });
    let began = Instant::now();
    let answers = cluster.run((0..3).map(|primary| count(&key_of(primary), primary != 1)).collect()).await;
    let took = began.elapsed();
    assert!(took >= TIMEOUT && took < TIMEOUT_AND_A_LITTLE, "{took:?}");
    let error = answers[0].as_ref().unwrap_err();
    assert!(matches!(error, ClusterError::Timeout { node, .. } if node.to_string() == nodes.addresses[0]), "{error}");
    assert_eq!((acknowledged(&answers[1]), acknowledged(&answers[2])), (None, Some(1)));
    let (took, answers) = others.await.unwrap();
    assert!(took < TIMEOUT / 2 && answers.iter().all(Result::is_ok), "{took:?} {answers:?}");

    until_all_succeed(cluster, FAILOVER_MAX).await;
    nodes.command("resume", &["0"]);
}

async fn a_killed_node_fails_only_its_own_requests(nodes: &Nodes, cluster: &Cluster) {
    nodes.command("stop", &["1"]);
    let began = Instant::now();
    let answers = cluster.run((0..3).map(|primary| count(&key_of(primary), false)).collect()).await;
    assert!(began.elapsed() < TIMEOUT_AND_A_LITTLE, "{:?}", began.elapsed());
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    let error = answers[1].as_ref().unwrap_err();
    assert!(
        matches!(error, ClusterError::Unreachable { node, .. } if node.to_string() == nodes.addresses[1]),
        "{error}"
    );
    until_all_succeed(cluster, FAILOVER_MAX).await;
}

/// The replica of the killed node is a primary now, and has no replica. Its requests learn this before the time is over,
/// even if they have waited behind another `WAIT`.
async fn without_replicas_a_wait_ends_in_time(cluster: &Cluster) {
    let runs = (0..12).map(|_| async {
        let began = Instant::now();
        let answers = cluster.run(vec![count(&key_of(1), true), count(&key_of(2), true)]).await;
        (began.elapsed(), answers)
    });
    for (took, answers) in futures::future::join_all(runs).await {
        assert!(took < TIMEOUT_AND_A_LITTLE, "{took:?}");
        assert_eq!((acknowledged(&answers[0]), acknowledged(&answers[1])), (Some(0), Some(1)));
    }
}
