// The form for a new collection: its settings with their meaning. In: a draft. Out: the draft, changed by the person.

import { choices, explained, lifetime, number, place, shown } from "./collection-controls.js";
import {
  bandingOf,
  bodyOf,
  chooseIndex,
  defaultsOf,
  draftOf,
  faultsOf,
  lengthOf,
  lineOf,
  settle,
  shapeOf,
  shingleFits,
} from "./collection-spec.js";
import {
  BANDING,
  BITS,
  DIGITS,
  DOCUMENTS,
  EXTRACT,
  FOLD,
  INDEX,
  KEEP,
  KEY,
  MARKS,
  SKETCH,
  SLOTS,
  THRESHOLD,
  TOUCH,
  TTL,
  UNITS,
  USUAL_FOR,
  VERIFY,
} from "./collection-words.js";
import { summaryOf } from "./collection-summary.js";
import { card, field, h, select, settled } from "./ui.js";

/** The settings that are in "Advanced settings", except those that need a rule of their own. */
const ADVANCED = ["sketch", "key", "keep", "extract", "verify", "ttl", "touch"];

/** Shows the form. `collections`: those that exist. */
export function showForm(page, { collections, taken, context }) {
  const { first, known, secret } = defaultsOf(collections);
  const start = draftOf(new URLSearchParams(), first);
  const draft = draftOf(context.params, first);
  const summary = summaryOf(context);
  const later = settled(() => {
    if (context.signal.aborted) return;
    const changed = Object.keys(draft).map((name) => [
      name,
      draft[name] === start[name] || Number.isNaN(draft[name]) ? null : String(draft[name]),
    ]);
    context.setParams(Object.fromEntries(changed));
    summary.cost(draft);
  }, 400);
  const refresh = () => {
    settle(draft, first);
    form.follow();
    summary.show(draft, { faults: faultsOf(draft, taken), line: lineOf(draft, secret), body: bodyOf(draft, known) });
    later();
  };
  const form = formOf(draft, first, refresh);
  page.append(h("div", { class: "create" }, h("div", { class: "page-part" }, form.cards), summary.element));
  refresh();
}

/** The cards of the form, and `follow()`, which shows only the settings that the draft has. */
function formOf(draft, first, refresh) {
  const set = (name) => (value) => {
    draft[name] = value;
    refresh();
  };
  const name = h("input", {
    type: "text",
    value: draft.name,
    autocomplete: "off",
    spellcheck: "false",
    autocapitalize: "none",
    maxlength: "64",
  });
  name.addEventListener("input", () => set("name")(name.value));
  const choose = (index) => {
    chooseIndex(draft, index, first);
    refresh();
  };
  const index = choices("What is it for?", INDEX, draft.index, choose, { hint: "This cannot be changed later." });
  const outside = externalField(draft, set("external"));
  const text = textCard(draft, set);
  const sketch = sketchCard(draft, set);
  const key = choices("Secret", KEY, draft.key, set("key"));
  const hashing = card("How is it hashed?", key.element);
  const keep = choices("What is stored of a document?", KEEP, draft.keep, set("keep"), {
    hint: "This cannot be changed later. Exact verification needs the shingles or the text.",
  });
  const extract = choices("Which text of an HTML page is compared?", EXTRACT, draft.extract, set("extract"), {
    hint: "This cannot be changed later.",
  });
  const stored = card("What is stored?", keep.element, extract.element);
  const later = laterCard(draft, set);
  const advanced = h(
    "details",
    { class: "advanced", open: isAdvanced(draft, first) },
    h("summary", {}, "Advanced settings"),
    h("div", { class: "page-part" }, sketch, hashing, stored, later.element),
  );
  const kind = kindCard(draft, (values) => {
    if (values === null) advanced.open = true;
    else Object.assign(draft, values);
    refresh();
  });
  return {
    cards: [
      card(
        "Name and purpose",
        field(
          "Name",
          name,
          "1 to 64 lowercase letters, digits, hyphens and underscores, for example pages-2026. It cannot be changed later.",
        ),
        index.element,
        outside,
      ),
      kind.element,
      text.element,
      advanced,
    ],
    follow() {
      const { index } = draft;
      shown(outside, index === "external");
      shown(kind.element, index === "similarity");
      kind.follow();
      shown(text.element, index !== "external");
      text.follow();
      shown(sketch, index === "similarity");
      shown(hashing, index !== "external");
      shown(stored, index !== "external");
      shown(keep.element, index === "similarity");
      keep.set(draft.keep);
      later.follow();
    },
  };
}

/** The value of the kind of documents whose settings a draft has; "own" if there is none. */
const kindOf = ({ shingle, threshold }) =>
  Object.keys(USUAL_FOR).find((kind) => USUAL_FOR[kind].shingle === shingle && USUAL_FOR[kind].threshold === threshold) ?? "own";

/** Whether a setting below those of the texts is not as at first. */
const isAdvanced = (draft, first) =>
  draft.banding !== "" ||
  draft.index === "external" ||
  ADVANCED.some((name) => draft[name] !== first[name]) ||
  (draft.threshold !== first.threshold && kindOf(draft) === "own");

/** The question which documents there are. `fillIn` gets the shingle and the threshold for them; null: the person chooses. */
function kindCard(draft, fillIn) {
  let own = false;
  const said = place();
  const kinds = choices("Kind of documents", DOCUMENTS, kindOf(draft), (kind) => {
    own = kind === "own";
    fillIn(USUAL_FOR[kind] ?? null);
  });
  return {
    element: card("What are your documents?", kinds.element, said.element),
    follow() {
      const kind = own ? "own" : kindOf(draft);
      kinds.set(kind);
      if (kind === "own") return said.show();
      const { unit, length } = lengthOf(draft.shingle);
      const runs = `${length} ${unit === "word" ? "words" : "characters"}`;
      const words =
        `This sets two values: shingles of ${runs} (below), and the threshold ${draft.threshold} (in the advanced settings). ` +
        "The threshold can be changed later.";
      said.show(h("p", { class: "hint" }, words));
    },
  };
}

function externalField(draft, change) {
  const input = h("input", {
    type: "text",
    value: draft.external,
    autocomplete: "off",
    spellcheck: "false",
    autocapitalize: "none",
  });
  input.addEventListener("input", () => change(input.value.trim()));
  return field(
    "External spec, NAME:SLOTSxBITS",
    input,
    "NAME says which library makes the signatures. SLOTS is 16 to 4096, BITS is 8, 16, 32 or 64, and their product is a " +
      "multiple of 64. For datasketch with 128 permutations: datasketch:128x32. The share of equal slots must estimate the " +
      "similarity.",
  );
}

function textCard(draft, set) {
  const change = (part) => {
    const { unit, length } = { ...lengthOf(draft.shingle), ...part };
    set("shingle")(`${unit}${length}`);
  };
  const { unit, length } = lengthOf(draft.shingle);
  const units = select(UNITS, unit, (unit) => change({ unit }));
  const size = number("Length of a shingle", length, (length) => change({ length }), { min: 1, max: 32, step: 1 });
  const ngrams = h(
    "p",
    { class: "hint" },
    "An item is found by its runs of 8 to 32 words. 13 words are usual: shorter runs are found in texts that only share a " +
      "phrase.",
  );
  const advice = h(
    "ul",
    { class: "hint" },
    h("li", {}, "5 words: pages, articles, mail, with 50 words or more"),
    h("li", {}, "3 words: products, comments, a few sentences"),
    h("li", {}, "5 characters: titles, names, addresses, single lines, texts with errors from typing or OCR"),
  );
  const element = card(
    "Which texts are the same?",
    h(
      "p",
      { class: "hint" },
      "Each text is folded and cut into shingles. The similarity of two documents is the share of their shingles that both " +
        "have. None of this can be changed later.",
    ),
    h(
      "div",
      { class: "fields" },
      field(
        "Unit of a shingle",
        units,
        "A shingle is a run of words or of characters. One changed word changes every shingle that contains it.",
      ),
      size,
    ),
    advice,
    ngrams,
    choices("Case and compatible forms", FOLD, draft.fold, set("fold")).element,
    choices("Accents and other marks", MARKS, draft.marks, set("marks")).element,
    choices("Digits", DIGITS, draft.digits, set("digits")).element,
  );
  return {
    element,
    follow() {
      const items = draft.index === "containment";
      shown(advice, !items);
      shown(ngrams, items);
      units.disabled = items;
      const { unit, length } = lengthOf(draft.shingle);
      units.value = unit;
      const input = size.querySelector("input");
      input.min = items ? "8" : "1";
      if (shingleFits(draft) && Number(input.value) !== length) input.value = String(length);
    },
  };
}

function sketchCard(draft, set) {
  const change = (part) => {
    const { kind, slots, bits } = { ...shapeOf(draft.sketch), ...part };
    set("sketch")(`${kind}${slots}x${bits}`);
  };
  const { kind, slots, bits } = shapeOf(draft.sketch);
  return card(
    "How accurate is a signature?",
    h(
      "p",
      { class: "hint" },
      "A sketch turns the shingles of a document into a signature of fixed size. All signatures are in memory. This cannot " +
        "be changed later.",
    ),
    h(
      "div",
      { class: "fields" },
      explained("Slots", SLOTS, slots, (slots) => change({ slots })),
      explained("Bits of a slot", BITS, bits, (bits) => change({ bits })),
      explained("Kind of sketch", SKETCH, kind, (kind) => change({ kind })),
    ),
  );
}

function laterCard(draft, set) {
  const hand = { bands: 31, rows: 8, ...bandingOf(draft.banding) };
  const write = (part) => {
    Object.assign(hand, part);
    set("banding")(`${hand.bands}x${hand.rows}`);
  };
  const numbers = h(
    "div",
    { class: "fields" },
    number("Bands", hand.bands, (bands) => write({ bands }), {
      min: 1,
      step: 1,
      hint: "More bands find more pairs, and each takes about 9 bytes of memory for a document.",
    }),
    number("Rows of a band", hand.rows, (rows) => write({ rows }), {
      min: 1,
      step: 1,
      hint: "More rows find fewer pairs, so that fewer unrelated documents are compared.",
    }),
  );
  const banding = choices("Bands and rows", BANDING, String(draft.banding !== ""), (byHand) =>
    byHand === "true" ? write({}) : set("banding")(""),
  );
  const verify = choices("How are matches verified?", VERIFY, draft.verify, set("verify"), {
    hint: "Exact verification needs stored shingles or texts.",
  });
  const threshold = number("Threshold", draft.threshold, set("threshold"), { min: 0.01, max: 1, step: 0.01, hint: THRESHOLD });
  const touch = choices("When is a document seen?", TOUCH, draft.touch, (value) => set("touch")(value === "true"));
  return {
    element: card(
      "What can be changed later",
      threshold,
      verify.element,
      banding.element,
      numbers,
      lifetime("Time to live", draft.ttl, set("ttl"), TTL),
      touch.element,
    ),
    follow() {
      const compared = draft.index !== "containment";
      const input = threshold.querySelector("input");
      if (Number.isFinite(draft.threshold) && Number(input.value) !== draft.threshold) input.value = String(draft.threshold);
      for (const element of [threshold, banding.element]) shown(element, compared);
      shown(verify.element, draft.index === "similarity");
      verify.set(draft.verify);
      shown(numbers, compared && draft.banding !== "");
      shown(touch.element, draft.ttl !== 0);
    },
  };
}
