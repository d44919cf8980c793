// Places in JSON: the members that hold a text, and how a place is written.
import { inParts } from "./in_parts.js";

/** @typedef {import("./json_text.js").Node} Node */
/** The names and numbers that lead from the top to a value. @typedef {(string | number)[]} Path */

/** A search that finds more stops. */
export const FOUND_MAX = 1000;

/** The path as jq and most languages write it: `.images[0].url`; the top is `.`. @param {Path} path */
export function pathText(path) {
  const text = path.map((step) => (typeof step === "number" ? `[${step}]` : /^[A-Za-z_]\w*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`)).join("");
  return text.startsWith(".") ? text : `.${text}`;
}

/** The paths of the members whose name or value has `text` in it, in any case, from the top. @param {Node} node @param {string} text @param {AbortSignal} stop @returns {Promise<Path[]>} */
export async function find(node, text, stop) {
  const search = new Search(node, text.toLowerCase());
  if (text) await inParts(search, stop);
  return search.found;
}

class Search {
  /** @param {Node} node @param {string} wanted in lower case */
  constructor(node, wanted) {
    this.wanted = wanted;
    /** Large values are numbers for the most part. */
    this.isInNumbers = /^[\d.e+-]*$/.test(wanted);
    /** The path of what is looked at. @type {Path} */
    this.path = [];
    /** What is looked through, the innermost last, and the next member of each. */
    this.open = [{ node, next: 0 }];
    /** @type {Path[]} */
    this.found = [];
  }

  isDone() {
    return this.open.length === 0 || this.found.length >= FOUND_MAX;
  }

  /** Looks at the next member, or leaves what has no more. */
  step() {
    const within = this.open[this.open.length - 1];
    const { node, next } = within;
    within.next += 1;
    if (node.kind === "object" && next < node.entries.length) this.look(...node.entries[next]);
    else if (node.kind === "array" && next < node.items.length) this.look(next, node.items[next]);
    else {
      this.open.pop();
      this.path.pop();
    }
  }

  /** @param {string | number} step @param {Node} node */
  look(step, node) {
    this.path.push(step);
    const isNamed = typeof step === "string" && this.has(step);
    if (isNamed || ("text" in node && (node.kind !== "number" || this.isInNumbers) && this.has(node.text))) this.found.push([...this.path]);
    if ("text" in node) this.path.pop();
    else this.open.push({ node, next: 0 });
  }

  /** @param {string} text */
  has(text) {
    return text.toLowerCase().includes(this.wanted);
  }
}
