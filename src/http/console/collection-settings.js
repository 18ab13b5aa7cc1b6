// The settings of a collection that can be changed, what each change means, and the end of the collection.

import { ask, curl, of, post } from "./api.js";
import { change, isChanging } from "./collection-change.js";
import { choices, explainedTable, lifetime, number, place, shown } from "./collection-controls.js";
import { BANDING, THRESHOLD, TOUCH, TTL, VERIFY, option } from "./collection-words.js";
import { button, card, confirm, count, curlButton, duration, failure, h, idText, note, settled, toast } from "./ui.js";

const NOT_COMPARED =
  "In a collection with the index containment, nothing is compared by similarity. Therefore it has no threshold, no " +
  "verification and no banding to change. Only items with equal contents are duplicates.";

export function showSettings(content, collection, context) {
  content.append(context.may("admin") ? form(collection, context) : readOnly(collection));
  if (context.may("admin")) content.append(dropCard(collection, context));
}

/** The settings as they are. */
function readOnly({ index, threshold, verify, banding, banding_by_hand: byHand, ttl, touch }) {
  const choice = (options, value) => option(options, String(value)).slice(1).join(". ");
  const rows = [
    ["Time to live", ttl ? duration(ttl) : "forever", TTL],
    ["Seen", String(touch), choice(TOUCH, touch)],
  ];
  if (index !== "containment") {
    rows.unshift(
      ["Threshold", threshold, THRESHOLD],
      ["Verification", verify, choice(VERIFY, verify)],
      ["Bands × rows", `${banding.bands} × ${banding.rows}`, choice(BANDING, byHand)],
    );
  }
  return card("Settings", explainedTable("Settings", rows));
}

function form(collection, context) {
  const before = {
    threshold: collection.threshold,
    verify: collection.verify,
    banding_by_hand: collection.banding_by_hand,
    ttl: collection.ttl ?? 0,
    touch: collection.touch,
  };
  const now = { ...before };
  const set = (name) => (value) => {
    now[name] = value;
    refresh();
  };
  const changes = () => Object.fromEntries(Object.entries(now).filter(([name, value]) => value !== before[name]));
  const compared = collection.index !== "containment";
  const [effect, answer] = [place(), place()];
  const request = h("pre", {});
  const save = button("Save the changes", () => send(), { kind: "primary" });
  const touch = choices("When is a document seen?", TOUCH, now.touch, (value) => set("touch")(value === "true"));
  const soon = note("warn", "Warning: documents that were inserted longer ago than this are deleted at once.");
  const told = settled(() => tellEffect(effect, collection, now, context), 300);

  function refresh() {
    shown(touch.element, now.ttl !== 0);
    shown(soon, now.ttl > 0 && (before.ttl === 0 || now.ttl < before.ttl));
    const changed = changes();
    const none = Object.keys(changed).length === 0;
    request.textContent = none
      ? "No setting is changed yet."
      : `PATCH /v1/collections/${collection.name}\n\n${JSON.stringify(changed)}`;
    save.disabled = none || faultsOf(now).length > 0 || isChanging(collection.name);
    answer.show();
    told();
  }

  async function send() {
    const changed = changes();
    const warnings = warningsOf(collection, now);
    if (warnings.length > 0 && !(await confirm("Change the settings", warnings.join(" "), "Change", { kind: "primary" }))) {
      return;
    }
    save.disabled = true;
    try {
      await change(
        collection.name,
        changed,
        rebuilds(collection, now)
          ? "hapax builds the new banding from the stored signatures. Until it is complete, the collection answers with the " +
              "old one."
          : "",
      );
    } catch (problem) {
      if (problem.name !== "Problem") throw problem;
      save.disabled = false;
      answer.show(failure(problem));
    }
  }

  refresh();
  return h(
    "div",
    { class: "page-part" },
    h(
      "div",
      { class: "columns" },
      card("What is a duplicate?", compared ? comparedControls(collection, now, set) : h("p", {}, NOT_COMPARED)),
      card("How long do documents stay?", lifetime("Time to live", now.ttl, set("ttl"), TTL), soon, touch.element),
    ),
    card(
      "Save",
      h("p", { class: "hint" }, "These settings can be changed at any time. Only what you change is sent."),
      request,
      effect.element,
      h(
        "div",
        { class: "row" },
        save,
        curlButton(() => curl("PATCH", of(collection.name), { body: changes() })),
      ),
      answer.element,
    ),
  );
}

function comparedControls(collection, now, set) {
  const why = "It needs stored shingles or texts, and this collection keeps only signatures. What is kept cannot be changed.";
  const barred = collection.keep === "signature" ? { borderline: why, exact: why } : {};
  const { bands, rows } = collection.banding;
  return [
    number("Threshold", now.threshold, set("threshold"), {
      min: 0.01,
      max: 1,
      step: 0.01,
      hint: `${THRESHOLD} Verdicts from now on use the new threshold; documents and clusters that are stored stay as they are.`,
    }),
    choices("How are matches verified?", VERIFY, now.verify, set("verify"), {
      barred,
      hint: "A change takes effect at once. Nothing is built again.",
    }).element,
    choices("Bands and rows", BANDING, String(now.banding_by_hand), (value) => set("banding_by_hand")(value === "true"), {
      hint:
        `Now ${bands} bands of ${rows} rows. To choose other ones, use the tab Banding. A new banding is built before ` +
        "the answer to the request arrives.",
    }).element,
  ];
}

const faultsOf = ({ threshold, ttl }) =>
  [
    threshold > 0 && threshold <= 1 ? null : "The threshold must be above 0 and at most 1.",
    ttl === 0 || (ttl >= 1 && ttl <= 3153600000) ? null : "The time to live must be between 1 second and 100 years.",
  ].filter(Boolean);

/** Whether hapax chooses a banding again. */
const rebuilds = (collection, now) =>
  !now.banding_by_hand && (now.threshold !== collection.threshold || collection.banding_by_hand);

/** What a person must know before the settings are changed. */
function warningsOf(collection, now) {
  const warnings = [];
  const ttl = collection.ttl ?? 0;
  if (rebuilds(collection, now)) {
    warnings.push(
      `hapax chooses the bands and rows again. If they change, it builds them for ${count(collection.documents)} documents ` +
        "before the answer arrives; until then both bandings are in memory, and the collection answers with the old one.",
    );
  }
  if (now.ttl !== 0 && (ttl === 0 || now.ttl < ttl)) {
    warnings.push(
      `Documents that were not seen for ${duration(now.ttl)} are deleted within ` +
        `seconds.${ttl === 0 ? " Those that are stored count as last seen when they were inserted." : ""}`,
    );
  }
  return warnings;
}

/** Says what is wrong with the settings, or which banding the new threshold brings. */
async function tellEffect(effect, collection, now, { may, signal }) {
  const faults = faultsOf(now);
  if (faults.length > 0) {
    return effect.show(
      note(
        "warn",
        faults.map((fault) => h("p", {}, fault)),
      ),
    );
  }
  if (!rebuilds(collection, now) || !may("check")) return effect.show();
  const { slots: k, bits } = collection.signature;
  const { threshold } = now;
  try {
    const { banding, index_bytes_per_document: each } = await post("/v1/tune", { threshold, k, bits }, {}, signal);
    if (now.threshold !== threshold) return;
    const { bands, rows } = collection.banding;
    const same = banding.bands === bands && banding.rows === rows;
    effect.show(
      note(
        "info",
        same
          ? `With the threshold ${threshold}, hapax chooses the same banding: ${bands} bands of ${rows} rows.`
          : `With the threshold ${threshold}, hapax chooses ${banding.bands} bands of ${banding.rows} rows instead of ` +
              `${bands} bands of ${rows} rows. The index then takes ${each} bytes of memory for a document.`,
      ),
    );
  } catch (problem) {
    if (problem.name === "Problem") effect.show();
  }
}

/** The card that drops a collection. `documents` is not known if the collection is damaged. */
export function dropCard({ name, documents }, { go, signal }) {
  const all = documents === undefined ? "all its documents" : `its ${count(documents)} documents`;
  if (name === "default") {
    return card(
      "Drop the collection",
      h("p", {}, "The collection default always exists, and cannot be dropped. Its documents can be deleted."),
    );
  }
  const answer = place();
  const drop = button("Drop the collection", () => send(), { kind: "danger" });
  async function send() {
    const sure = await confirm(
      "Drop the collection",
      `This deletes the collection with ${all}. Only a backup can bring them back.`,
      "Drop",
      { word: name },
    );
    if (!sure) return;
    drop.disabled = true;
    try {
      await ask("DELETE", of(name), { query: { confirm: name } });
      toast(`Dropped ${name}`);
      if (!signal.aborted) go("collections");
    } catch (problem) {
      if (problem.name !== "Problem") throw problem;
      drop.disabled = false;
      answer.show(failure(problem));
    }
  }
  return card(
    "Drop the collection",
    h("p", {}, "This deletes ", idText(name), ` with ${all}, its labels and its golden set. Only a backup can bring them back.`),
    h(
      "div",
      { class: "row" },
      drop,
      curlButton(() => curl("DELETE", of(name), { query: { confirm: name } })),
    ),
    answer.element,
  );
}
