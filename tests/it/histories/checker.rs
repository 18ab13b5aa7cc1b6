//! Looks for an order of concurrent requests in which a single client could have received the same answers (Wing and
//! Gong, "Testing and verifying concurrent objects", 1993). A state that was tried once is not tried again (Lowe,
//! "Testing for linearizability", 2017).

use std::collections::HashSet;
use std::fmt::Write;
use std::time::Duration;

use super::model::{Answer, Ask, State, Texts};

/// The question of a client, its answer, and the times of both.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub ask: Ask,
    pub answer: Answer,
    pub sent: Duration,
    pub answered: Duration,
}

/// Returns the states in which such an order may end if it starts in one of `states`. Returns none if there is no such
/// order. There may be at most 64 requests.
pub(super) fn states_after(texts: &Texts, states: &HashSet<State>, requests: &[Request]) -> HashSet<State> {
    assert!(requests.len() <= 64);
    let all = u64::MAX >> (64 - requests.len());
    let mut seen: HashSet<(u64, State)> = states.iter().map(|state| (0, state.clone())).collect();
    let mut open: Vec<(u64, State)> = seen.iter().cloned().collect();
    let mut ends = HashSet::new();
    while let Some((done, state)) = open.pop() {
        if done == all {
            ends.insert(state);
            continue;
        }
        let left = || requests.iter().enumerate().filter(|(at, _)| done & 1 << at == 0);
        let first_answered = left().map(|(_, request)| request.answered).min().unwrap();
        // A request that was sent after another one had been answered cannot be next.
        for (at, request) in left().filter(|(_, request)| request.sent <= first_answered) {
            let mut next = state.clone();
            if next.ask(texts, request.ask) == request.answer {
                let step = (done | 1 << at, next);
                if seen.insert(step.clone()) {
                    open.push(step);
                }
            }
        }
    }
    ends
}

/// Returns the requests in the order in which they were sent, as a text.
pub(super) fn told(requests: &[Request]) -> String {
    let mut requests: Vec<&Request> = requests.iter().collect();
    requests.sort_by_key(|request| request.sent);
    requests.into_iter().fold(String::new(), |mut told, Request { ask, answer, sent, answered }| {
        writeln!(
            told,
            "{:>9.3} to {:>9.3} ms: {ask:?} -> {answer:?}",
            sent.as_secs_f64() * 1e3,
            answered.as_secs_f64() * 1e3
        )
        .unwrap();
        told
    })
}

mod tests {
    use super::*;

    const INSERT: Ask = Ask::Insert { id: 0, family: 0, variant: 0, on_duplicate: "skip", on_existing: "replace" };

    fn request(ask: Ask, answer: Answer, sent: u64, answered: u64) -> Request {
        Request { ask, answer, sent: Duration::from_millis(sent), answered: Duration::from_millis(answered) }
    }

    fn ends(requests: &[Request]) -> usize {
        let texts = Texts::new(|_, (one, other)| if one == other { 256 } else { 240 });
        states_after(&texts, &HashSet::from([State::default()]), requests).len()
    }

    fn inserted() -> Answer {
        Answer::Judged { outcome: "inserted".to_owned(), matches: vec![], representative: None }
    }

    #[test]
    fn a_concurrent_read_may_see_an_insert_or_not() {
        let get = |seen: bool| Answer::Read(seen.then_some((0, false)));
        for seen in [true, false] {
            let requests = [request(INSERT, inserted(), 0, 10), request(Ask::Get { id: 0 }, get(seen), 5, 6)];
            assert_eq!(ends(&requests), 1);
            let later = [request(INSERT, inserted(), 0, 10), request(Ask::Get { id: 0 }, get(seen), 11, 12)];
            assert_eq!(ends(&later), usize::from(seen), "a later read must see it");
        }
    }

    #[test]
    fn no_read_goes_back_behind_an_earlier_one() {
        let check = |found: bool| Answer::Checked(if found { vec![0] } else { vec![] });
        let ask = Ask::Check { family: 0, variant: 1 };
        for (first, second) in [(false, false), (false, true), (true, true), (true, false)] {
            let requests = [
                request(INSERT, inserted(), 0, 100),
                request(ask, check(first), 10, 20),
                request(ask, check(second), 30, 40),
            ];
            assert_eq!(ends(&requests), usize::from((first, second) != (true, false)));
        }
    }

    #[test]
    fn a_check_that_names_both_a_deleted_document_and_its_heir_fits_no_order() {
        let link = |id, variant| Ask::Insert { id, family: 0, variant, on_duplicate: "link", on_existing: "replace" };
        let linked = Answer::Judged { outcome: "linked".to_owned(), matches: vec![0], representative: Some(0) };
        for (found, fits) in [(vec![0], 1), (vec![1], 1), (vec![0, 1], 0), (vec![], 0)] {
            let requests = [
                request(link(0, 0), inserted(), 0, 1),
                request(link(1, 1), linked.clone(), 2, 3),
                request(Ask::Delete { id: 0 }, Answer::Deleted(1), 4, 10),
                request(Ask::Check { family: 0, variant: 2 }, Answer::Checked(found), 5, 9),
            ];
            assert_eq!(ends(&requests), fits);
        }
    }
}
