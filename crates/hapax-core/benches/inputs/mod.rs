//! Seeded texts of several kinds for benchmarks. All texts are generated: words are random letters, with lengths and
//! frequencies that are typical of the kind of text.

use hapax_core::SplitMix64;

/// A kind of text.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The name in tables.
    pub(crate) name: &'static str,
    make: fn(&mut SplitMix64, usize) -> String,
}

/// All kinds.
pub(crate) const KINDS: [Kind; 5] = [
    Kind { name: "english", make: |generator, bytes| prose(generator, bytes, &[ENGLISH]) },
    Kind { name: "code", make: code },
    Kind { name: "accented", make: |generator, bytes| prose(generator, bytes, &[ACCENTED]) },
    Kind { name: "cjk", make: |generator, bytes| cjk(generator, bytes) },
    Kind { name: "mixed", make: mixed },
];

/// Lengths of texts, with their names in tables.
pub(crate) const SIZES: [(&str, usize); 3] = [("100B", 100), ("2KB", 2048), ("100KB", 102_400)];

impl Kind {
    /// Makes `count` texts. Each has as many whole characters as fit into `bytes` bytes.
    pub(crate) fn texts(self, bytes: usize, count: usize) -> Vec<String> {
        let mut generator = SplitMix64::new(3);
        (0..count)
            .map(|_| {
                let mut text = (self.make)(&mut generator, bytes);
                text.truncate(text.floor_char_boundary(bytes));
                text
            })
            .collect()
    }
}

const ENGLISH: &str = "eeeeeettttaaaoooiiinnnsssrrrhhlldducmwfgypbvk";
const ACCENTED: &str = "eeeeeaaaiiisssnnrrtttooolluuddcmpééèàçêùôîqvgbfh";
const CYRILLIC: &str = "ооооееееааааиииннтттссррввллккммддпуяыьгзбч";

/// Makes words of an alphabet. As in running text, rarer words are longer.
fn vocabulary(letters: &str, words: usize) -> Vec<String> {
    let letters: Vec<char> = letters.chars().collect();
    let mut generator = SplitMix64::new(0x00f0_0d5e);
    (0..words)
        .map(|rank| {
            let len = 2 + rank.ilog2_or_zero() * 3 / 5 + (generator.next_u64() % 4) as usize;
            (0..len).map(|_| letters[generator.next_u64() as usize % letters.len()]).collect()
        })
        .collect()
}

trait Log2 {
    fn ilog2_or_zero(self) -> usize;
}

impl Log2 for usize {
    fn ilog2_or_zero(self) -> usize {
        self.checked_ilog2().unwrap_or(0) as usize
    }
}

/// Draws a rank by an approximation of Zipf's law: the logarithm of the rank is uniform.
fn zipf(generator: &mut SplitMix64, ranks: usize) -> usize {
    let uniform = (generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    ((ranks as f64).powf(uniform) as usize - 1).min(ranks - 1)
}

/// Makes sentences and paragraphs, each paragraph in one of the alphabets.
fn prose(generator: &mut SplitMix64, bytes: usize, alphabets: &[&str]) -> String {
    let vocabularies: Vec<Vec<String>> = alphabets.iter().map(|letters| vocabulary(letters, 20_000)).collect();
    let mut text = String::new();
    while text.len() < bytes {
        let words = &vocabularies[generator.next_u64() as usize % vocabularies.len()];
        for _ in 0..2 + generator.next_u64() % 5 {
            let sentence = 6 + generator.next_u64() % 20;
            for place in 0..sentence {
                let word = &words[zipf(generator, words.len())];
                if place == 0 {
                    text.extend(word.chars().take(1).flat_map(char::to_uppercase));
                    text.extend(word.chars().skip(1));
                } else {
                    text.push_str(word);
                }
                text.push_str(match generator.next_u64() % 24 {
                    _ if place + 1 == sentence => ". ",
                    0 | 1 => ", ",
                    2 => "\u{20}\u{2013} ",
                    3 => "-",
                    _ => " ",
                });
            }
        }
        text.pop();
        text.push_str("\n\n");
    }
    // A single dash outside ASCII would send an English text through other code, so English texts have none.
    if alphabets == [ENGLISH] { text.replace('\u{2013}', "-") } else { text }
}

/// Makes indented lines with identifiers, operators and numbers.
fn code(generator: &mut SplitMix64, bytes: usize) -> String {
    let words = vocabulary(ENGLISH, 3_000);
    let mut text = String::new();
    let mut depth = 1;
    while text.len() < bytes {
        depth = (depth + generator.next_u64() as usize % 3).saturating_sub(1).min(6);
        text.push_str(&"    ".repeat(depth));
        for _ in 0..2 + generator.next_u64() % 6 {
            text.push_str(&words[zipf(generator, words.len())]);
            match generator.next_u64() % 9 {
                0 => text.push('_'),
                1 => text.push_str(" = "),
                2 => text.push('('),
                3 => text.push_str("), "),
                4 => text.push('.'),
                5 => text.push_str(&format!("[{}]", generator.next_u64() % 1_000)),
                6 => text.push_str(" + "),
                7 => text.push_str("::"),
                _ => text.push(' '),
            }
        }
        text.push_str(";\n");
    }
    text
}

/// Makes sentences of Han and kana without spaces.
fn cjk(generator: &mut SplitMix64, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        for _ in 0..5 + generator.next_u64() % 25 {
            let (first, count) = if generator.next_u64().is_multiple_of(4) { (0x3042, 80) } else { (0x4e00, 3_000) };
            text.extend(char::from_u32(first + zipf(generator, count) as u32));
        }
        text.push_str(if generator.next_u64().is_multiple_of(3) { "。\n" } else { "，" });
    }
    text
}

/// Makes paragraphs of several scripts.
fn mixed(generator: &mut SplitMix64, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&match generator.next_u64() % 4 {
            0 => cjk(generator, 100),
            1 => code(generator, 100),
            _ => prose(generator, 200, &[ENGLISH, CYRILLIC, ACCENTED]),
        });
    }
    text
}
