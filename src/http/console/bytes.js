// Places in a text: the server counts bytes of UTF-8, and a string here counts units of UTF-16.

/** Returns a text in which each half of a surrogate pair that stands alone is replaced, as UTF-8 cannot have it. */
export const wellFormed = (text) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(text));

const width = (code) => (code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);

/** Returns the places in a string for offsets in its UTF-8, which must be in order. An offset beyond the end is the end. */
export function places(text, offsets) {
  let [at, byte] = [0, 0];
  return offsets.map((offset) => {
    while (byte < offset && at < text.length) {
      const code = text.codePointAt(at);
      byte += width(code);
      at += code < 0x10000 ? 1 : 2;
    }
    return at;
  });
}

/** Returns spans of bytes as spans of a string: in order, and joined where they touch. */
export function spansOf(text, byteSpans) {
  const joined = [];
  for (const [from, to] of [...byteSpans].sort(([a], [b]) => a - b)) {
    const last = joined.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  const found = places(text, joined.flat());
  return joined.map((_, at) => [found[2 * at], found[2 * at + 1]]);
}

/** Returns the spans between these spans. */
export function gaps(text, spans) {
  const ends = [0, ...spans.flat(), text.length];
  const all = [...Array(ends.length / 2).keys()].map((at) => [ends[2 * at], ends[2 * at + 1]]);
  return all.filter(([from, to]) => from < to);
}

/** Cuts a part of a text at the ends of its spans. Returns pairs of a piece and the number of its span, or -1. */
export function cut(text, spans, from, to) {
  const made = [];
  let at = from;
  spans.forEach(([begin, end], number) => {
    if (end <= at || begin >= to) return;
    if (begin > at) made.push([text.slice(at, begin), -1]);
    at = Math.min(end, to);
    made.push([text.slice(Math.max(begin, from), at), number]);
  });
  if (at < to) made.push([text.slice(at, to), -1]);
  return made;
}

/** Decodes a file: by its byte order mark, by the charset that a page declares, as UTF-8, or as windows-1252. */
export function decode(bytes, isPage) {
  const head = new TextDecoder("windows-1252").decode(bytes.subarray(0, 1024));
  const marks = { "ÿþ": "utf-16le", "þÿ": "utf-16be", "ï»": "utf-8" };
  // A page whose declaration can be read like this is not in UTF-16, even if it says so.
  const declared = isPage ? /charset\s*=\s*["']?\s*(?!utf-16)([\w:.-]+)/i.exec(head)?.[1] : undefined;
  for (const charset of [marks[head.slice(0, 2)], declared, "utf-8"]) {
    try {
      if (charset) return { text: new TextDecoder(charset, { fatal: true }).decode(bytes), charset };
    } catch {
      // The charset is unknown, or it is not that of the file.
    }
  }
  return { text: new TextDecoder("windows-1252").decode(bytes), charset: "windows-1252" };
}
