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
  const search = new Search(text.toLowerCase());
  if (text) search.look(node);
  return search.found;
}

class Search {
  /** @param {string} wanted in lower case */
  constructor(wanted) {
    this.wanted = wanted;
    /** Large values are numbers for the most part. */
    this.isInNumbers = /^[\d.e+-]*$/.test(wanted);
    /** The path of what is looked at. @type {Path} */
    this.path = [];
    /** @type {Path[]} */
    this.found = [];
  }

  /** @param {string} text */
  has = (text) => text.toLowerCase().includes(this.wanted);

  /** Looks at a value and what is below it. @param {Node} node */
  look(node) {
    if (this.found.length >= FOUND_MAX) return;
    const name = this.path.at(-1);
    const isNamed = typeof name === "string" && this.has(name);
    if (isNamed || ("text" in node && (node.kind !== "number" || this.isInNumbers) && this.has(node.text))) this.found.push([...this.path]);
    if (node.kind === "array") node.items.forEach((item, at) => this.below(item, at));
    else if (node.kind === "object") for (const [key, value] of node.entries) this.below(value, key);
  }

  /** @param {Node} node @param {string | number} step */
  below(node, step) {
    this.path.push(step);
    this.look(node);
    this.path.pop();
  }
}
