//! Servers that break the protocol break linearizability, and the judge finds it. A proxy lies to them, so they do what
//! they would do with a planted fault.

use std::thread;

use super::calls::{Call, Said};
use super::cell::{Doc, Event, Id};
use super::clients::Clients;
use super::history::{Times, judge};
use super::nodes::Shard;
use super::world::World;
use crate::redis_store::commands::CommandKind;
use crate::redis_store::http::agent;
use crate::redis_store::proxy::Lie;
use crate::support::library::dir;
use crate::support::redis::Kind;
use crate::support::until::until;

/// So many documents that the primary that fails has the records of some.
const CELLS: u64 = 24;
const DOC: Doc = Doc { group: 0, variant: 0 };
const TWIN: Doc = Doc { group: 0, variant: 1 };

/// Each write is acknowledged at once, as if the server waited for no replica.
fn no_wait(kind: CommandKind) -> Option<&'static [u8]> {
    (kind == CommandKind::Wait).then_some(b":1\r\n")
}

/// A server finds no posting of another document.
fn no_postings(kind: CommandKind) -> Option<&'static [u8]> {
    match kind {
        CommandKind::Probe => Some(b"$-1\r\n"),
        CommandKind::Post => Some(b":1\r\n"),
        _ => None,
    }
}

/// Starts a server to which a proxy lies, and does `work`, which gets a function that inserts a document into each cell.
/// Then reads and changes all cells. Returns the violations.
fn broken_by(lie: Option<Lie>, work: impl FnOnce(&World, &dyn Fn(Id, Doc))) -> Option<Vec<String>> {
    let world = World::up(Kind::Redis)?;
    let (dir, proxy) = (dir(), world.proxy(lie));
    let server = world.server(&proxy, dir.path(), 0, false);
    let clients = Clients::new(1);
    clients.moved(0, Some(server.address()));
    clients.use_cells(CELLS);
    let insert = |id: Id, doc: Doc| {
        thread::scope(|scope| {
            for cell in 0..CELLS {
                let clients = &clients;
                let call = Call::Insert { id, doc, replaces: false };
                scope.spawn(move || clients.call(&agent(), &mut rand::rng(), cell, call));
            }
        });
    };
    work(&world, &insert);
    world.until_well();
    let quiet = clients.now();
    clients.look(0);
    let records = clients.take_records();
    let stored = records.iter().filter(|record| record.begin < quiet && record.said == Said::Stored).count();
    println!(
        "lies: {stored} of {} insertions were acknowledged",
        records.iter().filter(|record| record.begin < quiet).count()
    );
    Some(judge(&records, &Times { stale: Vec::new(), quiet }))
}

/// Inserts documents while a primary is cut off from its replica, which then takes over.
fn insert_before_a_failover(world: &World, insert: &dyn Fn(Id, Doc)) {
    let Shard { primary, replica } = world.until_well()[0];
    world.links.cut(primary, [replica], true);
    insert(0, DOC);
    world.cluster.stop(primary);
    until("the replica takes over", || world.nodes.tell(replica, "ROLE").starts_with("master"));
    world.links.heal();
    world.cluster.start(primary);
}

/// A planted fault: no write is waited for.
#[test]
fn a_server_that_waits_for_no_replica_loses_documents_and_the_judge_finds_it() {
    let Some(broken) = broken_by(None, insert_before_a_failover) else { return };
    assert_eq!(broken, Vec::<String>::new(), "an honest server loses nothing");
    let broken = broken_by(Some(no_wait), insert_before_a_failover).expect("Redis is installed");
    println!("lies: {} of {CELLS} histories have no order; one of them: {}", broken.len(), broken[0]);
}

/// A planted fault: documents that share a band are not looked for.
#[test]
fn a_server_that_finds_no_postings_stores_two_documents_of_a_group_and_the_judge_finds_it() {
    let insert_twice = |_: &World, insert: &dyn Fn(Id, Doc)| {
        insert(0, DOC);
        insert(1, TWIN);
    };
    let Some(broken) = broken_by(None, insert_twice) else { return };
    assert_eq!(broken, Vec::<String>::new(), "an honest server stores one of them");
    let broken = broken_by(Some(no_postings), insert_twice).expect("Redis is installed");
    assert_eq!(broken.len() as u64, CELLS);
    let second = format!("{:?}  <-- no place", Event::Stored(1, TWIN));
    assert!(broken.iter().all(|broken| broken.contains(&second)), "{broken:?}");
}
