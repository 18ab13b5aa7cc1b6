// The parts from which views are made. All text becomes text nodes: nothing that a document contains is ever markup.

/** Makes an element. `properties`: attributes; `on`: listeners by event. Children: elements, texts, arrays, null. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replaces what an element contains. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Makes an element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  add(element, children);
  return element;
}

let ids = 0;
/** An id that no other element of the page has. */
export const newId = (prefix = "e") => `${prefix}${++ids}`;

// Numbers and times -----------------------------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
export const count = (number) => (Number.isFinite(number) ? whole.format(number) : "–");
/** A number with about three digits. */
export function short(number) {
  if (!Number.isFinite(number)) return "–";
  const size = Math.abs(number);
  if (size >= 1000) return new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 }).format(number);
  return new Intl.NumberFormat("en-US", { maximumSignificantDigits: size >= 100 ? 3 : 2 }).format(number);
}
export const similarity = (number) => (Number.isFinite(number) ? number.toFixed(3) : "–");
export const percent = (ratio, digits = 1) => (Number.isFinite(ratio) ? `${(100 * ratio).toFixed(digits)} %` : "–");
export function bytes(number) {
  if (!Number.isFinite(number)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (Math.abs(number) >= 1024 && at < units.length - 1) [number, at] = [number / 1024, at + 1];
  return `${number.toFixed(at === 0 || number >= 100 ? 0 : 1)} ${units[at]}`;
}
/** A duration, given in seconds. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${short(seconds * 1e6)} µs`;
  if (size < 1) return `${short(seconds * 1e3)} ms`;
  if (size < 120) return `${short(seconds)} s`;
  if (size < 7200) return `${Math.round(seconds / 60)} min`;
  if (size < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}
/** A time, as an element with the exact time. */
export function time(iso) {
  if (!iso) return "–";
  const at = new Date(iso);
  return h("time", { datetime: iso, title: iso }, at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }));
}
export const ago = (iso) => `${duration((Date.now() - new Date(iso)) / 1000)} ago`;

// Parts -----------------------------------------------------------------------------------------------------------

/** An id or a name that a client chose: it is isolated, so that its direction of writing changes nothing around it. */
export const idText = (id) => h("bdi", { class: "id" }, id);

/** A button. `kind`: "primary", "danger", "quiet" or nothing. */
export function button(label, click, { kind = "", ...attributes } = {}) {
  return h("button", { type: "button", class: kind, on: { click }, ...attributes }, label);
}

/** A label, a control and a hint below each other. `control` is an input, a select or a textarea. */
export function field(label, control, hint) {
  const id = control.id || newId("field");
  control.id = id;
  const about = hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null;
  if (about) control.setAttribute("aria-describedby", about.id);
  return h("div", { class: "field" }, h("label", { for: id }, label), control, about);
}

/** A select. `options`: texts, or pairs of a value and its text. */
export function select(options, value, change) {
  const made = h("select", change ? { on: { change: (event) => change(event.target.value) } } : {});
  for (const option of options) {
    const [of, text] = Array.isArray(option) ? option : [option, option];
    made.append(h("option", { value: of, selected: of === value }, text));
  }
  return made;
}

/** A card with a heading. */
export function card(title, ...children) {
  return h("section", { class: "card" }, title ? h("h2", {}, title) : null, ...children);
}

/** The heading of a view, a sentence below it, and buttons beside it. */
export function heading(title, sentence, ...beside) {
  return h(
    "div",
    { class: "heading" },
    h("div", {}, h("h1", {}, title), sentence ? h("p", { class: "lead" }, sentence) : null),
    h("div", { class: "beside" }, ...beside),
  );
}

/** A table. `columns`: objects with `title`, `cell(row)` and optionally `number: true`. It scrolls if it is too wide. */
export function table(caption, columns, rows) {
  const head = columns.map(({ title, number }) => h("th", { scope: "col", class: number ? "number" : null }, title));
  const line = (row) => h("tr", {}, columns.map(({ cell, number }) => h("td", { class: number ? "number" : null }, cell(row))));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map(line))),
  );
}

/** What a view shows if there is nothing to show yet: what is missing, and what to do first. */
export function empty(title, sentence, ...actions) {
  return h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, sentence), h("div", { class: "row" }, ...actions));
}

/** A text as nodes: what is between two backticks becomes code. A backtick without another one stays as it is. */
export function marked(text) {
  const parts = String(text).split(/`([^`]+)`/);
  return parts.map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part));
}

/** Whether two sentences are the same, apart from case and the marks at their end. */
function isSame(one, other) {
  const plain = (text) => text.toLowerCase().replace(/[.`]/g, "").trim();
  return plain(one) === plain(other);
}

/** A failed request. `again` is called if the person wants to try again. */
export function failure(problem, again) {
  const fields = (problem.errors ?? []).map(({ field, detail }) => h("li", {}, h("code", {}, field), ": ", h("bdi", {}, marked(detail))));
  const title = problem.title || "This did not work";
  return h(
    "div",
    { class: "failure", role: "alert" },
    h("h2", {}, title),
    isSame(title, problem.message) ? null : h("p", {}, h("bdi", {}, marked(problem.message))),
    fields.length > 0 ? h("ul", {}, fields) : null,
    problem.retryAfter ? h("p", {}, `The server asks to wait ${problem.retryAfter} s before the next attempt.`) : null,
    h("p", { class: "hint" }, [problem.code, problem.status || null, problem.requestId || null].filter(Boolean).join(" · ")),
    again ? button("Try again", again) : null,
  );
}

/** A note in a colour. `kind`: "info", "warn" or "good". */
export function note(kind, ...children) {
  return h("div", { class: `note ${kind}` }, ...children);
}

/** A small word with a colour. `kind`: "good", "warn", "bad" or nothing. */
export const badge = (text, kind = "") => h("span", { class: `badge ${kind}` }, text);

/** The badge of a verdict. */
export function verdictBadge(verdict) {
  const kinds = { unique: "good", near_duplicate: "warn", exact_duplicate: "bad", empty: "" };
  return badge(String(verdict).replaceAll("_", " "), kinds[verdict] ?? "");
}

/** Numbers with their names. `pairs`: [name, value, optional hint]. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value, hint]) => h("div", {}, h("dt", { title: hint }, name), h("dd", {}, value))));
}

/** A similarity with its interval, as a bar from 0 to 1, beside the threshold. */
export function intervalBar({ low, similarity: value, high, threshold }) {
  const at = (number) => `${(100 * number).toFixed(2)}%`;
  const words = `similarity ${similarity(value)}, between ${similarity(low)} and ${similarity(high)}, threshold ${similarity(threshold)}`;
  return h(
    "div",
    { class: "interval", role: "img", "aria-label": words, title: words },
    h("span", { class: "range", style: { left: at(low), width: at(Math.max(high - low, 0.004)) } }),
    h("span", { class: "value", style: { left: at(value) } }),
    threshold === undefined ? null : h("span", { class: "threshold", style: { left: at(threshold) } }),
  );
}

/** A bar that shows progress, from 0 to 1. */
export function progress(ratio, words) {
  return h("progress", { max: "1", value: String(Math.min(1, Math.max(0, ratio))), "aria-label": words });
}

/** Tabs that are links. `tabs`: [href, text, whether it is the current one]. */
export function tabs(label, tabs) {
  return h("nav", { class: "tabs", "aria-label": label }, tabs.map(([href, text, current]) => h("a", { href, "aria-current": current ? "page" : null }, text)));
}

/** Copies a text, and says so. `what` begins a sentence, such as "The key". */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} was copied`);
  } catch {
    // Without TLS, browsers give no clipboard to a page that is not from this machine.
    dialog("Copy this text", () => {
      const area = h("textarea", { rows: "8", readonly: true, value: text, "aria-label": what });
      setTimeout(() => area.select());
      return [area];
    });
  }
}

/** A button that copies the request of the view as a command. `make` returns the command. */
export const curlButton = (make) => button("Copy as curl", () => copy(make(), "The command"), { kind: "quiet" });

/** Shows a sentence for some seconds. */
export function toast(text, kind = "") {
  const shown = h("div", { class: `toast ${kind}` }, marked(text));
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), 6000);
}

/**
 * Opens a dialog. `content(close)` returns its children. Returns a promise of the value that was given to `close`, or
 * undefined if the person closed the dialog without an answer.
 */
export function dialog(title, content) {
  return new Promise((resolve) => {
    const id = newId("dialog");
    const made = h("dialog", { "aria-labelledby": id });
    const close = (value) => {
      made.close();
      resolve(value);
    };
    add(made, [h("h2", { id }, title), content(close), h("div", { class: "row end" }, button("Close", () => close(undefined), { kind: "quiet" }))]);
    made.addEventListener("close", () => {
      made.remove();
      resolve(undefined);
    });
    document.body.append(made);
    made.showModal();
  });
}

/** Asks a question before something is done. If `word` is given, the person must type it. */
export function confirm(title, sentence, action, { word, kind = "danger" } = {}) {
  return dialog(title, (close) => {
    const typed = h("input", { type: "text", autocomplete: "off" });
    const go = button(action, () => close(true), { kind });
    if (word) {
      go.disabled = true;
      typed.addEventListener("input", () => (go.disabled = typed.value !== word));
      typed.addEventListener("keydown", (event) => event.key === "Enter" && go.click());
    }
    return [
      h("p", {}, sentence),
      word ? field(["Type ", idText(word), " to confirm"], typed) : null,
      h("div", { class: "row end" }, go),
    ];
  });
}

/** Delays calls of `act` until none has come for `ms` milliseconds. */
export function settled(act, ms = 250) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), ms);
  };
}
