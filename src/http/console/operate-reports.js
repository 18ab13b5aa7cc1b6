// The reports of a merge: what it did with each document. In: GET /v1/jobs/{job}/reports.

import { get } from "./api.js";
import { shortId } from "./passages.js";
import { briefId, later } from "./pieces.js";
import { button, card, count, failure, fill, h, similarity, table, tabs, verdictBadge } from "./ui.js";

const PAGE = 50;
/** The refused documents are searched among this many reports, until the person asks to read on. */
const SEARCHED = 20000;
const SEARCH_PAGE = 1000;

/** A card with the reports, or only with those of refused documents. */
export function reports(context, job) {
  const { params, signal, href, may } = context;
  if (!may("read")) return h("p", { class: "hint" }, "To read the reports, a key with the scope read is needed.");
  const refused = params.get("show") === "refused";
  const to = (show) => href("operate", { tab: "jobs", job: job.job, show });
  return card(
    "Reports",
    tabs("Which reports", [
      [to("all"), "All documents", !refused],
      [to("refused"), "Refused documents", refused],
    ]),
    refused ? search(context, job) : later(() => onePage(context, job), signal),
  );
}

const pathOf = ({ job }) => `/v1/jobs/${encodeURIComponent(job)}/reports`;

async function onePage({ params, signal, href, reload }, job) {
  const cursor = params.get("cursor");
  const { reports: found, next_cursor: next } = await get(pathOf(job), { limit: PAGE, cursor }, signal);
  const to = (place) => href("operate", { tab: "jobs", job: job.job, show: "all", cursor: place });
  return [
    found.length > 0 ? tableOf(job, found, href) : h("p", {}, "There are no reports here."),
    job.state === "running"
      ? h(
          "div",
          { class: "row" },
          h("p", { class: "hint" }, "The merge is running, so reports are added."),
          button("Read again", reload),
        )
      : null,
    h(
      "nav",
      { class: "row end", "aria-label": "Pages" },
      cursor ? h("a", { href: to(null) }, "First page") : null,
      next ? h("a", { href: to(next) }, "Next page") : null,
    ),
  ];
}

/** Reads page after page, and shows the refused documents that it finds. */
function search({ signal, href }, job) {
  const place = h("div", { class: "later" });
  const found = [];
  let cursor;
  let read = 0;
  const run = async () => {
    const end = read + SEARCHED;
    const enough = found.length + PAGE;
    let more = true;
    try {
      while (more && read < end && found.length < enough) {
        fill(
          place,
          h(
            "p",
            { class: "hint", role: "status" },
            `${count(read)} reports read, ${count(found.length)} refused documents found…`,
          ),
        );
        const page = await get(pathOf(job), { limit: SEARCH_PAGE, cursor }, signal);
        found.push(...page.reports.filter(({ outcome }) => outcome === "refused"));
        read += page.reports.length;
        cursor = page.next_cursor;
        more = cursor !== undefined;
      }
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.name !== "Problem") throw problem;
      fill(place, failure(problem, run));
      return;
    }
    fill(
      place,
      h(
        "p",
        { class: "hint" },
        `${count(found.length)} refused documents among the ${count(read)} reports that were read.`,
      ),
      found.length > 0 ? tableOf(job, found, href) : h("p", {}, more ? "None so far." : "No document was refused."),
      more ? h("div", { class: "row end" }, button("Read on", run)) : null,
    );
  };
  run();
  return place;
}

function tableOf({ collection }, found, href) {
  return table(
    "Reports of the merge",
    [
      { title: "Document", cell: ({ id }) => shortId(id) },
      { title: "Outcome", cell: ({ outcome }) => outcome },
      { title: "Verdict", cell: ({ verdict }) => (verdict ? verdictBadge(verdict) : "–") },
      {
        title: "Duplicate of",
        cell: ({ duplicate_of: id }) => (id ? h("a", { href: href("clusters", { collection, id }) }, briefId(id)) : "–"),
      },
      { title: "Similarity", number: true, cell: ({ similarity: value }) => similarity(value) },
      { title: "Why it was refused", cell: ({ error }) => (error ? h("bdi", {}, error) : "–") },
    ],
    found,
  );
}
