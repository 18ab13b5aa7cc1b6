// The keys of the server: list, add, revoke. In and out: /v1/keys. The text of a new key is shown once, and kept nowhere.

import { ask, get } from "./api.js";
import { keyForm } from "./operate-key-form.js";
import { command, longTable } from "./pieces.js";
import { badge, button, card, confirm, copy, count, failure, fill, h, idText, note, time, toast } from "./ui.js";

/** How long a server may take to use a changed keys file. */
const CHANGED_MS = 2000;
/** The address of this console. */
const CONSOLE = new URL("./", import.meta.url).href;

/** Shows the keys and a form that adds one. */
export function keys(page, { access, signal }) {
  const made = h("div", { class: "later" });
  const list = h("div", { class: "later" }, h("p", { class: "hint" }, "Reading the keys…"));
  const form = h("div", { class: "later" });
  const read = async () => {
    try {
      const { keys: found } = await get("/v1/keys", {}, signal);
      fill(list, card("Keys", tableOf(found, access.key?.id, read)));
      if (!form.firstChild)
        fill(
          form,
          keyForm((key) => added(made, key, read)),
        );
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.name !== "Problem") throw problem;
      fill(list, problem.code === "keys_off" ? off() : failure(problem, read));
    }
  };
  page.append(made, list, form);
  return read();
}

function tableOf(keys, own, read) {
  if (keys.length === 0) return h("p", {}, "The keys file has no keys.");
  const sorted = [...keys].sort((a, b) =>
    a.name === b.name ? (a.created ?? "").localeCompare(b.created ?? "") : a.name < b.name ? -1 : 1,
  );
  return longTable(
    "Keys of the server",
    [
      { title: "Name", cell: ({ name, id }) => [idText(name), " ", id === own ? badge("your key", "good") : null] },
      { title: "Id", cell: ({ id }) => idText(id) },
      {
        title: "Scopes",
        cell: ({ scopes }) =>
          h(
            "span",
            { class: "marks" },
            scopes.map((scope) => badge(scope)),
          ),
      },
      {
        title: "Collections",
        cell: ({ collections }) => (collections ? collections.map((one) => h("div", {}, idText(one))) : "all"),
      },
      { title: "Answers", cell: ({ scores }) => (scores === "verdict" ? "verdicts only" : "full") },
      {
        title: "Limits",
        cell: ({ limits }) =>
          limits
            ? Object.entries(limits).map(([name, limit]) => h("div", {}, `${name.replaceAll("_", " ")}: ${count(limit)}`))
            : "none",
      },
      { title: "Created", cell: ({ created }) => time(created) },
      { title: "Expires", cell: expiry },
      {
        title: "Revoke",
        cell: (key) =>
          key.id === own
            ? h("span", { class: "hint" }, "This is your key")
            : button("Revoke", () => revoke(key, read), {
                kind: "danger",
                "aria-label": `Revoke the key ${key.name} ${key.id}`,
              }),
      },
    ],
    sorted,
  );
}

function expiry({ expires }) {
  if (!expires) return "never";
  return [time(expires), " ", new Date(expires) < new Date() ? badge("expired", "bad") : null];
}

async function revoke({ name, id, scopes }, read) {
  const sentence = [
    "Requests with the key ",
    idText(name),
    " (id ",
    idText(id),
    ", scopes ",
    scopes.join(", "),
    ") are refused within a few seconds, and this cannot be undone. Background jobs that it started continue.",
  ];
  if (!(await confirm("Revoke this key", sentence, "Revoke the key"))) return;
  try {
    await ask("DELETE", `/v1/keys/${encodeURIComponent(id)}`);
    toast(`The key ${name} is revoked`);
    await read();
  } catch (problem) {
    toast(problem.message, "bad");
  }
}

/** Shows the text of a new key until the person has said that it is saved. */
function added(place, key, read) {
  const text = h("input", {
    type: "text",
    readonly: true,
    value: key.text,
    "aria-label": "The new key",
    spellcheck: "false",
    class: "secret",
  });
  const title = h("h2", { tabindex: "-1" }, "The new key ", idText(key.name));
  const done = button("I have saved the key", () => fill(place), { kind: "primary" });
  text.addEventListener("focus", () => text.select());
  fill(
    place,
    h(
      "section",
      { class: "card new-key" },
      title,
      note(
        "warn",
        "Copy this key now. It is not shown again, and it is stored nowhere: the keys file has only its hash. If it is " +
          "lost, add another key and revoke this one.",
      ),
      h(
        "div",
        { class: "secret-row" },
        text,
        button("Copy the key", () => copy(text.value, "The key")),
      ),
      h(
        "p",
        { class: "hint" },
        `The server uses the key within ${CHANGED_MS / 1000} seconds. Give it to its client in a file or an environment ` +
          "variable, not in an address.",
      ),
      h(
        "p",
        { class: "hint" },
        "If the key is for a colleague who uses this console: your colleague opens this address and enters the key. ",
        h("code", { class: "address" }, CONSOLE),
      ),
      h("div", { class: "row end" }, done),
    ),
  );
  title.focus();
  return read();
}

function off() {
  return note(
    "warn",
    h(
      "p",
      {},
      "This server has no keys file. If it requires no key at all, it answers only requests from its own machine, and " +
        "they may do everything. To use keys, make a first key, set ",
      h("code", {}, "auth.keys_file"),
      ", and restart the server:",
    ),
    command(
      "(umask 077 && hapax keys add ops --keys-file keys.toml --scopes check,read,insert,delete,admin,metrics,keys > ops.key)",
    ),
    command("HAPAX__AUTH__KEYS_FILE=keys.toml hapax serve"),
    h("p", {}, "After that, a key with the scope keys can add and revoke keys on this page."),
  );
}
