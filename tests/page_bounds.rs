//! Pages that are made to be expensive: each takes bounded time, stack and memory. This is a binary of its own, because
//! it counts the bytes of its own allocator.

#![allow(clippy::print_stdout)] // figures, shown when it fails

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hapax::extract::{decode, extract};
use hapax::types::{Extract, Html, Syntax};

/// The most bytes of memory for each byte of a page, in addition to a fixed part for its elements.
const BYTES_PER_BYTE: usize = 4;
const FIXED_BYTES: usize = 32 << 20;
/// Bytes of the stack of the thread that extracts. A recursion over the elements of a page would need more.
const STACK_BYTES: usize = 128 << 10;
/// The most seconds for a MB of a page, in a build without optimisation that runs next to other tests. Usually a page
/// takes a fraction of this time.
const SECONDS_PER_MB: f64 = 4.0;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(held, Relaxed);
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`, which is also that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller passes a pointer and layout from `alloc`, which come from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The test that measures holds this lock, because other tests would add to its bytes and its time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns pages by name. Each page has the words `first` and `last` in its text.
fn pages() -> Vec<(&'static str, String)> {
    let around = |middle: String| format!("<p>first</p>{middle}<p>last</p>");
    let many = |piece: &str, count: usize| piece.repeat(count);
    vec![
        ("100,000 nested div", around(many("<div>", 100_000) + &many("</div>", 100_000))),
        ("100,000 nested div, with text", around(many("<div>a ", 100_000))),
        ("100,000 nested tables", around(many("<table><tr><td>", 100_000))),
        ("100,000 nested lists", around(many("<ul><li>", 100_000))),
        ("300,000 unclosed b", around(many("<b>x", 300_000))),
        ("40,000 headings", around(many("<h2>x</h2>", 40_000) + "<p>" + &many("word ", 80_000))),
        ("unclosed everything", around(many("<b><i><a href=x><p><font><td><li>x", 30_000))),
        (
            "formatting and paragraphs",
            around((0..5000).map(|n| format!("<b id={n}>")).collect::<String>() + &many("<p>x", 50_000)),
        ),
        ("end tags of nothing", around(many("<div>", 2000) + &many("</span></b></table></li>", 50_000))),
        ("end tags across blocks", around(many("<b><div>", 1000) + &many("</b>", 300_000))),
        ("an attribute of 10 MB", around(format!("<div class=\"{}\">x</div>", many("menu ", 2_000_000)))),
        ("the name of a tag of 5 MB", around(format!("<{} x=y>", many("a", 5_000_000)))),
        ("a million attributes", around(format!("<div {}>", many("a=1 ", 1_000_000)))),
        ("entities", around(many("&nGt;&lt;&#x1F600;&bogus;&", 200_000))),
        ("an entity without an end", around(format!("&{}", many("a", 3_000_000)))),
        ("50 MB of script", around(format!("<script>{}</script>", many("if (a < b) f(); ", 3_200_000)))),
        ("scripts", around(many("<script><!-- </script>", 100_000))),
        ("comments", around(many("<!-- a -->", 300_000))),
        ("a comment of 10 MB", around(format!("<!--{}-->", many("-- ", 3_300_000)))),
        ("a title of 5 MB", around(format!("<title>{}</title>", many("title ", 800_000)))),
        ("one word of 10 MB", around(many("word", 2_500_000))),
        ("white space", around(many(" \n\t", 3_000_000))),
        ("cells", around(many("<td>x", 500_000))),
        ("links", around(many("<a href=x>a</a> ", 300_000))),
        ("NUL", around(many("\0", 1_000_000))),
    ]
}

/// Extracts a page on a thread with a small stack. Returns its text, the time, and the most bytes held at once.
fn measured(markup: String, asked: Extract) -> (String, Duration, usize) {
    let html = Html { markup, syntax: Syntax::Html };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let work = move || {
        let before = HELD.load(Relaxed);
        PEAK.store(before, Relaxed);
        let started = Instant::now();
        let page = extract(&html, asked);
        (page.text, started.elapsed(), PEAK.load(Relaxed) - before)
    };
    thread.spawn(work).unwrap().join().expect("no page overflows a small stack, or panics")
}

#[test]
fn no_page_takes_more_than_its_share() {
    let _alone = alone();
    for (name, markup) in pages() {
        let bytes = markup.len();
        for asked in Extract::ALL {
            let (text, took, peak) = measured(markup.clone(), asked);
            let mb = bytes as f64 / 1e6;
            println!("{name}, {}: {mb:.1} MB in {took:?}, {} MB held", asked.as_str(), peak >> 20);
            let most = BYTES_PER_BYTE * bytes + FIXED_BYTES;
            assert!(peak <= most, "{name}: {peak} bytes held for {bytes}, at most {most}");
            assert!(took.as_secs_f64() <= 1.0 + SECONDS_PER_MB * mb, "{name}: {took:?} for {mb:.1} MB");
            for word in ["first", "last"] {
                let found = text.split_whitespace().any(|found| found.contains(word));
                assert!(asked == Extract::Article || found, "{name}: {word} is gone");
            }
        }
    }
}

#[test]
fn time_grows_with_the_page_and_no_faster() {
    let _alone = alone();
    for (name, piece) in [
        ("nested", "<div>"),
        ("unclosed", "<b><p>x"),
        ("ends", "<i></b>"),
        ("tables", "<table><td>x"),
        ("lists", "<li><a href=x>x"),
    ] {
        let seconds = |count: usize| {
            let page = piece.repeat(count);
            (0..3).map(|_| measured(page.clone(), Extract::Article).1.as_secs_f64()).fold(f64::MAX, f64::min)
        };
        let (short, long) = (seconds(50_000), seconds(400_000));
        println!("{name}: {short:.4} s, eight times as long: {long:.4} s");
        assert!(long <= 24.0 * short + 0.05, "{name}: {short} s, and {long} s for eight times as much");
    }
}

#[test]
fn bytes_of_any_kind_are_decoded_in_bounded_time() {
    let _alone = alone();
    let noise: Vec<u8> = (0..4_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for charset in [None, Some("utf-8"), Some("gb18030"), Some("iso-2022-jp"), Some("utf-16be")] {
        let started = Instant::now();
        let markup = decode(&noise, charset);
        assert!(markup.len() <= 3 * noise.len() && started.elapsed() < Duration::from_secs(20), "{charset:?}");
    }
}
