// The times of a check. In: its explanation. Out: a table, and what the lookup found.

import { hint } from "./passages.js";
import { count, duration, h, table } from "./ui.js";

const STAGES = {
  extract: "The request is read (not the text of a page)",
  sign: "The text of a page is extracted; the signature is made",
  probe: "The buckets are read",
  verify: "The candidates are compared",
  decide: "Ids are read and the verdict is made",
  elsewhere: "Other collections are asked",
  commit: "The write goes to disk",
};

function lookupWords({ bands, bands_hit: hit, buckets }) {
  const start = `The text has a bucket in each of the ${bands} bands.`;
  if (hit === 0) return `${start} No stored document is in any of them.`;
  const fullest = Math.max(0, ...buckets.map(({ documents }) => documents));
  const size = fullest > 0 ? ` The fullest one has ${count(fullest)}.` : "";
  return `${start} Stored documents are in ${count(hit)} of these buckets.${size}`;
}

/** Shows where the time of a check went. */
export function timesOf({ stages_us: times, lookup }) {
  const stages = Object.entries(times);
  const sum = stages.reduce((sum, [, us]) => sum + us, 0);
  const width = (us) => `${((100 * us) / sum).toFixed(1)}%`;
  const bar = ([, us]) => h("div", { class: "stage-bar", "aria-hidden": "true" }, h("span", { style: { width: width(us) } }));
  const name = ([stage]) => h("div", { class: "stage" }, h("code", {}, stage), hint(STAGES[stage] ?? ""));
  const took = `The server took ${duration(sum / 1e6)}, from the beginning of the request to its verdict.`;
  return [
    h("p", {}, `${took} The network is not counted.`),
    table("Time of each stage", [
      { title: "Stage", cell: name },
      { title: "Microseconds", number: true, cell: ([, us]) => count(us) },
      { title: "Share", cell: bar },
    ], stages),
    lookup ? hint(lookupWords(lookup)) : null,
  ];
}
