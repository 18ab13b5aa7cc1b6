//! Divides the memory of the process (`memory.max_bytes`) among the settings that limit parts of it. Input: the merged
//! settings, and the memory that the system grants. Output: the same settings, with values for those that were not set.
//! It must never know how a limit is enforced.

use figment::Figment;

use super::error::ConfigError;
use super::ranges::{impossible, zero_or_within};
use super::raw::{Raw, RawMemory};
use super::sources::{Sources, derive, is_set};
use crate::telemetry::memory::{Available, Source};

const MIB: u64 = 1 << 20;
/// The share of the available memory that the process takes by default. The rest is for the page cache, for other
/// processes, and for moments in which the process takes more.
const AVAILABLE_PERCENT: u64 = 80;
/// The least value of `memory.max_bytes`.
const MAX_BYTES_LEAST: u64 = 64 * MIB;
/// The least share for bodies: a decoder of zstd takes 8 MiB.
const BODIES_BYTES_MIN: u64 = 12 * MIB;
/// The memory of the process that no setting limits: connections, SQLite, threads, and the allocator's own memory. It
/// is an eighth of the whole, within these bounds.
const REST_BYTES: [u64; 2] = [32 * MIB, 1024 * MIB];
/// The part of [`REST_BYTES`] for everything except connections.
const BESIDE_CONNECTIONS_BYTES: u64 = 12 * MIB;
/// The memory for one connection and one further HTTP/2 request. In total, there are at most as many further requests
/// as connections.
/// Measured: an idle connection takes 21 KB. It takes 36 KB if the client has sent 14 KB of an incomplete head, and 75
/// KB with the largest head. A further request takes up to 36 KB.
const CONNECTION_BYTES: u64 = 96 * 1024;
const CONNECTIONS_LEAST: u64 = 64;
/// The least memory for everything except bodies, answers and payloads. Ids may take a small part of this memory.
const BESIDE_BYTES_MIN: u64 = 40 * MIB;
const BESIDE_IDS_BYTES_MAX: u64 = 4 * MIB;

/// The settings that take a part of the memory. `None`: not set.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    bodies: Option<u64>,
    answers: Option<u64>,
    payloads: Option<u64>,
    ids: Option<u64>,
    body: Option<u64>,
    line: Option<u64>,
    answer: Option<u64>,
    connections: Option<u64>,
}

/// The values of the same settings, and the memory for the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    bodies: u64,
    answers: u64,
    payloads: u64,
    ids: u64,
    body: u64,
    line: u64,
    answer: u64,
    index: u64,
    /// The number of connections.
    connections: u64,
}

/// Adds `memory.max_bytes` and its shares, if they are not set. If `memory.max_bytes` is not set and the memory of the
/// system is unknown, it adds nothing.
pub(super) fn divided(merged: Figment, available: Option<Available>) -> Result<Figment, ConfigError> {
    let raw = Sources::extract(&merged)?;
    let Some((max, origin)) = max_bytes(&raw, available)? else { return Ok(merged) };
    let Raw { server, commit, memory, .. } = &raw;
    let ask = |key: &str, value: u64| is_set(&merged, key).then_some(value);
    let asked = Asked {
        bodies: ask("server.bodies_bytes_max", server.bodies_bytes_max),
        answers: ask("server.answers_bytes_max", server.answers_bytes_max),
        payloads: ask("commit.payload_bytes_max", commit.payload_bytes_max),
        ids: ask("memory.id_cache_bytes_max", memory.id_cache_bytes_max),
        body: ask("server.body_bytes_max", server.body_bytes_max),
        line: ask("server.bulk_line_bytes_max", server.bulk_line_bytes_max),
        answer: ask("server.answer_bytes_max", server.answer_bytes_max),
        connections: ask("server.connections_max", server.connections_max),
    };
    let defaults = Shares {
        bodies: server.bodies_bytes_max,
        answers: server.answers_bytes_max,
        payloads: commit.payload_bytes_max,
        ids: memory.id_cache_bytes_max,
        body: server.body_bytes_max,
        line: server.bulk_line_bytes_max,
        answer: server.answer_bytes_max,
        index: 0,
        connections: server.connections_max,
    };
    let shares = divide(max, &asked, &defaults);
    let index = raw.limits.memory_max_bytes.unwrap_or(shares.index);
    let mut divided = merged;
    if let Some(origin) = origin {
        divided = derive(divided, "memory.max_bytes", max, origin);
    }
    for (key, before, share) in [
        ("server.bodies_bytes_max", Some(defaults.bodies), shares.bodies),
        ("server.answers_bytes_max", Some(defaults.answers), shares.answers),
        ("commit.payload_bytes_max", Some(defaults.payloads), shares.payloads),
        ("memory.id_cache_bytes_max", Some(defaults.ids), shares.ids),
        ("server.body_bytes_max", Some(defaults.body), shares.body),
        ("server.bulk_line_bytes_max", Some(defaults.line), shares.line),
        ("server.answer_bytes_max", Some(defaults.answer), shares.answer),
        ("server.connections_max", Some(defaults.connections), shares.connections),
        ("limits.memory_max_bytes", raw.limits.memory_max_bytes, index),
    ] {
        if before != Some(share) {
            divided = derive(divided, key, share, "a share of memory.max_bytes");
        }
    }
    Ok(divided)
}

/// Returns the bound of the process. If the bound is not set, also returns its origin.
fn max_bytes(raw: &Raw, available: Option<Available>) -> Result<Option<(u64, Option<&'static str>)>, ConfigError> {
    if raw.memory.max_bytes != 0 {
        let max = zero_or_within("memory.max_bytes", raw.memory.max_bytes, MAX_BYTES_LEAST..=1 << 50)?;
        return Ok(Some((max, None)));
    }
    Ok(available.map(|Available { bytes, source }| {
        let max = whole_mib(bytes / 100 * AVAILABLE_PERCENT).max(MAX_BYTES_LEAST);
        let origin = match source {
            Source::Machine => "80 % of the machine's memory",
            Source::ControlGroup => "80 % of the control group's memory",
        };
        (max, Some(origin))
    }))
}

/// Divides `max` bytes. A share that is not set gets at most its value in `defaults`.
fn divide(max: u64, asked: &Asked, defaults: &Shares) -> Shares {
    // The room that the configured limits need. Bodies need twice the largest body, with an eighth of the room left for
    // small bodies. Answers need four times the largest answer.
    let bodies_min = (asked.body.max(asked.line).unwrap_or(0).saturating_mul(16) / 7).max(BODIES_BYTES_MIN);
    let answers_min = asked.answer.unwrap_or(0).saturating_mul(4);
    let bodies = asked.bodies.unwrap_or_else(|| whole_mib(max / 8).max(bodies_min).min(defaults.bodies));
    let answers = asked.answers.unwrap_or_else(|| whole_mib(max / 8).max(answers_min).min(defaults.answers));
    let payloads = asked.payloads.unwrap_or_else(|| whole_mib(max / 16).min(defaults.payloads));
    // If a share is set, the limits within this share are not reduced, so that values that do not fit together are
    // refused.
    let part = |set: bool, part: u64, default: u64| if set { default } else { part.min(default) };
    let counted = bodies.saturating_add(answers).saturating_add(payloads);
    let rest = rest(max, counted.saturating_add(asked.ids.unwrap_or(0)));
    let left = max.saturating_sub(counted);
    let ids_max = (left.saturating_sub(rest) / 4).min(left.saturating_sub(BESIDE_BYTES_MIN - BESIDE_IDS_BYTES_MAX));
    let ids = asked.ids.unwrap_or_else(|| whole_mib((max / 16).min(ids_max)).min(defaults.ids));
    let connections = rest.saturating_sub(BESIDE_CONNECTIONS_BYTES) / CONNECTION_BYTES;
    Shares {
        bodies,
        answers,
        payloads,
        ids,
        body: part(asked.bodies.is_some() || asked.body.is_some(), bodies / 16 * 7, defaults.body),
        line: part(asked.bodies.is_some() || asked.line.is_some(), bodies / 16 * 7, defaults.line),
        answer: part(asked.answers.is_some() || asked.answer.is_some(), answers / 4, defaults.answer),
        index: whole_mib(left.saturating_sub(rest).saturating_sub(ids)).max(MIB),
        connections: asked.connections.unwrap_or_else(|| connections.max(CONNECTIONS_LEAST).min(defaults.connections)),
    }
}

/// Returns the share of the memory that no setting limits, if bodies, answers, payloads and ids take `counted` bytes.
fn rest(max: u64, counted: u64) -> u64 {
    let [rest_min, rest_max] = REST_BYTES;
    (max / 8).clamp(rest_min, rest_max).min(max.saturating_sub(counted) / 2)
}

/// Checks whether `connections` connections may take more memory than is left for everything that has no limit of its
/// own. If so, returns both amounts: the memory of the connections, and the memory that is left.
pub fn too_many_connections(max: u64, counted: u64, connections: usize) -> Option<(u64, u64)> {
    let (taken, rest) = (CONNECTION_BYTES.saturating_mul(connections as u64), rest(max, counted));
    (taken > rest).then_some((taken, rest))
}

fn whole_mib(bytes: u64) -> u64 {
    bytes / MIB * MIB
}

/// Refuses settings that leave no memory for the index and the rest of the process.
pub(super) fn fit(memory: &RawMemory, bodies: usize, answers: usize, payloads: usize) -> Result<(), ConfigError> {
    let RawMemory { max_bytes: max, id_cache_bytes_max: ids } = *memory;
    let beside = BESIDE_BYTES_MIN - ids.min(BESIDE_IDS_BYTES_MAX);
    let least = bodies as u64 + answers as u64 + payloads as u64 + ids + beside;
    if max >= least {
        return Ok(());
    }
    let allowed = format!(
        "must be at least {least}, the sum of server.bodies_bytes_max = {bodies}, server.answers_bytes_max = {answers}, \
         commit.payload_bytes_max = {payloads}, memory.id_cache_bytes_max = {ids}, and {beside} for everything else; \
         raise it, or lower these"
    );
    Err(impossible("memory.max_bytes", max, allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const DEFAULTS: Shares = Shares {
        bodies: 512 * MIB,
        answers: 256 * MIB,
        payloads: 256 * MIB,
        ids: GIB,
        body: 16 * MIB,
        line: 16 * MIB,
        answer: 16 * MIB,
        index: 0,
        connections: 4096,
    };

    #[test]
    fn shares_fit_into_the_whole_whatever_it_is() {
        for max in [64 * MIB, 100 * MIB, 200 * MIB, 409 * MIB, GIB, 3 * GIB + 5, 16 * GIB, 1 << 50] {
            let shares = divide(max, &Asked::default(), &DEFAULTS);
            let Shares { bodies, answers, payloads, ids, body, line, answer, index, connections } = shares;
            let parts = bodies + answers + payloads + ids + index;
            assert!(parts + max / 16 <= max || parts + GIB <= max + MIB, "{max}: {shares:?}");
            assert!(bodies - bodies / 8 >= 2 * body.max(line) && answers >= 4 * answer, "{max}: {shares:?}");
            let memory = RawMemory { max_bytes: max, id_cache_bytes_max: ids };
            assert!(fit(&memory, bodies as usize, answers as usize, payloads as usize).is_ok(), "{max}: {shares:?}");
            assert!(index >= max / 8, "{max}: {shares:?}");
            let counted = bodies + answers + payloads + ids;
            assert_eq!(too_many_connections(max, counted, connections as usize), None, "{max}: {shares:?}");
        }
    }

    #[test]
    fn a_large_machine_has_the_defaults_and_the_rest_is_for_the_index() {
        let shares = divide(20 * GIB, &Asked::default(), &DEFAULTS);
        assert_eq!(shares, Shares { index: 17 * GIB, ..DEFAULTS });
    }

    #[test]
    fn connections_take_most_of_what_has_no_limit_of_its_own() {
        let connections = |max| divide(max, &Asked::default(), &DEFAULTS).connections;
        assert_eq!([64, 128, 512, 2048].map(|mib| connections(mib * MIB)), [85, 213, 554, 2602]);
        let set = Asked { connections: Some(5000), ..Asked::default() };
        assert_eq!(divide(512 * MIB, &set, &DEFAULTS).connections, 5000);
        assert_eq!(too_many_connections(512 * MIB, 160 * MIB, 5000), Some((5000 * CONNECTION_BYTES, 64 * MIB)));
    }

    #[test]
    fn what_is_set_stays_and_others_give_way() {
        let asked = Asked { body: Some(48 * MIB), answers: Some(16 * MIB), ..Asked::default() };
        let shares = divide(512 * MIB, &asked, &DEFAULTS);
        assert_eq!((shares.bodies, shares.answers, shares.payloads), (48 * MIB * 16 / 7, 16 * MIB, 32 * MIB));
        assert_eq!((shares.line, shares.index), (16 * MIB, 258 * MIB));
        let fits = |bodies: usize, ids: u64| {
            let memory = RawMemory { max_bytes: 128 * MIB, id_cache_bytes_max: ids * MIB };
            fit(&memory, bodies << 20, 8 << 20, 8 << 20).is_ok()
        };
        assert_eq!(
            [(72, 0), (73, 0), (72, 4), (72, 5), (71, 5)].map(|(bodies, ids)| fits(bodies, ids)),
            [true, false, true, false, true]
        );
        let all = Asked { bodies: Some(300 * MIB), answers: Some(200 * MIB), ..Asked::default() };
        assert_eq!(divide(512 * MIB, &all, &DEFAULTS).index, MIB);
        let ids = |bodies: u64, answers: u64| {
            let asked = Asked { bodies: Some(bodies * MIB), answers: Some(answers * MIB), ..Asked::default() };
            divide(512 * MIB, &asked, &DEFAULTS).ids / MIB
        };
        assert_eq!([ids(64, 64), ids(300, 108), ids(300, 140), ids(300, 150)], [32, 9, 4, 0]);
        let ids = Asked { ids: Some(640 * MIB), ..Asked::default() };
        let Shares { index, connections, .. } = divide(GIB, &ids, &DEFAULTS);
        assert_eq!((index / MIB, connections), (32, 213));
        let memory = RawMemory { max_bytes: 512 * MIB, id_cache_bytes_max: 32 * MIB };
        let error = fit(&memory, 300 << 20, 200 << 20, 32 << 20).unwrap_err().to_string();
        for part in ["memory.max_bytes", "server.bodies_bytes_max", "server.answers_bytes_max", "payload_bytes_max"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
