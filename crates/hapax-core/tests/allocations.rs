//! After the buffers of `SignScratch` have grown, signing allocates nothing, for any text. A text of any length is
//! signed in bounded memory. This is a binary with a single test, because it counts the calls of its own allocator.

#![allow(clippy::print_stdout)] // figures, shown when it fails

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hapax_core::{IllFormed, Pipeline, SecretKey, SignScratch, Signed, Spec, TextSpec};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`, which is also that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller passes a pointer and layout from `alloc`, which come from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn pipelines() -> impl Iterator<Item = Pipeline> {
    let secret = SecretKey::new([5; 16]);
    let key = format!("key={:016x}", secret.fingerprint());
    let changes: [(&str, String); 7] = [
        ("fss256x8", "fss256x8".into()),
        ("fss256x8", "fss1024x16".into()),
        ("fss256x8", "classic128x8".into()),
        ("fss256x8", "oph256x8".into()),
        ("word5", "char5".into()),
        ("marks=keep;digits=keep", "marks=strip;digits=zero".into()),
        ("key=none", key),
    ];
    changes.into_iter().map(move |(from, to)| {
        let Ok(Spec::Text(spec)) = Spec::parse(&Spec::default().to_string().replace(from, &to)) else {
            unreachable!("a changed default")
        };
        Pipeline::new(&spec, Some(&secret)).expect("a valid spec")
    })
}

#[test]
fn signing_allocates_nothing_once_warm_and_streams_in_bounded_memory() {
    let sentences = [
        "The harbour master counts the boats that have come in.\n\n    Twice; and A_THIRD time, 1234567 or so. ",
        "Où l’été s’achève, les élèves révisent : « ÇA ALORS ! », répète l’hôtesse âgée à côté du chêne. ",
        "Отчёт о погоде: ветер СЕВЕРНЫЙ, слабый; завтра ожидается дождь. ",
        "港口的船只清点完毕，明天还会有更多的船来。カタカナとひらがな、そして漢字。",
        "ภาษาไทยไม่มีช่องว่างระหว่างคำ ที่นี่ 🚢 हिन्दी में नमस्ते e\u{301}\u{323} ﬁne Ⅷ ",
    ];
    let mut texts: Vec<String> = sentences.iter().flat_map(|text| [1, 30, 900].map(|n| text.repeat(n))).collect();
    texts.push(sentences.concat().repeat(40));
    texts.push("x".repeat(10_000));
    texts.push("one".into());
    for pipeline in pipelines() {
        let (mut scratch, mut signed) = (SignScratch::default(), Signed::default());
        let mut sign_all =
            || texts.iter().for_each(|text| assert!(pipeline.sign_into(&mut scratch, text, &mut signed)));
        sign_all();
        let before = ALLOCATIONS.load(Relaxed);
        sign_all();
        let made = ALLOCATIONS.load(Relaxed) - before;
        assert_eq!(made, 0, "{made} allocations for {} texts: {}", texts.len(), Spec::Text(pipeline.spec().clone()));
    }

    let pipeline = Pipeline::new(&TextSpec::default(), None).expect("the default spec is valid");
    let mut scratch = SignScratch::default();
    let stream = sentences.concat().repeat(200).into_bytes();
    let mut peaks = Vec::new();
    for repeats in [2, 300] {
        let live = LIVE.load(Relaxed);
        PEAK.store(live, Relaxed);
        let mut signer = pipeline.signer(&mut scratch);
        for _ in 0..repeats {
            // These pieces end inside characters.
            for piece in stream.chunks(65_537) {
                signer.push_bytes(piece, IllFormed::Refuse).expect("well-formed");
            }
        }
        let signed = signer.finish_bytes(IllFormed::Refuse).expect("well-formed").expect("it has tokens");
        peaks.push(PEAK.load(Relaxed) - live);
        println!(
            "{} bytes, {} shingles: {} bytes more",
            stream.len() * repeats,
            signed.shingles,
            peaks[peaks.len() - 1]
        );
    }
    assert!(peaks.iter().all(|&peak| peak < 256 * 1024), "{peaks:?}");
}
