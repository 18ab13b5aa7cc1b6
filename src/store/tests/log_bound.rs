//! The log while a writer and readers use it.

use super::*;

#[test]
fn readers_see_whole_batches_while_the_writer_goes_on() {
    let place = place();
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    let done = AtomicBool::new(false);
    let committed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        // There are more readers than connections.
        let readers: Vec<_> = (0..12)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let floor = committed.load(Ordering::Acquire);
                        let page = store.page(Seq(floor.saturating_sub(30)), 1000).unwrap();
                        let last = page.last().map_or(0, |document| document.seq.0);
                        assert!(last >= floor && last.is_multiple_of(10), "{last} after {floor}");
                    }
                })
            })
            .collect();
        for batch in 0..60 {
            let changes: Vec<_> = (batch * 10 + 1..=batch * 10 + 10).map(insert).collect();
            writer.commit(&changes, Seq(batch * 10 + 10)).unwrap();
            committed.store(batch * 10 + 10, Ordering::Release);
        }
        done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(seqs(&store).unwrap().len(), 600);
}

#[test]
fn the_log_stays_bounded_under_a_stream_of_commits() {
    let place = place();
    let (store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    writer.finish_log_at(1 << 20);
    let log = place.dir.path().join("pages.sqlite-wal");
    let mut finished = 0;
    for seq in 1..=400 {
        let big = Record { metadata: Some(Metadata::new("x".repeat(16_000)).unwrap()), ..record(seq) };
        let before = writer.log_bytes();
        writer.commit(&[Change::Insert(Arc::new(big))], Seq(seq)).unwrap();
        if writer.log_bytes() < before {
            finished += 1;
            writer.finish_log_at(1 << 20);
        }
    }
    assert!(finished >= 4, "finished {finished} times");
    assert!(fs::metadata(log).unwrap().len() < 2 << 20);
    assert_eq!(seqs(&store).unwrap().len(), 400);
}

#[test]
fn the_background_thread_moves_the_log_into_the_database() {
    let place = place();
    let (_store, mut writer) = Store::create(&place.path, &meta()).unwrap();
    let batch: Vec<_> = (1..=20_000).map(insert).collect();
    writer.commit(&batch, Seq(20_000)).unwrap();
    assert!(writer.log_bytes() > WAKE_BYTES);
    let waited = std::time::Instant::now();
    while fs::metadata(&place.path).unwrap().len() < 4 << 20 {
        assert!(waited.elapsed().as_secs() < 30);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
