// A place where a person gives a document: a text, a page, a file, or the id of a stored document.

import { decode, wellFormed } from "./bytes.js";
import { bytes, button, field, fill, h, newId, note, settled } from "./ui.js";

/** Files that are longer are not shown in a text area: they are sent as they are. */
const SHOWN_MAX = 1 << 20;
const NAMES = { text: "Text", html: "HTML page", id: "Stored document" };

/** Returns an empty document. `kind`: "text", "html" or "id". `file` has a file that is too long to be shown. */
export const nothing = (kind = "text") => ({ kind, text: "", id: "", file: null, about: "" });

/** What was given in this tab, so that it is still there after another view or collection was shown. Never stored. */
export const drafts = { try: nothing(), a: nothing(), b: nothing("id") };

/** Whether there is nothing in a document yet. */
export const isMissing = (value) => (value.kind === "id" ? value.id === "" : value.text === "" && value.file === null);

/** The fields of a request for a document, without its id. The file of a long document is read. */
export async function contentOf(value) {
  if (value.kind === "id") return { id: value.id };
  const isPage = value.kind === "html";
  const text = value.file ? decode(new Uint8Array(await value.file.arrayBuffer()), isPage).text : wellFormed(value.text);
  return { [value.kind]: text };
}

/** The body of a request about one document, as `ask` takes it: JSON, or the file itself if it is long. */
export function bodyOf(value, id, query) {
  if (!value.file) return { query, body: { ...(id ? { id } : {}), [value.kind]: wellFormed(value.text) } };
  return { query: { ...query, id }, body: value.file, type: value.kind === "html" ? "text/html" : "text/plain" };
}

async function take(file, value) {
  const isPage = /\.x?html?$/i.test(file.name) || /html/.test(file.type);
  const made = { ...nothing(isPage ? "html" : "text"), about: `${file.name}, ${bytes(file.size)}` };
  if (file.size > SHOWN_MAX) {
    made.file = file;
  } else {
    const { text, charset } = decode(new Uint8Array(await file.arrayBuffer()), isPage);
    if (text.includes("\0")) throw new Error(`${file.name} is not a text or a page: it has bytes that no text has.`);
    made.text = text;
    if (charset !== "utf-8") made.about += `, read as ${charset}`;
  }
  Object.assign(value, made, { id: value.id });
}

const looksLikeHtml = (text) => /^\s*<(!doctype html|html|head|body)\b/i.test(text.slice(0, 300));

/**
 * Makes the controls. `value` is a document, which they change; then `change()` is called: at once, or when the person
 * has not typed for 300 ms. `kinds`: the kinds to choose from. `beside`: more buttons. Returns the element, and `show()`,
 * which shows a value that was changed by other code.
 */
export function source({ label, value, kinds, change, beside = [], rows = 12 }) {
  const soon = settled(change, 300);
  const part = h("div", {});
  const told = h("p", { class: "hint", role: "status" });
  const group = newId("kind");
  const radios = kinds.map((kind) => {
    const radio = h("input", { type: "radio", name: group, id: newId("kind"), on: { change: () => become(kind) } });
    return [kind, radio, h("label", { for: radio.id }, radio, NAMES[kind])];
  });
  const opener = h("input", { type: "file", hidden: true, "aria-label": `File for ${label}` });
  const open = button("Open a file", () => opener.click());
  opener.addEventListener("change", () => opened(opener.files));

  function become(kind) {
    value.kind = kind;
    show();
    change();
  }

  async function opened(files) {
    if (files.length === 0) return;
    try {
      await take(files[0], value);
    } catch (error) {
      told.textContent = error.message;
      return;
    } finally {
      opener.value = "";
    }
    show();
    change();
  }

  function typed(text) {
    value.text = text;
    value.about = "";
    tell();
    soon();
  }

  function tell() {
    const isPage = value.kind === "text" && looksLikeHtml(value.text);
    const treat = () => button("Treat it as an HTML page", () => become("html"), { kind: "quiet" });
    fill(told, value.about ? h("bdi", {}, value.about) : null, isPage ? [" This looks like HTML. ", treat()] : null);
  }

  function control() {
    if (value.kind === "id") {
      const input = h("input", { type: "text", value: value.id, dir: "auto", spellcheck: "false", autocomplete: "off" });
      input.addEventListener("change", () => {
        value.id = input.value;
        change();
      });
      return field(`${label}: id`, input, "The id of a document that is stored in this collection.");
    }
    if (value.file) return note("info", "The file is sent as it is. It is too long to be shown here.");
    const area = h("textarea", { rows: String(rows), dir: "auto", spellcheck: "false", value: value.text });
    area.addEventListener("input", () => typed(area.value));
    return field(value.kind === "html" ? `${label}: HTML` : label, area, "Type, paste, or drop a file here.");
  }

  function show() {
    for (const [kind, radio] of radios) radio.checked = kind === value.kind;
    open.hidden = value.kind === "id";
    fill(part, control());
    tell();
  }

  function clear() {
    Object.assign(value, nothing(value.kind));
    show();
    change();
    part.querySelector("input, textarea")?.focus();
  }

  const kindsOf = { class: "kinds", role: "radiogroup", "aria-label": `Kind of ${label}` };
  const choice = h("div", kindsOf, radios.map(([, , shown]) => shown));
  const row = h("div", { class: "row" }, open, button("Clear", clear), beside, opener);
  const element = h("div", { class: "giver" }, choice, part, told, row);
  // The browser itself handles a text that is dragged.
  const onFile = (act) => (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    act(event);
  };
  element.addEventListener("dragover", onFile(() => element.classList.add("over")));
  element.addEventListener("dragleave", () => element.classList.remove("over"));
  element.addEventListener("drop", onFile((event) => {
    element.classList.remove("over");
    opened(event.dataTransfer.files);
  }));
  show();
  return { element, show };
}
