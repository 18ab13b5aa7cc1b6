// What the settings of a collection mean, in words. Each option: its value, its name, and one or two sentences.

export const INDEX = [
  [
    "similarity",
    "Similarity of whole texts",
    "Finds stored documents that are nearly the same as a text. Choose this to remove duplicates.",
  ],
  [
    "containment",
    "Containment of items in texts",
    "Finds stored items, such as exam questions, inside longer texts. Use the request overlaps, not " +
      "check.",
  ],
  [
    "external",
    "Similarity of signatures made elsewhere (advanced)",
    "The collection accepts only finished signatures of another library, such as datasketch. It cannot sign texts, and never " +
      "finds exact duplicates.",
  ],
];

export const DOCUMENTS = [
  ["articles", "Pages and articles", "Texts of 50 words or more. They are compared by their runs of 5 words."],
  [
    "titles",
    "Titles and short texts",
    "Texts of about 10 to 50 words. One changed word must not make them different, so runs of 5 characters are compared.",
  ],
  [
    "lines",
    "Names, addresses, single lines",
    "Texts of a few words, and texts with errors from typing. The threshold is lower: one wrong letter changes 5 runs.",
  ],
  ["own", "I choose everything myself", "The settings are below."],
];

/** The usual settings for each kind of documents. */
export const USUAL_FOR = {
  articles: { shingle: "word5", threshold: 0.8 },
  titles: { shingle: "char5", threshold: 0.7 },
  lines: { shingle: "char5", threshold: 0.6 },
};

export const FOLD = [
  [
    "nfkc_casefold",
    "Case and compatible forms do not count",
    "STRASSE is straße, full-width letters are plain ones, and zero-width characters disappear. This is right for most texts.",
  ],
  [
    "nfkc",
    "Compatible forms do not count",
    "Full-width letters are plain ones. Upper and lower case and zero-width characters count.",
  ],
  ["none", "Everything counts", "Characters count as they are, except white space: each run of it becomes one space."],
];

export const MARKS = [
  ["keep", "Accents count", "cafe is not café. Choose this for scripts whose vowels are marks, such as Devanagari."],
  ["strip", "Accents are removed", "cafe is café. Choose this if the same texts come with and without accents."],
];

export const DIGITS = [
  ["keep", "Digits count", "Pages with different numbers are different."],
  [
    "zero",
    "Each digit is read as 0",
    "Pages that differ only in dates, prices and counters are the same. Choose this for templates that are filled with numbers.",
  ],
];

export const KEY = [
  ["none", "No secret", "Everyone can compute how a text is hashed. This is right if you trust those who write the documents."],
  [
    "configured",
    "The secret of the server",
    "Strangers cannot craft pages that are not found or that fill one bucket. The server needs hashing.secret in its " +
      "configuration, and the collection opens only with this secret.",
  ],
];

export const UNITS = [
  ["word", "words"],
  ["char", "characters"],
];

export const SKETCH = [
  ["fss", "fss", "Fast similarity sketching. It is fast for texts of every length, and its estimates vary least."],
  ["classic", "classic", "Textbook MinHash with independent slots. It takes about 4 times as long as fss to sign a text."],
  [
    "oph",
    "oph",
    "One permutation hashing. It signs texts of many hundreds of words faster than fss; with short texts, its estimates vary " +
      "more.",
  ],
];

export const SLOTS = [
  ["64", "64 slots", "A rough answer with little memory: about 95 of 100 estimates at 0.8 are within ±0.10."],
  ["128", "128 slots", "Less memory than the default: about 95 of 100 estimates at 0.8 are within ±0.07."],
  ["256", "256 slots", "The usual choice: about 95 of 100 estimates at 0.8 are within ±0.05."],
  ["512", "512 slots", "More accurate and more memory: about 95 of 100 estimates at 0.8 are within ±0.035."],
  ["1024", "1,024 slots", "The most accurate and the most memory: about 95 of 100 estimates at 0.8 are within ±0.025."],
];

export const BITS = [
  [
    "8",
    "8 bits",
    "Two slots agree by chance in 1 of 256 cases, and the estimate corrects for this. Choose 8: more slots help more than " +
      "wider slots.",
  ],
  ["16", "16 bits", "Twice the memory of 8 bits for a signature. The estimates are hardly better."],
  ["32", "32 bits", "Four times the memory of 8 bits for a signature. The estimates are hardly better."],
];

export const KEEP = [
  [
    "signature",
    "Only the signature",
    "Takes the least space on disk. Matches are verified by estimate, and texts cannot be shown.",
  ],
  [
    "shingles",
    "The signature and the shingles",
    "Hashes of the shingles, 5 to 5.5 bytes each on disk. Matches can be verified exactly; texts cannot be shown.",
  ],
  [
    "text",
    "The signature and the text",
    "The folded text, compressed. Matches can be verified exactly, and the text can be read again and compared side by side.",
  ],
];

export const EXTRACT = [
  [
    "article",
    "The main text of a page",
    "Menus, headers and footers of HTML pages are left out. This setting has no effect on plain texts.",
  ],
  [
    "visible",
    "All visible text of a page",
    "Menus count, too. Choose this if pages have no main text, such as lists and shops.",
  ],
];

export const VERIFY = [
  [
    "estimate",
    "By estimate",
    "Signatures decide. Of the pairs exactly at the threshold, about half are reported; a little above it, nearly all.",
  ],
  [
    "borderline",
    "Exactly, if in doubt",
    "Clear matches are decided by signatures, and the others by their shingles. Reads the disk less often than “Exactly”.",
  ],
  [
    "exact",
    "Exactly",
    "Shingles decide. Every match is at or above the threshold. Each check reads the shingles of its candidates from the disk.",
  ],
];

export const TOUCH = [
  ["false", "Only its own inserts count", "A document is seen only when it is inserted again itself."],
  [
    "true",
    "Inserts of its duplicates count, too",
    "Inserting a duplicate also counts as seeing the document that it resembles most, so that this document stays.",
  ],
];

export const BANDING = [
  [
    "false",
    "hapax chooses",
    "At least 99 % of the pairs at the threshold become candidates. With a new threshold, hapax chooses again.",
  ],
  ["true", "Set by hand", "The bands and rows stay as they are, even if the threshold changes."],
];

export const THRESHOLD =
  "The lowest similarity at which a document is a duplicate: above 0, at most 1. 0.8 finds nearly equal pages, 0.6 to 0.7 " +
  "edited copies, and 0.9 to 0.95 only tiny differences. Set it a little below the lowest similarity that you must not miss.";

export const TTL =
  "How long a document stays after it was last inserted. Then hapax deletes it. Checks do not count. " +
  "Without a number, documents stay until they are deleted.";

/** The option with a value: [value, name, sentences]; the value itself if it is not known. */
export const option = (options, value) => options.find(([one]) => one === String(value)) ?? [value, value, ""];
