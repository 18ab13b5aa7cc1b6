// The form that stores a golden set. In: pairs as JSON Lines or JSON, typed, pasted, chosen or dropped.

import { bytes, button, card, confirm, count, failure, field, fill, h, settled } from "./ui.js";

const TEXT =
  "The keeper of the northern lighthouse writes down every ship that passes in the night, and after some years he knows " +
  "which of them come back each spring and which were seen only once before the";

/** Pairs that show how a golden set is written. */
export const EXAMPLE = [
  { name: "one word added", a: `${TEXT} war.`, b: `${TEXT} great war.`, duplicate: true },
  {
    name: "other texts",
    a: "A recipe for bread asks for flour, water, salt and patience, and the last of these is the hardest to buy.",
    b: "The ship left port at dawn with forty sailors and a cargo of salt, bound for the northern islands.",
    duplicate: false,
  },
];

/** Returns the pairs of a text: JSON Lines, a list, or an object with `pairs`. Throws an Error that says what is wrong. */
function pairsOf(text) {
  const whole = text.trim();
  const isOne = whole.startsWith("[") || /^\{\s*"pairs"/.test(whole);
  const values = isOne ? listOf(parsed(whole, "The text")) : linesOf(whole);
  values.forEach(checkPair);
  return values;
}

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} is not valid JSON: ${error.message}`);
  }
}

function listOf(value) {
  const list = Array.isArray(value) ? value : value.pairs;
  if (!Array.isArray(list)) throw new Error("The field pairs must be a list of pairs.");
  return list;
}

function linesOf(text) {
  const lines = text.split("\n").map((line, at) => [line.trim(), at + 1]);
  return lines.filter(([line]) => line !== "").map(([line, place]) => parsed(line, `Line ${place}`));
}

function checkPair(pair, at) {
  const wrong = (words) => new Error(`Pair ${at + 1}: ${words}`);
  if (typeof pair !== "object" || pair === null) throw wrong("it must be an object with a, b and duplicate.");
  for (const side of ["a", "b"]) if (typeof pair[side] !== "string") throw wrong(`${side} must be a text.`);
  if (typeof pair.duplicate !== "boolean") throw wrong("duplicate must be true or false.");
}

/** A card with a form. `stored`: how many pairs are stored now. `store(pairs)` stores other ones, or throws a Problem. */
export function setForm(stored, store) {
  let pairs = [];
  const shape = '{"name": "…", "a": "…", "b": "…", "duplicate": true}';
  const area = h("textarea", { rows: "6", spellcheck: "false", dir: "auto", placeholder: shape });
  const file = h("input", { type: "file", accept: ".jsonl,.ndjson,.json,.txt" });
  const state = h("p", { class: "hint", role: "status" }, "Enter pairs in the field, or choose a file.");
  const failed = h("div", {});
  const send = button(stored > 0 ? "Replace the golden set" : "Store the golden set", submit, { kind: "primary" });
  send.disabled = true;

  /** Reads the pairs of a text, and says what it found. `from`: where the text is from. */
  function take(text, from) {
    fill(failed);
    let words = "";
    [pairs, words] = found(text);
    fill(state, h("bdi", {}, from), ": ", h("bdi", {}, words));
    state.className = pairs.length > 0 ? "note good" : "note warn";
    send.disabled = pairs.length === 0;
  }

  async function submit() {
    const sentence =
      `The new set (pairs: ${count(pairs.length)}) replaces the set that is stored now (pairs: ${count(stored)}). ` +
      "The server cannot give the old one back.";
    if (stored > 0 && !(await confirm("Replace the golden set?", sentence, "Replace it"))) return;
    send.disabled = true;
    try {
      await store(pairs);
    } catch (problem) {
      if (problem.name !== "Problem") throw problem;
      fill(failed, failure(problem));
      send.disabled = false;
    }
  }

  const read = async (chosen) => chosen && take(await chosen.text(), chosen.name);
  const typed = settled(() => take(area.value, "The field"));
  area.addEventListener("input", () => {
    send.disabled = true;
    typed();
  });
  file.addEventListener("change", () => read(file.files[0]));
  const form = [
    h("p", {}, "Each pair has the texts a and b, duplicate (true or false), and a name if you like."),
    h("p", {}, "At most 1,000 pairs and 4 MiB of texts and names."),
    field("Pairs", area, "One JSON object in a line (JSON Lines), a JSON list, or an object with the field pairs."),
    field("Or a file", file, "You can also drop a file on this card."),
    state,
    failed,
    h("div", { class: "row end" }, send),
  ];
  const replace = () => h("details", {}, h("summary", {}, "Replace the golden set"), form);
  const element = stored > 0 ? card(null, replace()) : card("Store a golden set", form);
  dropOn(element, read);
  return element;
}

/** Returns the pairs of a text, and words about them. If something is wrong, the words say it, and there are no pairs. */
function found(text) {
  try {
    const pairs = pairsOf(text);
    if (pairs.length === 0) return [[], "there are no pairs yet."];
    const labelled = pairs.filter((pair) => pair.duplicate).length;
    const size = bytes(new Blob([text]).size);
    return [pairs, `pairs: ${count(pairs.length)}, labelled as duplicates: ${count(labelled)}, size: ${size}.`];
  } catch (error) {
    return [[], error.message];
  }
}

/** Calls `read` with a file that is dropped on an element. */
function dropOn(element, read) {
  const over = (is) => element.classList.toggle("drop", is);
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  element.addEventListener("dragleave", () => over(false));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    element.querySelector("details")?.setAttribute("open", "");
    read(event.dataTransfer.files[0]);
  });
}
