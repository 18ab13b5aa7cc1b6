//! Writes the known-answer vectors to standard output. Run it to add cases, and read the diff of the file: if a known
//! answer changes, every stored signature is broken. `cargo run -p hapax-core --example vectors >
//! crates/hapax-core/tests/vectors.json`

#[path = "../tests/stages/mod.rs"]
mod stages;

use hapax_core::{SecretKey, Spec};
use serde_json::json;

const SECRET: &str = "000102030405060708090a0b0c0d0e0f";

const TEXTS: &[&str] = &[
    "",
    " \t\n",
    "❤️ … — !!",
    "word",
    "two words",
    "one two three four",
    "exactly five words stand here",
    "A quiet harbour wakes before the gulls do, and the first boat leaves without a sound.",
    "Version 3.14 was cut on 2024-11-09; build 00042 isn't signed_off yet (see ticket #77).",
    "Die Straße nach GROSSBEEREN führt über eine weiße Brücke.",
    "Le cœur de l'été s'achève déjà, noël viendra: ﬁn de l'œuvre.",
    "Ο ΔΡΟΜΟΣ ΤΗΣ ΠΟΛΗΣ είναι μακρύς και ήσυχος.",
    "Поезд ушёл на рассвете, и Йод остался на перроне.",
    "وصلت السفينة إلى الميناء مَعَ الفجر، والعدد ٤٢.",
    "הספינה הגיעה אל הנָּמֵל עם עלות השחר.",
    "नदी के किनारे क्षण भर रुककर बच्चे हँसते हैं।",
    "เรือลำเล็กออกจากท่าเรือก่อนฟ้าสาง ๑๒๓",
    "ເຮືອນ້ອຍອອກຈາກທ່າກ່ອນຮຸ່ງແຈ້ງ",
    "ទូកតូចចេញពីកំពង់ផែមុនព្រឹក",
    "လှေငယ်သည် မနက်စောစော ထွက်ခွာသည်",
    "小船在天亮之前离开了港口，没有声音。第3次",
    "小さなボートが夜明け前にﾐﾅﾄを出た。ガレージ",
    "작은 배가 새벽에 항구를 떠났다.",
    "\u{110c}\u{1161}\u{11a8}\u{110b}\u{1173}\u{11ab} \u{1107}\u{1162}\u{1100}\u{1161} \u{1109}\u{1162}\u{1107}\u{1167}\u{11a8}\u{110b}\u{1166}",
    "Con thuyền nhỏ rời bến trước bình minh.",
    "Con thuye\u{302}\u{300}n nho\u{309} ro\u{31b}\u{300}i be\u{302}\u{301}n tru\u{31b}\u{301}\u{31b}c bi\u{300}nh minh.",
    "İstanbul'da ılık bir IŞIK; oʼzbek tili",
    "👩‍💻 ships 🎉 code 1️⃣ ☀️ daily",
    "Ｆｕｌｌ－ｗｉｄｔｈ　ＴＥＸＴ　１２３ ①Ⅷ㍿",
    "zero\u{200b}width\u{200d}and\u{ad}soft\u{2060}marks\u{feff}",
    "\u{feff}a text behind a byte order mark",
    "J\u{30c} and \u{1f0} are one; so are \u{212b} and A\u{30a}",
    "z\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}\u{30b}\u{30c}\u{30d}\u{30e}\u{30f}\u{310}\u{311}\u{312}\u{313}\u{314}\u{315}\u{316}\u{317}\u{318}\u{319}\u{31a}\u{31b}\u{31c}\u{31d}\u{31e}\u{31f}\u{320}\u{321}\u{322}\u{323}algo",
    "control\u{1}\u{1c}\u{85}and\u{7f}\u{fffd}private\u{e000}\u{10ffff}",
];

/// The texts for specs other than the default.
const FEW: &[usize] = &[2, 3, 5, 7, 8, 10, 13, 16, 21, 27];

const CHANGES: &[(&str, &str)] = &[
    ("fss256x8", "fss64x8"),
    ("fss256x8", "fss128x16"),
    ("fss256x8", "fss1024x32"),
    ("fss256x8", "classic256x8"),
    ("fss256x8", "classic64x32"),
    ("fss256x8", "classic1024x16"),
    ("nfkc_casefold", "nfkc"),
    ("nfkc_casefold", "none"),
    ("nfkc_casefold;marks=keep", "none;marks=strip"),
    ("marks=keep", "marks=strip"),
    ("digits=keep", "digits=zero"),
    ("marks=keep;digits=keep", "marks=strip;digits=zero"),
    ("word5", "word1"),
    ("word5", "word2"),
    ("word5", "word32"),
    ("word5", "char1"),
    ("word5", "char5"),
    ("word5", "char32"),
    ("none", "KEY"),
    ("word5;sketch=fss256x8;key=none", "char3;sketch=classic128x8;key=KEY"),
    ("fss256x8", "oph64x8"),
    ("fss256x8", "oph256x8"),
    ("fss256x8", "oph256x16"),
    ("fss256x8", "oph1024x32"),
];

#[allow(clippy::print_stdout)]
fn main() {
    let secret = SecretKey::from_hex(SECRET).expect("32 hex digits");
    let default = Spec::default().to_string();
    let mut cases: Vec<_> = TEXTS
        .iter()
        .map(|text| json!({"spec": default, "text": text, "stages": stages::of_text(&default, None, text)}))
        .collect();
    let set: Vec<String> = ["red", "green", "Blue", "", "green"].map(String::from).into();
    let integers: Vec<String> = ["0", "-1", "18446744073709551615", "-9223372036854775808"].map(String::from).into();
    for (from, to) in CHANGES {
        let spec = default.replace(from, to).replace("KEY", &format!("{:016x}", secret.fingerprint()));
        let secret = (!spec.ends_with("key=none")).then_some(SECRET);
        for text in FEW.iter().map(|&at| TEXTS[at]) {
            cases.push(json!({"spec": spec, "text": text, "stages": stages::of_text(&spec, secret, text)}));
        }
        for (set, integers) in [(&set[..], &integers[..]), (&set[..1], &[]), (&[], &[])] {
            let stages = stages::of_set(&spec, secret, set, integers);
            cases.push(json!({"spec": spec, "set": set, "integers": integers, "stages": stages}));
        }
    }
    let lines: Vec<String> = cases.iter().map(|case| format!("  {case}")).collect();
    println!("{{\"secret\": \"{SECRET}\", \"cases\": [\n{}\n]}}", lines.join(",\n"));
}
