//! No request fails while slots move to another primary and back.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::calls::{Call, Said};
use super::clients::Clients;
use super::inject::Fault;
use super::world::World;
use crate::redis_store::{seed, turn};
use crate::support::library::dir;
use crate::support::redis::Kind;

const CLIENTS: u64 = 16;

fn no_request_fails(kind: Kind) {
    let _turn = turn();
    let Some(world) = World::up(kind) else { return };
    let (dir, clients) = (dir(), Clients::new(CLIENTS));
    let proxy = world.proxy(None);
    let server = world.server(&proxy, dir.path(), 0, false);
    clients.moved(0, Some(server.address()));
    let seed = seed("moved");
    let moved = clients.during(seed, || world.happen(Fault::MoveSlots, &mut ChaCha8Rng::seed_from_u64(seed)));
    assert_eq!(moved, "MoveSlots", "nothing has failed");
    let records = clients.take_records();
    for record in &records {
        // Of two deletes of one id at the same time, the later one may be uncertain.
        let is_fine = match record.said {
            Said::Refused { .. } => false,
            Said::Uncertain(why) => why == "uncertain" && matches!(record.call, Call::Delete(_)),
            _ => true,
        };
        assert!(is_fine, "{record:?}");
    }
    println!("moved: {} answers", records.len());
    assert!(records.len() > 100, "{}", records.len());
}

#[test]
#[ignore = "runs in `make redis-faults`"]
fn no_request_fails_while_slots_of_redis_move() {
    no_request_fails(Kind::Redis);
}

#[test]
#[ignore = "runs in `make redis-faults`"]
fn no_request_fails_while_slots_of_valkey_move() {
    no_request_fails(Kind::Valkey);
}
