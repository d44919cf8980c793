// Places in JSON: the members that hold a text, and how a place is written.

/** @typedef {import("./json_text.js").Node} Node */
/** The names and numbers that lead from the top to a value. @typedef {(string | number)[]} Path */

/** A search that finds more stops. */
export const FOUND_MAX = 1000;

/** The path as jq and most languages write it: `.images[0].url`; the top is `.`. @param {Path} path */
export function pathText(path) {
  const text = path.map((step) => (typeof step === "number" ? `[${step}]` : /^[A-Za-z_]\w*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`)).join("");
  return text.startsWith(".") ? text : `.${text}`;
}

/** The paths of the members whose name or value has `text` in it, in any case, from the top. @param {Node} node @param {string} text @returns {Path[]} */
export function find(node, text) {
  const wanted = text.toLowerCase();
  /** @type {Path[]} */
  const found = [];
  if (wanted) search(node, wanted, [], found);
  return found;
}

/** @param {Node} node @param {string} wanted @param {Path} path @param {Path[]} found */
function search(node, wanted, path, found) {
  if (found.length >= FOUND_MAX) return;
  const name = path.at(-1);
  const isNamed = typeof name === "string" && name.toLowerCase().includes(wanted);
  if (isNamed || ("text" in node && node.text.toLowerCase().includes(wanted))) found.push(path);
  if (node.kind === "array") node.items.forEach((item, at) => search(item, wanted, [...path, at], found));
  else if (node.kind === "object") node.entries.forEach(([key, value]) => search(value, wanted, [...path, key], found));
}
