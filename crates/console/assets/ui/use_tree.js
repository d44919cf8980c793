// JSON text as a tree. A large text is read in parts, so that the page goes on meanwhile.
import { useEffect, useMemo, useState } from "../dom.js";
import { parse, parseInParts } from "../json_text.js";

/** @typedef {import("../json_text.js").Node} Node */

/** Larger texts are read in parts. */
const LARGE = 1000000;

/**
 * The tree of a text.
 * @param {string} text
 * @returns {{node: Node | null, isReading: boolean}} `node`: null while it is read, and of a text that is no JSON or is nested too deeply
 */
export function useTree(text) {
  const isLarge = text.length > LARGE;
  const small = useMemo(() => (isLarge ? null : parse(text)), [text]);
  const [large, setLarge] = useState(/** @type {{text: string, node: Node | null} | null} */ (null));
  useEffect(() => {
    if (!isLarge) return undefined;
    const stop = new AbortController();
    void parseInParts(text, stop.signal).then((node) => !stop.signal.aborted && setLarge({ text, node }));
    return () => stop.abort();
  }, [text]);
  if (!isLarge) return { node: small, isReading: false };
  return large?.text === text ? { node: large.node, isReading: false } : { node: null, isReading: true };
}
