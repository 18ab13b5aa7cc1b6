// One collection: what it is, its settings, its banding, its labels, and the outcomes of its inserts.

import { curl, get, of } from "./api.js";
import { showBanding } from "./collection-banding.js";
import { changeNote, isChanging } from "./collection-change.js";
import { showLabels, showStatistics } from "./collection-labels.js";
import { showOverview } from "./collection-overview.js";
import { dropCard, showSettings } from "./collection-settings.js";
import { curlButton, failure, fill, h, heading, note, percent, tabs } from "./ui.js";

const TABS = {
  overview: ["Overview", showOverview],
  settings: ["Settings", showSettings],
  banding: ["Banding", showBanding],
  labels: ["Labels", showLabels],
  statistics: ["Statistics", showStatistics],
};
const STARTING_MS = 3000;
/** The tabs whose main request is not the one for the collection itself. */
const PATHS = { labels: "/labels", statistics: "/statistics" };

export async function render(page, context) {
  const { collection, params, chooser, href } = context;
  const tab = Object.hasOwn(TABS, params.get("tab") ?? "") ? params.get("tab") : "overview";
  page.append(
    heading(
      h("bdi", {}, collection),
      "A collection: its spec, its settings, and what is stored in it.",
      chooser(),
      curlButton(() =>
        curl("GET", of(collection, PATHS[tab]), {
          query: PATHS[tab] && { name: params.get("name"), cursor: params.get("cursor") },
        }),
      ),
    ),
  );
  const links = Object.entries(TABS).map(([name, [title]]) => [
    href("collection", { collection, tab: name === "overview" ? null : name }),
    title,
    name === tab,
  ]);
  const content = h("div", { class: "page-part" }, h("p", { class: "hint" }, "The collection is read."));
  const changingBefore = isChanging(collection);
  const ended = (problem) => {
    if (problem === null || changingBefore) context.reload();
  };
  page.append(tabs("Parts of the collection", links), content, changeNote(collection, context.signal, ended));
  load(content, context, TABS[tab][1]);
}

/** Reads the collection, and shows a tab. */
async function load(content, context, show) {
  const { collection, signal, access, may } = context;
  try {
    const described = await get(of(collection), {}, signal);
    fill(
      content,
      may("admin")
        ? null
        : note("info", `The key ${access.key.name} lacks the scope admin: the settings are shown, and cannot be changed.`),
    );
    await show(content, described, context);
  } catch (problem) {
    if (signal.aborted) return;
    if (problem.name !== "Problem") throw problem;
    const again = () => load(content, context, show);
    fill(content, failure(problem, again), whatNow(problem, context));
    if (problem.code === "starting") setTimeout(() => signal.aborted || again(), STARTING_MS);
  }
}

/** What to do about a collection that cannot be shown. */
function whatNow({ code, rest }, context) {
  const { collection, href, may } = context;
  const all = h("a", { href: href("collections") }, "All collections");
  if (code === "starting") {
    return h(
      "p",
      {},
      `The collection is being opened: ${percent(rest.progress, 0)} is done. This page reads it again by itself.`,
    );
  }
  if (code === "collection_not_found" && may("admin")) {
    return h(
      "p",
      {},
      all,
      " · ",
      h("a", { href: href("collections", { create: "1", name: collection }) }, "Create a collection with this name"),
    );
  }
  if (code !== "collection_damaged") return h("p", {}, all);
  return [
    note("warn", "Stop the server, and run hapax verify with --data-dir: it names the damage, and repairs it with --repair."),
    may("admin") ? dropCard({ name: collection }, context) : null,
  ];
}
