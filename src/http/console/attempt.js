// Work that asks the server for a part of a page, and may fail.

import { curl } from "./api.js";
import { failure, fill } from "./ui.js";

/** Does some work. A Problem is shown in `place`; if the work was given up, nothing is shown. Returns whether it is done. */
export async function attempt(place, work) {
  try {
    await work();
    return true;
  } catch (problem) {
    if (problem.name !== "AbortError" && problem.name !== "Problem") throw problem;
    if (problem.name === "Problem") fill(place, failure(problem, () => attempt(place, work)));
    return false;
  }
}

/** Waits for work. If it takes longer than half a second, `slow()` is called meanwhile. Returns what the work returns. */
export async function patiently(work, slow) {
  const timer = setTimeout(slow, 500);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** A longer body is named as a file in a command: shells refuse arguments of 128 KiB. */
const ARGUMENT_MAX = 100_000;

/** The command for a request as `bodyOf` makes it. */
export function commandOf(path, { query, body, type }) {
  const isFile = type !== undefined;
  if (!isFile && JSON.stringify(body).length <= ARGUMENT_MAX) return curl("POST", path, { query, body });
  return curl("POST", path, { query, type, file: isFile ? body.name : "document.json" });
}
