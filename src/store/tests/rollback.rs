//! Tests files that have no write-ahead log yet: the copies in a backup, and files that early versions wrote. If a
//! crash interrupts the first transaction in such a file, a rollback journal stays next to the file. Once, a file with
//! such a journal could not be opened again.

use super::*;

/// Opens a file and returns how many documents it has.
type Open<'a> = &'a dyn Fn(&Path) -> u64;

/// Leaves a file as a crash in the middle of a transaction leaves it, with a rollback journal.
fn interrupt(place: &Place) {
    let connection = Connection::open(&place.path).unwrap();
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
    // With such a small cache, changed pages are written before the commit.
    connection.execute_batch("PRAGMA cache_size = 1; BEGIN; UPDATE document SET metadata = '{}', id = 'x'").unwrap();
    let crashed = [place.path.clone(), files::journal(&place.path)].map(|path| (fs::read(&path).unwrap(), path));
    connection.execute_batch("ROLLBACK").unwrap();
    connection.close().unwrap();
    for (bytes, path) in crashed {
        fs::write(path, bytes).unwrap();
    }
    assert!(fs::read(files::journal(&place.path)).unwrap()[0] != 0, "the journal counts");
}

#[test]
fn an_interrupted_transaction_is_rolled_back_by_all_that_open_the_file() {
    let opens: [(&str, Open<'_>); 4] = [
        ("peek", &|path| Store::peek(path).unwrap().documents),
        ("open", &|path| Store::open(path).unwrap().2.documents),
        ("inspect", &|path| {
            let found = inspect(path, &|_| {}).unwrap();
            assert_eq!(found.findings, []);
            found.documents
        }),
        ("repair", &|path| repair(path).unwrap().rebuilt.documents),
    ];
    for (what, open) in opens {
        let place = filled(300);
        interrupt(&place);
        assert_eq!(open(&place.path), 300, "{what}");
        let (store, writer, _) = Store::open(&place.path).unwrap();
        for seq in 1..=300 {
            assert_eq!(store.record(Seq(seq)).unwrap(), Some(record(seq)), "{what}");
        }
        writer.close().unwrap();
        assert!(!files::journal(&place.path).exists(), "{what}");
    }
}
