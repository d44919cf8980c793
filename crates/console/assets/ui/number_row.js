// A long row of numbers, such as an embedding, in one line: how many, the least, the greatest and the first ones.
import { html } from "../dom.js";
import { count } from "../format.js";

/** @typedef {import("../json_text.js").Node} Node */

/** Shorter rows are shown as they are. */
const LENGTH_MIN = 32;
const FIRST = 8;

/** @param {Node} node */
export const isNumberRow = (node) => node.kind === "array" && node.items.length >= LENGTH_MIN && node.items.every((item) => item.kind === "number");

/** @param {{node: import("../json_text.js").ArrayNode}} props a row for which `isNumberRow` holds */
export function NumberRow({ node }) {
  const texts = node.items.map((item) => /** @type {import("../json_text.js").PlainNode} */ (item).text);
  const least = texts.reduce((one, other) => (Number(other) < Number(one) ? other : one));
  const greatest = texts.reduce((one, other) => (Number(other) > Number(one) ? other : one));
  return html`<span class="n">${texts.slice(0, FIRST).join(", ")}, …</span> <span class="dim">${count(texts.length)} numbers from ${least} to ${greatest}</span>`;
}
