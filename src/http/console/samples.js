// Texts with which a person can try a collection that has none of theirs yet.

import { get, of } from "./api.js";
import { shortId } from "./passages.js";

const LONGEST = 50_000;
const ADDED = "and these few words were added at the end";

/** A text of 100 words, and nearly the same one. */
export const SAMPLE =
  "The keeper of the lighthouse writes down every ship that passes. After some years he knows which of them come back, " +
  "which only look alike, and which were seen a single time. In winter the sea is empty for days, and he reads the old " +
  "pages again. He finds the same grey steamer under three names, and a fishing boat that was counted twice in one " +
  "night because of the fog. Since then he looks at the shape of a ship first, and at its name last. A name can be " +
  "painted over in an hour, he says, but nobody changes the line of a hull before the next harbour.";
export const SAMPLE_COPY = SAMPLE.replace("grey steamer", "black steamer").replace("night because of the fog", "foggy night");

/** A text for a collection: that of a stored document with more words, if it can be read, and otherwise `SAMPLE`. */
export async function sampleFor({ collection, may, signal }, info) {
  if (info.keep === "text" && info.documents > 0 && may("read")) {
    const path = of(collection, "/documents");
    const { documents } = await get(path, { limit: 1 }, signal);
    const { text = "" } = documents.length > 0 ? await get(path, { id: documents[0].id, with: "text" }, signal) : {};
    if (text !== "" && text.length < LONGEST) {
      const id = shortId(documents[0].id);
      const about = ["The sample is the text of the stored document ", id, `, and the words “${ADDED}”.`];
      return { text: `${text} ${ADDED}`, about };
    }
  }
  const when = info.documents === 0 ? "The collection is empty, so nothing is found" : "If nothing is found";
  const next = info.index === "containment" ? "Then write other words around it." : "Then change a word here.";
  const store = may("insert") ? `${when}: store it below, under an id such as sample. ${next}` : `${when}.`;
  return { text: SAMPLE, about: [`This sample is a text of the console. ${store}`] };
}
