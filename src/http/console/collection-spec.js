// A collection that does not exist yet. In: the collections of the server, and the choices of a person (a draft). Out: the
// canonical line of its spec, and the body of the request that creates it.

import { BITS, DIGITS, EXTRACT, FOLD, INDEX, KEEP, KEY, MARKS, SKETCH, SLOTS, TOUCH, VERIFY } from "./collection-words.js";

const PARTS = ["fold", "marks", "digits", "shingle", "sketch", "key"];
/** The defaults of a server whose configuration does not change them. */
const USUAL = {
  fold: "nfkc_casefold",
  marks: "keep",
  digits: "keep",
  shingle: "word5",
  sketch: "fss256x8",
  key: "none",
  keep: "signature",
  extract: "article",
  threshold: 0.8,
  verify: "estimate",
  ttl: 0,
  touch: false,
};
const CHOICES = {
  index: INDEX,
  fold: FOLD,
  marks: MARKS,
  digits: DIGITS,
  key: KEY,
  keep: KEEP,
  extract: EXTRACT,
  verify: VERIFY,
  touch: TOUCH,
};
const NGRAMS = "word13";

/** The numbers of slots for which the server computes a banding and its curve. */
export const CURVE_SLOTS = [64, 128, 256, 512, 1024];
const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const EXTERNAL = /^([a-z0-9][a-z0-9_-]{0,63}):([1-9][0-9]{1,3})x(8|16|32|64)$/;

/** The parts of a spec: { external } or { fold, marks, digits, shingle, sketch, key }. */
export function partsOf(spec) {
  const outside = spec.startsWith("hapax1;external:") ? spec.slice("hapax1;external:".length) : null;
  if (outside !== null) return { external: outside };
  return Object.fromEntries(
    spec
      .split(";")
      .slice(1)
      .map((part) => part.split("=")),
  );
}

/** The kind, slots and bits of a sketch such as fss256x8; null if it is "none". */
export function shapeOf(sketch) {
  const found = /^([a-z]+)([0-9]+)x([0-9]+)$/.exec(sketch);
  return found && { kind: found[1], slots: Number(found[2]), bits: Number(found[3]) };
}

/** The unit and the length of a shingle such as word5. */
export const lengthOf = (shingle) => ({ unit: shingle.slice(0, 4), length: Number(shingle.slice(4)) });

/** The number of slots and the bits of a slot of an external spec such as ours:128x32; null if it is not valid. */
function externalShape(text) {
  const [, , slots, bits] = (EXTERNAL.exec(text) ?? []).map(Number);
  const fits = slots >= 16 && slots <= 4096 && (slots * bits) % 64 === 0;
  return fits ? { slots, bits } : null;
}

/**
 * What a new collection gets. `known` has values that the server surely fills in, and `first` those to show at first: the
 * settings of `default`. If one of them is not a usual default, it may have been changed later, so it is not `known`.
 */
export function defaultsOf(collections) {
  const given = collections.find(({ name }) => name === "default");
  const secret = collections.map(({ spec }) => partsOf(spec).key).find((key) => key && key !== "none") ?? null;
  if (!given) return { first: { ...USUAL }, known: { ...USUAL }, secret };
  const parts = partsOf(given.spec);
  const first = { ...USUAL };
  for (const part of PARTS) first[part] = parts[part] ?? USUAL[part];
  if (first.key !== "none") first.key = "configured";
  for (const setting of ["keep", "extract", "threshold", "verify", "touch"]) first[setting] = given[setting];
  first.ttl = given.ttl ?? 0;
  const known = {};
  for (const [setting, value] of Object.entries(first)) {
    if (PARTS.includes(setting) || value === USUAL[setting]) known[setting] = value;
  }
  return { first, known, secret };
}

/** The draft that an address describes. What it does not name, or names wrongly, is as in `first`. */
export function draftOf(params, first) {
  const draft = { name: "", index: "similarity", external: "ours:128x32", banding: "", ...first };
  for (const field of Object.keys(draft)) {
    const text = params.get(field);
    if (text === null) continue;
    const allowed = CHOICES[field];
    if (allowed && !allowed.some(([value]) => value === text)) continue;
    if (typeof draft[field] === "number") draft[field] = Number(text);
    else if (typeof draft[field] === "boolean") draft[field] = text === "true";
    else draft[field] = text;
  }
  if (!shingleFits(draft)) draft.shingle = draft.index === "containment" ? NGRAMS : first.shingle;
  const shape = shapeOf(draft.sketch);
  const has = (options, value) => options.some(([one]) => one === String(value));
  if (!(shape && has(SKETCH, shape.kind) && has(SLOTS, shape.slots) && has(BITS, shape.bits))) draft.sketch = first.sketch;
  return draft;
}

/** Whether the shingle of a draft is possible with its index. */
export function shingleFits({ index, shingle }) {
  const { unit, length } = lengthOf(shingle);
  const least = index === "containment" ? 8 : 1;
  const units = index === "containment" ? ["word"] : ["word", "char"];
  return units.includes(unit) && Number.isInteger(length) && length >= least && length <= 32;
}

/** Changes the index of a draft, and the settings whose usual values depend on it. */
export function chooseIndex(draft, index, first) {
  const items = draft.index === "containment";
  draft.index = index;
  if (index === "containment") draft.shingle = NGRAMS;
  else if (items) Object.assign(draft, { shingle: first.shingle, keep: first.keep });
}

/** Changes the settings that do not go with the index and the verification of a draft. */
export function settle(draft, first) {
  if (draft.index === "external") draft.verify = "estimate";
  const stored = draft.keep === "signature" && draft.verify !== "estimate";
  if (draft.index === "external") draft.keep = "signature";
  else if (draft.index === "containment" || stored) draft.keep = "shingles";
  if (draft.index === "similarity" && draft.sketch === "none") draft.sketch = first.sketch;
}

/** The canonical line of a draft. */
export function lineOf(draft, secret) {
  if (draft.index === "external") return `hapax1;external:${draft.external}`;
  const sketch = draft.index === "containment" ? "none" : draft.sketch;
  const key = draft.key === "none" ? "none" : (secret ?? "…");
  const { fold, marks, digits, shingle } = draft;
  return `hapax1;unicode=17;fold=${fold};marks=${marks};digits=${digits};shingle=${shingle};sketch=${sketch};key=${key}`;
}

/** The bands and rows of a text such as 31x8; null if it is not one. */
export function bandingOf(text) {
  const [, bands, rows] = (/^([1-9][0-9]{0,3})x([1-9][0-9]{0,3})$/.exec(text) ?? []).map(Number);
  return bands ? { bands, rows } : null;
}

/** The shape of the signatures of a draft: { kind, slots, bits }; null if there are none or it is not valid. */
export function draftShape(draft) {
  if (draft.index === "containment") return null;
  return draft.index === "external" ? externalShape(draft.external) : shapeOf(draft.sketch);
}

/** The body of the request that creates a draft: only what the server would not fill in itself. */
export function bodyOf(draft, known) {
  const { index } = draft;
  const body = {};
  const expected = { ...known };
  let names = ["keep", "extract", "ttl", "touch"];
  if (index === "external") {
    body.spec = `external:${draft.external}`;
    expected.keep = "signature";
  } else {
    names = [...PARTS.filter((part) => part !== "sketch" || index === "similarity"), ...names];
  }
  if (index === "containment") {
    body.index = "containment";
    Object.assign(expected, { shingle: NGRAMS, keep: "shingles" });
  } else {
    names.push("threshold", "verify");
    if (draft.verify !== "estimate" && known.keep === "signature") expected.keep = "shingles";
  }
  for (const name of names) if (draft[name] !== expected[name]) body[name] = draft[name];
  if (index !== "containment" && draft.banding !== "") body.banding = bandingOf(draft.banding);
  return body;
}

/** Why a draft cannot be created, in sentences. */
export function faultsOf(draft, taken) {
  const faults = [];
  if (!NAME.test(draft.name)) {
    faults.push(
      "The name needs 1 to 64 lowercase letters, digits, hyphens and underscores. It begins with a letter or a digit.",
    );
  }
  if (taken.includes(draft.name)) faults.push(`There is already a collection with the name ${draft.name}.`);
  if (draft.index !== "external" && !shingleFits(draft)) {
    faults.push(draft.index === "containment" ? "A shingle has 8 to 32 words." : "A shingle has 1 to 32 words or characters.");
  }
  if (!(draft.ttl === 0 || (draft.ttl >= 1 && draft.ttl <= 3153600000))) {
    faults.push("The time to live must be between 1 second and 100 years.");
  }
  if (draft.index === "containment") return faults;
  if (draft.index === "external" && !externalShape(draft.external)) {
    faults.push("The external spec is not valid: see the hint below it.");
  }
  if (!(draft.threshold > 0 && draft.threshold <= 1)) faults.push("The threshold must be above 0 and at most 1.");
  const [banding, shape] = [bandingOf(draft.banding), draftShape(draft)];
  if (draft.banding !== "" && !banding) faults.push("Bands and rows must be whole numbers from 1.");
  if (banding && shape && banding.bands * banding.rows > shape.slots) faults.push(tooManySlots(banding, shape.slots));
  return faults;
}

/** Why a banding does not fit into a signature, and what would. */
export function tooManySlots({ bands, rows }, slots) {
  const [most, longest] = [Math.floor(slots / rows), Math.floor(slots / bands)];
  const ways = [
    most >= 1 ? `at most ${most} bands of ${rows} rows` : null,
    longest >= 1 ? `${bands} bands of at most ${longest} rows` : null,
  ];
  const way = ways.filter(Boolean).join(", or ") || "fewer of both";
  return `${bands} bands of ${rows} rows need ${bands * rows} slots, but a signature has only ${slots}. Use ${way}.`;
}
