//! Postings and ids -> commands that write whole groups. In: the entries of one band, or all ids. Out: one command for
//! the fields of a group, and one for its sorted set, unless the group is large. A server reads them as if it had written
//! the postings one by one (`postings.rs`).

use super::super::cluster::{Packed, put_decimal};
use super::super::keys::{IdField, Keys, Place};
use super::super::postings::FIELD_BYTES_MAX;
use super::batches::Batches;
use super::error::FillError;

/// A command writes so many fields or postings, at most.
const FIELDS_MAX: usize = 512;

/// A posting of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub place: Place,
    pub at: u64,
}

/// An id of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IdEntry {
    pub group: u32,
    pub field: IdField,
    pub at: u64,
}

/// Writes the postings of a band, or those of the contents. Sorts `entries`.
pub(super) async fn put_postings(
    batches: &mut Batches,
    keys: &Keys,
    band: Option<u64>,
    entries: &mut [Entry],
) -> Result<(), FillError> {
    entries.sort_unstable();
    let (mut fields, mut more) = (Vec::new(), Vec::new());
    for group in entries.chunk_by(|one, other| one.place.group() == other.place.group()) {
        let key = keys.group(band, group[0].place.group());
        fields.clear();
        more.clear();
        for same in group.chunk_by(|one, other| one.place == other.place) {
            let (value, rest) = field(same);
            fields.push((same[0].place.score(), value));
            more.extend_from_slice(rest);
        }
        for some in fields.chunks(FIELDS_MAX) {
            let bytes = key.len() + some.iter().map(|(_, value)| value.len() + 12).sum::<usize>();
            let set = Packed::new("HSET", 1 + 2 * some.len(), bytes).arg(&key);
            let set = some.iter().fold(set, |set, (score, value)| set.signed(*score).arg(value));
            batches.push(&key, set).await?;
        }
        let key = Keys::more(&key);
        for some in more.chunks(FIELDS_MAX) {
            let add = Packed::new("ZADD", 1 + 2 * some.len(), key.len()).arg(&key);
            let add = some.iter().fold(add, |add, entry| add.signed(entry.place.score()).number(entry.at));
            batches.push(&key, add).await?;
        }
    }
    Ok(())
}

/// Returns the value of the field that these postings share, and those that have no room in it.
fn field(same: &[Entry]) -> (Vec<u8>, &[Entry]) {
    let (mut value, mut number) = (Vec::with_capacity(12), Vec::new());
    for (at, entry) in same.iter().enumerate() {
        number.clear();
        put_decimal(&mut number, entry.at);
        if at > 0 {
            if value.len() + 1 + number.len() > FIELD_BYTES_MAX {
                value.insert(0, b'+');
                return (value, &same[at..]);
            }
            value.push(b',');
        }
        value.extend_from_slice(&number);
    }
    (value, &[])
}

/// Writes the ids. Sorts `ids`.
pub(super) async fn put_ids(batches: &mut Batches, keys: &Keys, ids: &mut [IdEntry]) -> Result<(), FillError> {
    ids.sort_unstable();
    for group in ids.chunk_by(|one, other| one.group == other.group) {
        let key = keys.ids(group[0].group.into());
        for some in group.chunks(FIELDS_MAX) {
            let set = Packed::new("HSET", 1 + 2 * some.len(), key.len() + 20 * some.len()).arg(&key);
            let set = some.iter().fold(set, |set, id| set.arg(&id.field).number(id.at));
            batches.push(&key, set).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_as_many_postings_as_a_server_puts_into_it() {
        let place = Keys::new("hapax", 7, 1000).place(4711);
        let entries: Vec<_> = (1_000_000_001..=1_000_000_009).map(|at| Entry { place, at }).collect();
        let text = |count: usize| {
            let (value, rest) = field(&entries[..count]);
            assert!(value.len() <= FIELD_BYTES_MAX);
            (String::from_utf8(value).unwrap(), rest.len())
        };
        assert_eq!(text(1), ("1000000001".to_owned(), 0));
        let five = "1000000001,1000000002,1000000003,1000000004,1000000005";
        assert_eq!(text(5), (five.to_owned(), 0));
        assert_eq!(text(6), (format!("+{five}"), 1));
        assert_eq!(text(9), (format!("+{five}"), 4));
    }
}
