// The frame around the views: which view the address names, what a key may do, the navigation, the key, the theme.

import { Problem, ask, get, key, onAnswer } from "./api.js";
import { start as startHistory } from "./history.js";
import { button, dialog, failure, field, fill, h, marked, note, select } from "./ui.js";

/** The views: their titles, other words in the menu, the scopes of which one is needed, whether they show one collection. */
const VIEWS = {
  try: { title: "Try it", file: "./view-try.js", scopes: ["check"], collection: true },
  compare: { title: "Compare", file: "./view-compare.js", scopes: ["check"], collection: true },
  live: { title: "Live", file: "./view-live.js", scopes: ["metrics"] },
  collections: { title: "Collections", file: "./view-collections.js", scopes: [] },
  collection: { title: "Collection", file: "./view-collection.js", scopes: [], collection: true, within: "collections" },
  clusters: { title: "Clusters", menu: "Clusters and buckets", file: "./view-clusters.js", scopes: ["read"], collection: true },
  buckets: { title: "Buckets", file: "./view-buckets.js", scopes: ["read"], collection: true, within: "clusters" },
  quality: { title: "Quality", file: "./view-quality.js", scopes: ["read"], collection: true },
  operate: { title: "Operate", file: "./view-operate.js", scopes: [] },
};
const HOME = new URL("./", import.meta.url);
const WRONG_KEY = "This key is not valid here. It may be mistyped, revoked or expired. Enter another key.";
const THEMES = ["auto", "light", "dark"];

const root = document.getElementById("view");
/** What the key of this tab may do; null until the server has said it. */
let access = null;
let leave = null;
let shownPath = "";

/** The address of a view. `params`: the parameters, of which empty ones are left out. */
export function href(view, params = {}) {
  const url = new URL(view, HOME);
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  return url.pathname + url.search;
}

/** Shows a view, as if the person had followed a link. */
export function go(view, params = {}) {
  history.pushState(null, "", href(view, params));
  show();
}

/** Whether the key of this tab has a scope. Without keys, everything is allowed. */
export const may = (scope) => access !== null && access.scopes.includes(scope);

/** Whether a view can be used with the key of this tab. */
const usable = ({ scopes }) => scopes.length === 0 || scopes.some(may);

function theme(next) {
  const now = next ?? localStorage.getItem("hapax.theme") ?? "auto";
  if (next) localStorage.setItem("hapax.theme", next);
  if (now === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = now;
  return now;
}

function frame() {
  const name = viewName();
  const shown = VIEWS[name]?.within ?? name;
  const collection = new URLSearchParams(location.search).get("collection");
  const link = ([view, { title, menu, collection: one }]) =>
    h("a", { href: href(view, one ? { collection } : {}), "aria-current": view === shown ? "page" : null }, menu ?? title);
  const nav = document.getElementById("nav");
  nav.hidden = access === null;
  fill(nav, Object.entries(VIEWS).filter(([, view]) => !view.within && usable(view)).map(link));
  const now = theme();
  fill(
    document.getElementById("tools"),
    button(`Theme: ${now}`, () => { theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]); frame(); document.dispatchEvent(new Event("themechange")); }, { kind: "quiet" }),
    access?.required ? button(`Key: ${access.key.name}`, () => askKey(), { kind: "quiet" }) : null,
  );
}

const viewName = () => location.pathname.split("/").pop() || "try";

async function askKey(reason) {
  const given = await dialog("API key", (close) => {
    const input = h("input", { type: "password", autocomplete: "off", spellcheck: "false" });
    const send = () => input.value.trim() && close(input.value.trim());
    input.addEventListener("keydown", (event) => event.key === "Enter" && send());
    setTimeout(() => input.focus());
    return [
      reason ? note("warn", reason) : null,
      h("p", {}, "This server answers only requests with an API key. The key stays in this tab, and is forgotten when the tab is closed."),
      field("API key", input, marked("The text that `hapax keys add` printed; it begins with `hapax_`.")),
      h("div", { class: "row end" }, key.get() ? button("Forget the key", () => { key.forget(); location.reload(); }, { kind: "quiet" }) : null, button("Use this key", send, { kind: "primary" })),
    ];
  });
  if (given) {
    key.set(given);
    await begin();
  }
}

/** Asks the server what the key may do, and shows the view. */
async function begin() {
  try {
    access = await get("/v1/access");
  } catch (problem) {
    access = null;
    frame();
    if (problem.code === "unauthorized") {
      const reason = key.get() === null ? null : WRONG_KEY;
      const sentence = h("p", {}, "Enter an API key to use the console.");
      const enter = button("Enter a key", () => askKey(reason), { kind: "primary" });
      fill(root, h("div", { class: "page" }, h("div", { class: "empty" }, h("h1", {}, "This server needs a key"), sentence, enter)));
      askKey(reason);
    } else {
      fill(root, h("div", { class: "page" }, failure(problem, begin)));
    }
    return;
  }
  if (may("metrics")) startHistory();
  await show();
}

/** Shows the view that the address names. */
async function show() {
  if (access === null) return begin();
  leave?.abort();
  const controller = (leave = new AbortController());
  const { signal } = controller;
  const name = viewName();
  const view = VIEWS[name];
  frame();
  document.title = `${view?.title ?? "Not found"} · hapax`;
  if (!view) return fill(root, h("h1", {}, "There is no such page"), h("p", {}, h("a", { href: href("try") }, "Try it")));
  if (!usable(view)) {
    return fill(root, h("h1", {}, view.title), note("warn", `This page needs a key with the scope ${view.scopes.join(" or ")}; the key ${access.key?.name} has only: ${access.scopes.join(", ")}.`));
  }
  const params = new URLSearchParams(location.search);
  const collection = params.get("collection") || "default";
  const setParams = (changes) => {
    if (signal.aborted) return;
    for (const [key, value] of Object.entries(changes)) value === null || value === "" ? params.delete(key) : params.set(key, value);
    history.replaceState(null, "", `${location.pathname}${params.size ? `?${params}` : ""}`);
  };
  const page = h("div", { class: `page page-${name}` });
  const moved = shownPath !== location.pathname;
  shownPath = location.pathname;
  fill(root, page);
  if (moved) window.scrollTo(0, 0);
  try {
    const { render } = await load(view);
    if (signal.aborted) return;
    await render(page, { collection, params, setParams, signal, access, may, go, href, reload: show, chooser: () => chooser(name, collection, signal) });
  } catch (problem) {
    if (signal.aborted || problem.name === "AbortError") return;
    if (problem.name !== "Problem") throw problem;
    fill(page, h("h1", {}, view.title), failure(problem, problem.again ?? show));
  }
}

/** Returns the module of a view. */
async function load(view) {
  try {
    return await import(view.file);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // Browsers keep in mind that a module could not be loaded, so only a new page loads it.
    const again = () => ask("GET", "/livez").then(() => location.reload(), () => {});
    const detail = "The server does not answer, so a part of this page could not be loaded.";
    throw Object.assign(new Problem({ code: "unreachable", title: "The server does not answer", detail }), { again });
  }
}

/** A choice of the collection that a view shows. */
function chooser(view, current, signal) {
  const tab = new URLSearchParams(location.search).get("tab");
  const choice = select([current], current, (next) => go(view, { collection: next, tab }));
  get("/v1/collections", {}, signal).then(({ collections }) => {
    const names = collections.map(({ name }) => name);
    if (!names.includes(current)) names.unshift(current);
    fill(choice, names.map((name) => h("option", { value: name, selected: name === current }, name)));
  }, () => {});
  return h("div", { class: "chooser" }, field("Collection", choice));
}

/** Asks again and again while the server does not answer. */
let asking = null;

onAnswer((problem) => {
  const isGone = problem?.code === "unreachable";
  const words = isGone ? "The server does not answer. This page tries again by itself." : "";
  const banner = document.getElementById("banner");
  if (banner.textContent !== words) banner.textContent = words;
  if (isGone) asking ??= setInterval(() => ask("GET", "/livez").catch(() => {}), 3000);
  else asking = clearInterval(asking) ?? null;
  // The key was revoked or has expired while the page is open.
  if (problem?.code === "unauthorized" && access !== null) begin();
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || !to.pathname.startsWith(HOME.pathname) || to.hash) return;
  event.preventDefault();
  history.pushState(null, "", to.pathname + to.search);
  show();
  root.focus({ preventScroll: true });
});
window.addEventListener("popstate", show);

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
document.getElementById("zone").textContent = `All times are in the time zone of this browser, ${zone}.`;
theme();
if (location.pathname === HOME.pathname) history.replaceState(null, "", href("try") + location.search);
begin();
