//! Looks for an order of concurrent requests in which a single client could have received the same answers.

use std::collections::HashSet;
use std::time::Duration;

use super::model::{Answer, Ask, State, Texts};
use crate::support::orders::{self, Object, Operation};

/// The question of a client, its answer, and the times of both.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub ask: Ask,
    pub answer: Answer,
    pub sent: Duration,
    pub answered: Duration,
}

impl Object for Texts {
    type State = State;
    type Event = (Ask, Answer);

    fn after(&self, state: &State, (ask, answer): &(Ask, Answer)) -> Option<State> {
        let mut next = state.clone();
        (next.ask(self, *ask) == *answer).then_some(next)
    }

    fn is_read(&self, (ask, _): &(Ask, Answer)) -> bool {
        matches!(ask, Ask::Get { .. } | Ask::Check { .. })
    }
}

/// Returns the states in which such an order may end if it starts in one of `states`. If there is no such order, returns
/// the requests as a text.
pub(super) fn states_after(
    texts: &Texts,
    states: &HashSet<State>,
    requests: &[Request],
) -> Result<HashSet<State>, String> {
    let operation = |Request { ask, answer, sent, answered }: &Request| Operation {
        event: (*ask, answer.clone()),
        begin: *sent,
        end: Some(*answered),
    };
    let operations: Vec<_> = requests.iter().map(operation).collect();
    orders::states_after(texts, states, &operations).map_err(|stuck| orders::told(&operations, stuck.at))
}

mod tests {
    use super::*;

    const INSERT: Ask = Ask::Insert { id: 0, family: 0, variant: 0, on_duplicate: "skip", on_existing: "replace" };

    fn request(ask: Ask, answer: Answer, sent: u64, answered: u64) -> Request {
        Request { ask, answer, sent: Duration::from_millis(sent), answered: Duration::from_millis(answered) }
    }

    fn ends(requests: &[Request]) -> usize {
        let texts = Texts::new(|_, (one, other)| if one == other { 256 } else { 240 });
        states_after(&texts, &HashSet::from([State::default()]), requests).map_or(0, |ends| ends.len())
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
