// The S-curve of a collection, with the documents of a verdict on it. In: a verdict. Out: an image and a sentence.

import { post } from "./api.js";
import { attempt } from "./attempt.js";
import { MARKS, at, sCurve } from "./curve.js";
import { hint } from "./passages.js";
import { fill, h, percent, similarity } from "./ui.js";

/** The request for the curve of a collection at a threshold. */
function tuneOf({ banding, signature, spec }, threshold) {
  const [, sketch] = /sketch=([a-z]+)/.exec(spec);
  const { bands, rows } = banding;
  return { threshold, banding: { bands, rows }, k: signature.slots, bits: signature.bits, sketch };
}

const labelOf = ({ id }) => [...id].slice(0, 60).join("");

/** Makes the image. Returns its element, and `show(threshold, rows)`; rows are documents with a similarity, the best first. */
export function curveOf(info, signal) {
  const element = h("div", {});
  const curves = new Map();
  let shown = null;

  async function pointsAt(threshold) {
    if (!curves.has(threshold)) curves.set(threshold, (await post("/v1/tune", tuneOf(info, threshold), {}, signal)).curve);
    return curves.get(threshold);
  }

  function show(threshold, rows) {
    shown = rows;
    return attempt(element, async () => {
      const points = await pointsAt(threshold);
      if (shown !== rows || signal.aborted) return;
      const marks = rows.slice(0, MARKS).map((row) => ({ ...row, label: labelOf(row) }));
      fill(element, sCurve({ curves: [{ points }], threshold, marks }), hint(words(points, rows[0])));
    });
  }

  function words(points, best) {
    const { bands, rows } = info.banding;
    const start = `The collection has ${bands} bands of ${rows} rows. `;
    if (!best) return `${start}Similar documents will appear as dots below the zero line.`;
    const [candidate, verdict] = ["candidate", "verdict"].map((of) => percent(at(points, best.similarity, of)));
    const dots =
      "Each dot is a document that was compared; the line through it is its interval, and the dotted line leads up to the " +
      "chance that it is reported.";
    const pair = `A pair with the similarity of the best match, ${similarity(best.similarity)}`;
    return `${start}${dots} ${pair}, becomes a candidate in ${candidate} of cases, and is reported in ${verdict}.`;
  }

  return { element, show };
}
