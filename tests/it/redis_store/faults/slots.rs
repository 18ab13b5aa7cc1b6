//! Moves slots from one primary to another under load, as `redis-cli --cluster reshard` does.

use std::io;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use super::admin::Admin;
use super::nodes::{Index, Nodes};

/// Slots whose commands are sent together.
const AT_ONCE: usize = 200;
/// Keys that are moved together.
const KEYS_AT_ONCE: usize = 100;
/// Connections to a node. Valkey answers a setting only when the replica has it, and each connection waits for that.
const LANES: usize = 50;
/// How long a replica may be silent.
const REPLICAS_MAX: Duration = Duration::from_secs(30);

/// Moves slots. No node may fail meanwhile.
pub fn migrate(nodes: &Nodes, slots: Range<u16>, from: Index, to: Index) -> io::Result<()> {
    let connect = |node: Index| (0..LANES).map(|_| Admin::connect(nodes.address(node))).collect::<io::Result<Vec<_>>>();
    let (mut source, mut target) = (connect(from)?, connect(to)?);
    let (_, port) = nodes.address(to).rsplit_once(':').expect("host:port");
    let all: Vec<u16> = slots.collect();
    for some in all.chunks(AT_ONCE) {
        let on_each = |what: &str| some.iter().map(|slot| format!("CLUSTER SETSLOT {slot} {what}")).collect::<Vec<_>>();
        set(&mut target, &on_each(&format!("IMPORTING {}", nodes.id(from))))?;
        set(&mut source, &on_each(&format!("MIGRATING {}", nodes.id(to))))?;
        loop {
            let asks: Vec<_> = some.iter().map(|slot| format!("CLUSTER GETKEYSINSLOT {slot} {KEYS_AT_ONCE}")).collect();
            let keys = source[0].tell_all(&asks)?;
            let full: Vec<_> = keys.iter().filter(|keys| !keys.is_empty()).collect();
            if full.is_empty() {
                break;
            }
            let moves: Vec<_> =
                full.iter().map(|keys| format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 KEYS {keys}")).collect();
            source[0].tell_all(&moves)?;
        }
        // The target first: otherwise the slots would have no node for a moment.
        let moved = on_each(&format!("NODE {}", nodes.id(to)));
        set(&mut target, &moved)?;
        set(&mut source, &moved)?;
    }
    Ok(())
}

/// Sends settings of slots. Valkey refuses them while it has not heard from a replica for a moment.
fn set(lanes: &mut [Admin], lines: &[String]) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match set_once(lanes, lines) {
            Err(error) if error.to_string().contains("NOREPLICAS") && begun.elapsed() < REPLICAS_MAX => {
                thread::sleep(Duration::from_millis(100));
            }
            answered => return answered,
        }
    }
}

fn set_once(lanes: &mut [Admin], lines: &[String]) -> io::Result<()> {
    let share = lines.len().div_ceil(lanes.len());
    for (lane, lines) in lanes.iter_mut().zip(lines.chunks(share)) {
        lane.send(lines)?;
    }
    let answers: Vec<_> = lanes.iter_mut().zip(lines.chunks(share)).map(|(lane, lines)| lane.receive(lines)).collect();
    answers.into_iter().try_for_each(|answered| answered.map(drop))
}

/// Returns the first slots of a primary, if it has so many one after another.
pub fn some_slots(nodes: &Nodes, primary: Index, count: u16) -> Option<Range<u16>> {
    let text = nodes.tell(primary, "CLUSTER NODES");
    let own = text.lines().find(|line| line.contains("myself"))?;
    own.split_whitespace().skip(8).find_map(|slots| {
        let (first, last) = slots.split_once('-')?;
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        (last - first >= count).then_some(first..first + count)
    })
}
