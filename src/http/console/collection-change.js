// Changes of collections that are running. In: a PATCH. Out: its answer, and a note that it runs, which is shown in every
// tab of the collection. A new banding is built before the answer arrives, so a change may take minutes.

import { ask, of } from "./api.js";
import { duration, fill, h, idText, note, toast } from "./ui.js";

const EVERY_MS = 2000;
/** The changes that run, by collection: { since, words }. */
const running = new Map();
const listeners = new Set();

export const isChanging = (name) => running.has(name);

function tell(name, problem) {
  for (const listener of listeners) listener(name, problem);
}

/**
 * Changes settings, and says so when it is done. `words` say what takes long. The request goes on if the person leaves the
 * view. Throws a Problem.
 */
export async function change(name, body, words) {
  running.set(name, { since: Date.now(), words });
  tell(name);
  let problem = null;
  try {
    const changed = await ask("PATCH", of(name), { body });
    toast(`The settings of ${name} are changed`);
    return changed;
  } catch (error) {
    problem = error;
    if (error.name === "Problem") toast(`The settings of ${name} are not changed: ${error.message}`, "bad");
    throw error;
  } finally {
    running.delete(name);
    tell(name, problem);
  }
}

/** A note while a change of the collection runs, else nothing. `ended(problem)` is called when one ends; null: it succeeded. */
export function changeNote(name, signal, ended) {
  const element = h("div", { class: "changing", role: "status" });
  const age = h("span", {});
  const count = () => {
    const now = running.get(name);
    if (now) age.textContent = duration(Math.round((Date.now() - now.since) / 1000));
  };
  const show = () => {
    const now = running.get(name);
    if (!now) return fill(element);
    count();
    fill(
      element,
      note(
        "info",
        h("p", {}, "A change of ", idText(name), " is running. ", now.words),
        h("progress", { "aria-label": "The change is running" }),
        h("p", { class: "hint" }, "Since ", age),
      ),
    );
  };
  const listener = (of, problem) => {
    if (of !== name) return;
    show();
    if (problem !== undefined) ended(problem);
  };
  listeners.add(listener);
  const timer = setInterval(count, EVERY_MS);
  signal.addEventListener("abort", () => {
    listeners.delete(listener);
    clearInterval(timer);
  });
  show();
  return element;
}
