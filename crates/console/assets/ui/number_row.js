// A long row of numbers, such as an embedding, in one line: how many, the least, the greatest and the first ones.
import { html, useMemo } from "../dom.js";
import { count } from "../format.js";

/** @typedef {import("../json_text.js").Node} Node */

/** Shorter rows are shown as they are. */
const LENGTH_MIN = 32;
const FIRST = 8;
/** Of longer rows, the least and the greatest number would stop the page for too long. */
const COMPARED_MAX = 100000;

/** @param {Node} node */
export const isNumberRow = (node) => node.kind === "array" && node.items.length >= LENGTH_MIN && node.items.every((item) => item.kind === "number");

/** @param {{node: import("../json_text.js").ArrayNode}} props a row for which `isNumberRow` holds */
export function NumberRow({ node }) {
  const length = node.items.length;
  const ends = useMemo(() => (length > COMPARED_MAX ? null : endsOf(node)), [node]);
  return html`<span class="n">${node.items.slice(0, FIRST).map(textOf).join(", ")}, …</span> <span class="dim">${count(length)} numbers${ends && ` from ${ends.least} to ${ends.greatest}`}</span>`;
}

/** The text of a number. @param {Node} node */
const textOf = (node) => /** @type {import("../json_text.js").PlainNode} */ (node).text;

/** The least and the greatest number of a row, as they were written. @param {import("../json_text.js").ArrayNode} node */
function endsOf({ items }) {
  let [least, greatest] = [items[0], items[0]];
  let [lowest, highest] = [Infinity, -Infinity];
  for (const item of items) {
    const value = Number(textOf(item));
    if (value < lowest) [least, lowest] = [item, value];
    if (value > highest) [greatest, highest] = [item, value];
  }
  return { least: textOf(least), greatest: textOf(greatest) };
}
