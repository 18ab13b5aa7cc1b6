// Requests to the server that serves this page. In: a method, a path, a body. Out: the answer, or a Problem.
// The key of the person is in the session storage of this tab, and never in an address.

const KEY = "hapax.key";

/** The address of the API. The console may be behind a sub-path of a proxy. */
export const ROOT = new URL("../", import.meta.url);

/** A request that failed: an answer of the server that is not a success, or no answer (`code` is "unreachable"). */
export class Problem extends Error {
  constructor({ code, status = 0, title = "", detail = "", errors = [], request_id = "", retry_after = null, ...rest }) {
    super(detail || title || code);
    this.name = "Problem";
    Object.assign(this, { code, status, title, detail, errors, requestId: request_id, retryAfter: retry_after, rest });
  }
}

const listeners = new Set();

/** Calls `listener` after each answer with the Problem, or with null if the request succeeded. */
export function onAnswer(listener) {
  listeners.add(listener);
}

function tell(problem) {
  for (const listener of listeners) listener(problem);
}

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (text) => sessionStorage.setItem(KEY, text),
  forget: () => sessionStorage.removeItem(KEY),
};

function address(path, query) {
  const url = new URL(path.replace(/^\//, ""), ROOT);
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") url.searchParams.append(name, one);
    }
  }
  return url;
}

/** The path of a route of a collection. */
export function of(collection, rest = "") {
  return `/v1/collections/${encodeURIComponent(collection)}${rest}`;
}

/**
 * Sends a request, and returns the value of its answer: an object if the answer is JSON, otherwise a text.
 * `body` is an object (sent as JSON), or a text or a Blob with its `type`. Throws a Problem.
 */
export async function ask(method, path, { query, body, type, signal } = {}) {
  const headers = {};
  const shown = key.get();
  if (shown) headers.authorization = `Bearer ${shown}`;
  let content = body;
  if (body !== undefined && type === undefined) {
    content = JSON.stringify(body);
    headers["content-type"] = "application/json";
  } else if (type !== undefined) {
    headers["content-type"] = type;
  }
  let answer;
  let text;
  try {
    answer = await fetch(address(path, query), { method, headers, body: content, signal, cache: "no-store" });
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const problem = new Problem({
      code: "unreachable",
      title: "The server does not answer",
      detail: "The server does not answer. It may be stopped, or the network may be interrupted.",
    });
    tell(problem);
    throw problem;
  }
  const kind = answer.headers.get("content-type") ?? "";
  const value = /\bjson\b/.test(kind) && text !== "" ? JSON.parse(text) : text;
  if (answer.ok) {
    tell(null);
    return value;
  }
  const told = typeof value === "object" && value !== null && value.code ? value : null;
  const problem = new Problem({
    retry_after: answer.headers.get("retry-after"),
    ...(told ?? {
      code: "foreign_answer",
      status: answer.status,
      title: `Status ${answer.status}`,
      detail: `A proxy between this page and hapax answered with status ${answer.status}.`,
    }),
  });
  tell(problem);
  throw problem;
}

export const get = (path, query, signal) => ask("GET", path, { query, signal });
export const post = (path, body, query, signal) => ask("POST", path, { body, query, signal });

/** A text as one word of a shell. */
export function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * The same request as a command for a shell. With `file`, the body is a file of this name. The key is a variable: it must
 * not get into a history of commands.
 */
export function curl(method, path, { query, body, type, file } = {}) {
  const words = ["curl"];
  if (method !== "GET") words.push("-X", method);
  words.push(quoted(address(path, query).href));
  if (key.get()) words.push("-H", '"authorization: Bearer $HAPAX_KEY"');
  if (body !== undefined || file !== undefined) words.push("-H", quoted(`content-type: ${type ?? "application/json"}`));
  if (file !== undefined) words.push("--data-binary", quoted(`@${file}`));
  else if (body !== undefined) words.push("--data-raw", quoted(type === undefined ? JSON.stringify(body) : String(body)));
  return words.join(" ");
}
