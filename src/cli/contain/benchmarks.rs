//! Files of benchmarks -> the index of their items. Everything is in memory.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use indicatif::HumanCount;

use super::words::{Words, id};
use crate::cli::files::unreadable;
use crate::cli::summary::Failures;
use crate::grams::{GramIndex, ITEM_TOKENS_MIN, ItemGrams, TooShort};
use crate::input::{Chunk, Ids, InputError, LineForm, Origin, Reason, Wanted, read_chunks};

/// The number of items without enough words that are named in the terminal.
const NAMED_MAX: usize = 10;

/// The items of all benchmarks. The number of an item in the index is its place in the list.
pub(super) struct Benchmarks {
    words: Words,
    index: GramIndex,
    items: Vec<Item>,
    files: Vec<PathBuf>,
    failures: Failures,
    /// The fields that no item has, each with its argument.
    unseen: Vec<(&'static str, String)>,
}

/// The fields of items.
pub(super) struct ItemFields<'a> {
    pub id: &'a str,
    /// The fields with texts. If there are several, each makes an item of its own.
    pub texts: &'a [String],
    /// The field with a page, if an item has no text.
    pub html: &'a str,
}

/// The arguments that name these fields.
const ITEM_FLAGS: [&str; 3] = ["--benchmark-id-field", "--benchmark-text-field", "--benchmark-html-field"];

/// An item of a benchmark.
pub(super) struct Item {
    /// The number of its file.
    pub file: usize,
    pub origin: Origin,
    pub id: String,
    /// The reason why it is not in the index.
    pub too_short: Option<TooShort>,
}

/// A text of a file.
struct Found {
    origin: Origin,
    id: String,
    grams: Result<ItemGrams, TooShort>,
}

/// The texts of a file.
#[derive(Default)]
struct FileItems {
    /// By the number of the line, row or record, and the number of the field.
    items: BTreeMap<(u64, usize), Found>,
    /// The lines that cannot be used, each with the reason.
    failed: BTreeMap<u64, String>,
    /// The lines that lack a field. It is no failure if they have another one.
    lacking: BTreeMap<u64, String>,
}

impl Benchmarks {
    pub(super) fn read(
        files: &[PathBuf],
        fields: ItemFields<'_>,
        words: Words,
        items_per_gram_max: usize,
    ) -> Result<Self> {
        let index = GramIndex::new(words.size(), items_per_gram_max);
        let (items, failures) = (Vec::new(), Failures::default());
        let mut all = Self { words, index, items, files: files.to_vec(), failures, unseen: Vec::new() };
        let forms = fields.forms();
        for (at, file) in files.iter().enumerate() {
            let found = FileItems::read(file, &forms, &all.words)?;
            all.add(at, found);
        }
        all.unseen = unseen(&forms);
        if all.findable() == 0 {
            all.write_warnings(&mut io::stderr().lock())?;
            bail!("the benchmarks have no item of at least {ITEM_TOKENS_MIN} words, so there is nothing to look for");
        }
        Ok(all)
    }

    fn add(&mut self, file: usize, found: FileItems) {
        for Found { origin, id, grams } in found.items.into_values() {
            let too_short = match grams {
                Ok(grams) => {
                    self.index.insert(u32::try_from(self.items.len()).expect("items are in memory"), grams);
                    None
                }
                Err(too_short) => Some(too_short),
            };
            self.items.push(Item { file, origin, id, too_short });
        }
        found.failed.into_values().for_each(|shown| self.failures.add(|| shown));
    }

    pub(super) fn words(&self) -> &Words {
        &self.words
    }

    pub(super) fn index(&self) -> &GramIndex {
        &self.index
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The number of lines of which no item was made.
    pub(super) fn failed(&self) -> u64 {
        self.failures.count()
    }

    /// The number of items that are in the index.
    pub(super) fn findable(&self) -> usize {
        self.items.iter().filter(|item| item.too_short.is_none()).count()
    }

    /// Returns how much memory the items take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let ids: usize = self.items.iter().map(|item| item.id.capacity()).sum();
        self.index.bytes() + ids + self.items.capacity() * size_of::<Item>()
    }

    /// Writes which items cannot be found, for people.
    pub(super) fn write_warnings(&self, words: &mut impl Write) -> io::Result<()> {
        self.failures.write(words)?;
        for (flag, field) in &self.unseen {
            writeln!(words, "warning: no item has the field {field:?} ({flag})")?;
        }
        let short = || self.items.iter().filter_map(|item| Some((item, item.too_short?)));
        for (item, too_short) in short().take(NAMED_MAX) {
            writeln!(words, "not looked for: {} ({}): {too_short}", item.origin, item.id)?;
        }
        match short().count().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => writeln!(words, "not looked for: {} more; --items FILE lists them all", HumanCount(more as u64)),
        }
    }
}

impl ItemFields<'_> {
    /// Returns the form of lines for each field with texts.
    fn forms(&self) -> Vec<LineForm> {
        let form = |text: &String| {
            let (id_field, text_field) = (self.id.to_owned(), text.clone());
            // The page of an item must not count as the text of each field.
            let html_field = if self.texts.len() == 1 { self.html.to_owned() } else { text.clone() };
            LineForm { id_field, text_field, html_field, ids: Ids::Optional, ..LineForm::default() }
        };
        self.texts.iter().map(form).collect()
    }
}

/// Returns the fields that were named, and that no item has.
fn unseen(forms: &[LineForm]) -> Vec<(&'static str, String)> {
    let of_form = |(number, form): (usize, &LineForm)| {
        // All forms have the same id, and only a form that is alone has a field with a page.
        let is_own = move |at: usize| at == 1 || number == 0 && (at == 0 || forms.len() == 1);
        let unseen = form.seen.unseen(form).filter(|(at, _)| is_own(*at));
        unseen.map(|(at, field)| (ITEM_FLAGS[at], field.to_owned())).collect::<Vec<_>>()
    };
    forms.iter().enumerate().flat_map(of_form).collect()
}

impl FileItems {
    /// Reads a file once for each field.
    fn read(file: &Path, forms: &[LineForm], words: &Words) -> Result<Self> {
        if forms.len() > 1 && !file.is_file() {
            let file = file.display();
            bail!("--benchmarks {file}: several fields are read one after another, so it must be a regular file");
        }
        let (mut all, mut missing) = (Self::default(), None);
        for (number, form) in forms.iter().enumerate() {
            let wanted = Wanted { form: form.clone(), ..Wanted::default() };
            let name = (forms.len() > 1).then_some(&*form.text_field);
            match read_chunks(file, &wanted, |chunk| all.take(&chunk, number, name, words)) {
                Ok(()) => {}
                // Other benchmarks may have this field.
                Err(InputError::NoField(field)) => missing = Some(field),
                Err(error) => return Err(unreadable(error, file)),
            }
        }
        if let Some(field) = missing.filter(|_| all.items.is_empty()) {
            let error = anyhow!("{field}: use --benchmark-text-field");
            return Err(error).with_context(|| format!("cannot read {}", file.display()));
        }
        let Self { items, failed, lacking } = &mut all;
        lacking.retain(|line, _| items.range((*line, 0)..=(*line, usize::MAX)).next().is_none());
        failed.append(lacking);
        Ok(all)
    }

    /// Takes the texts of one field. `name`: its name, if there are other fields.
    fn take(&mut self, chunk: &Chunk, field: usize, name: Option<&str>, words: &Words) -> bool {
        let mut hashes = Vec::new();
        for (line, origin) in chunk.lines.iter().zip(&chunk.origins) {
            match words.text(line) {
                Ok(text) => {
                    words.hash(&text, &mut hashes);
                    let id = id(line).map_or_else(|| origin.made_id(), |id| id.to_string());
                    let id = name.map_or_else(|| id.clone(), |name| format!("{id}#{name}"));
                    let grams = ItemGrams::new(words.size(), &hashes);
                    self.items.insert((origin.number(), field), Found { origin: origin.clone(), id, grams });
                }
                Err(reason) => {
                    let field = name.map_or_else(String::new, |name| format!(" ({name})"));
                    self.failed.insert(origin.number(), format!("{origin}{field}: {}", reason.detail()));
                }
            }
        }
        for (origin, reason) in &chunk.failures {
            let is_lacking = matches!(reason, Reason::NoField(_));
            let failed = if is_lacking { &mut self.lacking } else { &mut self.failed };
            failed.entry(origin.number()).or_insert_with(|| format!("{origin}: {reason}"));
        }
        true
    }
}
