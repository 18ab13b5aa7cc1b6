//! Answers over HTTP are linearizable. For the questions that several clients asked at the same time, and their
//! answers, there is an order in which a single client could have asked them and received the same answers. If a
//! request was answered before another one was sent, it also comes first in this order.
//!
//! There are few ids and few texts, so that nearly all requests affect each other: inserts of every kind, even of
//! links, deletes, deletes by label, reads, and checks. `model` computes the answers to a single client, and `checker`
//! looks for the order.

mod checker;
mod model;

use std::collections::HashSet;
use std::sync::Barrier;
use std::time::Instant;

use base64::Engine;
use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use self::checker::Request;
use self::model::{Answer, Ask, FAMILIES, IDS, State, Texts, VARIANTS};
use crate::support::client::{CHECK, Client, DOCUMENTS};
use crate::support::library::{dir, seed};
use crate::support::local::{Local, Setup};

const CLIENTS: u64 = 6;
const ROUNDS: u64 = 25;
/// The number of requests of one client in a round. Between rounds no request is in progress.
const ASKED: usize = 8;

/// Returns a text. Texts of a family differ in one word of 200, so any two are near-duplicates. Families have nothing
/// in common.
fn text(family: u8, variant: u8) -> String {
    let word = |at| if at == 100 { format!("variant{variant}") } else { format!("family{family}word{at}") };
    (0..200).map(word).collect::<Vec<_>>().join(" ")
}

/// Compares the signatures of all texts.
fn texts(client: &Client) -> Texts {
    let signature = |family, variant| {
        let signed = client.post("/v1/collections/default/sign", &json!({"text": text(family, variant)})).ok();
        base64::engine::general_purpose::STANDARD.decode(signed["signature"].as_str().unwrap()).unwrap()
    };
    Texts::new(|family, (one, other)| {
        let (one, other) = (signature(family, one), signature(family, other));
        one.iter().zip(other).filter(|&(&one, other)| one == other).count()
    })
}

fn any(rng: &mut ChaCha8Rng) -> Ask {
    let (id, family) = (rng.random_range(0..IDS), rng.random_range(0..FAMILIES));
    let variant = rng.random_range(0..VARIANTS);
    match rng.random_range(0..100) {
        0..38 => Ask::Insert {
            id,
            family,
            variant,
            on_duplicate: ["link", "store", "skip"][rng.random_range(0..3)],
            on_existing: ["replace", "replace", "keep", "conflict"][rng.random_range(0..4)],
        },
        38..50 => Ask::Delete { id },
        50..52 => Ask::DeleteVariant { variant },
        52..62 => Ask::Get { id },
        _ => Ask::Check { family, variant },
    }
}

fn number(id: &Value) -> u8 {
    id.as_str().unwrap().parse().unwrap()
}

fn matches(verdict: &Value) -> Vec<u8> {
    verdict["matches"].as_array().unwrap().iter().map(|found| number(&found["id"])).collect()
}

fn send(client: &Client, ask: Ask) -> Answer {
    match ask {
        Ask::Insert { id, family, variant, on_duplicate, on_existing } => {
            let target = format!("{DOCUMENTS}?on_duplicate={on_duplicate}&on_existing={on_existing}");
            let labels = json!({"variant": variant.to_string()});
            let document = json!({"id": id.to_string(), "text": text(family, variant), "labels": labels});
            let answer = client.post(&target, &document);
            if answer.status == 409 {
                return Answer::Conflict;
            }
            let verdict = answer.ok();
            match verdict["outcome"].as_str().unwrap() {
                // The answer repeats the first verdict.
                "unchanged" => Answer::Unchanged,
                outcome => Answer::Judged {
                    outcome: outcome.to_owned(),
                    matches: matches(&verdict),
                    representative: verdict.get("representative").map(number),
                },
            }
        }
        Ask::Delete { id } => {
            Answer::Deleted(client.delete(&format!("{DOCUMENTS}?id={id}")).ok()["deleted"].as_u64().unwrap())
        }
        Ask::DeleteVariant { variant } => {
            let answer = client.delete(&format!("{DOCUMENTS}?label=variant:{variant}"));
            assert_eq!(answer.status, 202, "{}", answer.text());
            Answer::Deleted(answer.json()["documents"].as_u64().unwrap())
        }
        Ask::Get { id } => {
            let answer = client.get(&format!("{DOCUMENTS}?id={id}"));
            Answer::Read((answer.status != 404).then(|| {
                let document = answer.ok();
                (number(&document["labels"]["variant"]), document["linked"].as_bool().unwrap())
            }))
        }
        Ask::Check { family, variant } => {
            Answer::Checked(matches(&client.post(CHECK, &json!({"text": text(family, variant)})).ok()))
        }
    }
}

/// Lets all clients send requests at the same time, and returns each request with its answer.
fn round(client: &Client, seed: u64) -> Vec<Request> {
    let (began, start) = (Instant::now(), Barrier::new(CLIENTS as usize));
    std::thread::scope(|scope| {
        let ask = |number: u64| {
            let (start, mut rng) = (&start, ChaCha8Rng::seed_from_u64(seed ^ number.wrapping_mul(0x9E37_79B9)));
            scope.spawn(move || {
                start.wait();
                let requests = (0..ASKED).map(|_| {
                    let (ask, sent) = (any(&mut rng), began.elapsed());
                    let answer = send(client, ask);
                    Request { ask, answer, sent, answered: began.elapsed() }
                });
                requests.collect::<Vec<_>>()
            })
        };
        let asking: Vec<_> = (0..CLIENTS).map(ask).collect();
        asking.into_iter().flat_map(|asking| asking.join().unwrap()).collect()
    })
}

#[test]
fn answers_over_http_are_those_of_some_order() {
    let dir = dir();
    let local = Setup::new(&dir).start();
    let seed = seed();
    histories(&local, seed, ROUNDS);
}

fn histories(local: &Local, seed: u64, rounds: u64) {
    let client = Client::of(local);
    let texts = texts(&client);
    let mut states = HashSet::from([State::default()]);
    for number in 0..rounds {
        let requests = round(&client, seed.wrapping_add(number.wrapping_mul(0x1234_5677)));
        states = checker::states_after(&texts, &states, &requests).unwrap_or_else(|requests| {
            panic!(
                "seed {seed}, round {number}: no order of these requests gives their answers, from {states:?}:\n{requests}"
            )
        });
    }
}

/// Run this test by hand: HAPAX_HISTORIES_ROUNDS=2000 cargo test --release --test it histories -- --ignored
#[test]
#[ignore = "takes minutes; runs in `make races`"]
fn long_histories_are_those_of_some_order() {
    let rounds = std::env::var("HAPAX_HISTORIES_ROUNDS").map_or(600, |rounds| rounds.parse().unwrap());
    let dir = dir();
    histories(&Setup::new(&dir).start(), seed(), rounds);
}
