// The banding of a collection: what another number of bands and rows would find and take, beside the present one.

import { curl, of, post } from "./api.js";
import { change, isChanging } from "./collection-change.js";
import { number, place, slider } from "./collection-controls.js";
import { POINTS, compare, same, tuneBody } from "./collection-curve.js";
import { CURVE_SLOTS, partsOf, tooManySlots } from "./collection-spec.js";
import { button, bytes, card, confirm, count, curlButton, failure, h, note, settled, toast } from "./ui.js";

const DOCUMENTS_MAX = 1e12;
/** The bytes of memory that an entry of a band takes. */
const ENTRY = 9.1;
const BUILDING =
  "hapax builds the new banding from the stored signatures. Until it is complete and on disk, the collection answers with " +
  "the old banding, and both are in memory.";

export function showBanding(content, collection, context) {
  if (collection.index === "containment") {
    content.append(
      note(
        "info",
        "In a collection with the index containment, nothing is compared by similarity, so there is no banding to choose: " +
          "items are found by their runs of words.",
      ),
    );
    return;
  }
  const state = stateOf(collection, context);
  const chosen = place();
  const curve = place();
  const numbers = place();
  const ask = settled(() => {
    if (context.signal.aborted) return;
    if (!faultOf(collection, state)) return compare(collection, state, { curve, numbers }, context);
    curve.show(h("p", { class: "hint" }, "The bands and rows are not possible, so they have no curve."));
    numbers.show();
  });
  const apply = applying(collection, state, context);
  const refresh = () => {
    const fault = faultOf(collection, state);
    chosen.show(fault ? note("warn", fault) : h("p", { class: "hint" }, usedSlots(collection, state)));
    apply.follow(fault);
    ask();
  };
  const controls = controlsOf(collection, state, refresh, context);
  content.append(
    h(
      "div",
      { class: "columns" },
      card("Bands and rows", introduction(collection), controls.banding, chosen.element),
      card(
        "What the bands find",
        controls.similarity,
        curve.element,
        curlButton(() => curl("POST", "/v1/tune", { body: tuneBody(collection, state, state) })),
      ),
    ),
    card("Before and after", h("div", { class: "fields" }, controls.assumptions), numbers.element, apply.element),
  );
  refresh();
}

/** What the person looks at, from the address. */
function stateOf({ banding, threshold, documents, spec }, { params }) {
  const usual = partsOf(spec).shingle === "word5" ? 0.02 : 0.1;
  const given = (name, other, fits) => {
    const value = params.has(name) ? Number(params.get(name)) : NaN;
    return fits(value) ? value : other;
  };
  const whole = (value) => Number.isInteger(value) && value >= 1 && value <= 4096;
  // The curve has a point for each of these similarities. That of the threshold itself, or the next one above it, is shown.
  const above = Math.ceil(threshold * POINTS - 1e-9) / POINTS;
  return {
    bands: given("bands", banding.bands, whole),
    rows: given("rows", banding.rows, whole),
    j: given("j", above, (value) => value >= 0 && value <= 1),
    documents: given("documents", Math.max(1000, documents), (value) => value >= 1 && value <= DOCUMENTS_MAX),
    unrelated: given("unrelated", Math.min(usual, threshold / 2), (value) => value >= 0 && value < 1),
  };
}

/** The parameters of the address that `stateOf` reads; null for those that are as at first. */
function addressOf(collection, state) {
  const first = stateOf(collection, { params: new URLSearchParams() });
  const text = (name, value) => (value === first[name] || !Number.isFinite(value) ? null : String(value));
  return Object.fromEntries(Object.entries(state).map(([name, value]) => [name, text(name, value)]));
}

function introduction({ banding, banding_by_hand: byHand, threshold }) {
  return h(
    "p",
    { class: "hint" },
    "Two documents become candidates, that is they are compared, if they agree in all rows of at least one band. Now: " +
      `${banding.bands} bands of ${banding.rows} rows, `,
    byHand ? "set by hand." : `chosen by hapax for the threshold ${threshold}.`,
  );
}

/** The sliders. Each writes its value into `state` and into the address. */
function controlsOf(collection, state, refresh, { setParams, may, signal }) {
  const share = settled(() => signal.aborted || setParams(addressOf(collection, state)));
  const set = (name) => (value) => {
    state[name] = value;
    share();
    refresh();
  };
  const { slots } = collection.signature;
  const bands = slider("Bands", {
    min: 1,
    max: slots,
    sliderMax: Math.min(slots, 128),
    value: state.bands,
    change: set("bands"),
    hint: "More bands find more pairs. Each band takes about 9 bytes of memory for a document.",
  });
  const rows = slider("Rows of a band", {
    min: 1,
    max: slots,
    sliderMax: Math.min(slots, 20),
    value: state.rows,
    change: set("rows"),
    hint: "More rows find fewer pairs, so that fewer unrelated documents are compared.",
  });
  const setBoth = (banding) => {
    bands.set(banding.bands);
    rows.set(banding.rows);
  };
  const choose = async () => {
    const { slots: k, bits } = collection.signature;
    try {
      setBoth((await post("/v1/tune", { threshold: collection.threshold, k, bits }, {}, signal)).banding);
    } catch (problem) {
      if (problem.name === "Problem") toast(problem.message, "bad");
    }
  };
  const tuned = may("check") && CURVE_SLOTS.includes(slots);
  return {
    banding: [
      bands.element,
      rows.element,
      h(
        "div",
        { class: "row" },
        button("Show the present banding", () => setBoth(collection.banding), { kind: "quiet" }),
        tuned ? button("Show what hapax would choose", choose, { kind: "quiet" }) : null,
      ),
    ],
    similarity: slider("Similarity of a pair", {
      min: 0,
      max: 1,
      step: 1 / POINTS,
      value: state.j,
      change: set("j"),
      hint:
        "The share of the shingles that both documents have (Jaccard). The table below says how many pairs of this " +
        "similarity are found.",
    }).element,
    assumptions: [
      number("Documents in the collection", state.documents, set("documents"), {
        min: 1,
        max: DOCUMENTS_MAX,
        hint: `For how many documents the candidates and the memory are computed. Now there are ${count(collection.documents)}.`,
      }),
      slider("Similarity of unrelated documents", {
        min: 0,
        max: 0.5,
        step: 0.01,
        value: state.unrelated,
        change: set("unrelated"),
        hint: "About 0.02 for pages with shingles of 5 words, 0.1 or more with short shingles or much boilerplate.",
      }).element,
    ],
  };
}

/** Why a banding is not possible; null if it is. */
function faultOf({ signature: { slots } }, { bands, rows }) {
  const whole = [bands, rows].every((number) => Number.isInteger(number) && number >= 1);
  if (!whole) return "Bands and rows must be whole numbers from 1.";
  return bands * rows > slots ? tooManySlots({ bands, rows }, slots) : null;
}

function usedSlots({ signature: { slots } }, { bands, rows }) {
  const used = bands * rows;
  const rest = used === slots ? "" : ` The other ${count(slots - used)} are in no band; they still count in the estimate.`;
  return `${bands} bands of ${rows} rows use ${count(used)} of the ${count(slots)} slots of a signature.${rest}`;
}

/** The buttons that change the banding: { element, follow(fault) }. */
function applying(collection, state, { may, access, signal }) {
  const answer = place();
  if (!may("admin")) {
    const words = `A change of the banding needs a key with the scope admin; the key ${access.key?.name} lacks it.`;
    return { element: h("p", { class: "hint" }, words), follow() {} };
  }
  const { name, documents, banding, banding_by_hand: byHand } = collection;
  const body = () => ({ banding: { bands: state.bands, rows: state.rows } });
  const send = async (title, words, what) => {
    const sentence =
      `${words} hapax builds the new banding for ${count(documents)} documents before it answers. Meanwhile ` +
      "the collection answers with the present banding, and both are in memory: about " +
      `${bytes(documents * ENTRY * state.bands)} more.`;
    if (!(await confirm(title, sentence, title, { kind: "primary" }))) return;
    answer.show();
    apply.disabled = true;
    try {
      await change(name, what, BUILDING);
    } catch (problem) {
      if (problem.name !== "Problem") throw problem;
      if (!signal.aborted) answer.show(failure(problem));
      apply.disabled = false;
    }
  };
  const apply = button(
    "Apply this banding",
    () =>
      send(
        "Apply the banding",
        `The collection gets ${state.bands} bands of ${state.rows} rows instead of ${banding.bands} bands of ${banding.rows} ` +
          "rows. From then on, the banding is set by hand: a new threshold does not change it.",
        body(),
      ),
    { kind: "primary" },
  );
  const automatic = byHand
    ? button("Let hapax choose again", () =>
        send("Let hapax choose", "hapax chooses the banding for the threshold, now and after each change of the threshold.", {
          banding_by_hand: false,
        }),
      )
    : null;
  const why = h("p", { class: "hint" });
  return {
    element: h(
      "div",
      {},
      h(
        "div",
        { class: "row end" },
        automatic,
        curlButton(() => curl("PATCH", of(name), { body: body() })),
        apply,
      ),
      why,
      answer.element,
    ),
    follow(fault) {
      const busy = isChanging(name);
      apply.disabled = Boolean(fault) || same(banding, state) || busy;
      why.textContent =
        !fault && same(banding, state) ? "This is the present banding. Move a slider to compare another one." : "";
      if (automatic) automatic.disabled = busy;
    },
  };
}
