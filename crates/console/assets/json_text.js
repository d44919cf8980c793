// JSON as it was written: numbers keep all their digits, and members their order.
import { goOn, inParts } from "./in_parts.js";

/**
 * @typedef {{kind: "object", entries: [string, Node][]}} ObjectNode
 * @typedef {{kind: "array", items: Node[]}} ArrayNode
 * @typedef {{kind: "string", text: string}} StringNode
 * @typedef {{kind: "number" | "literal", text: string}} PlainNode
 * @typedef {ObjectNode | ArrayNode | StringNode | PlainNode} Node
 */

/** Deeper values are shown as text. */
const DEPTH_MAX = 500;

const NUMBER = /-?\d[\d.eE+-]*/y;
const LITERAL = /true|false|null/y;
const SPACE = /[ \t\n\r]*/y;
/** The rest of a text with escapes, after its first quote. */
const ESCAPED = /(?:[^"\\]|\\[^])*"/y;

/** Reads JSON text from its start: whole, or a part at a time. */
class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
    /** What began and has not ended, the innermost last. @type {(ObjectNode | ArrayNode)[]} */
    this.open = [];
    /** The name of the member whose value comes next. @type {string | null} */
    this.name = null;
    /** The value of the text, once it has begun. @type {Node | null} */
    this.top = null;
  }

  /** Whether the value is read to its end. */
  isDone() {
    return this.top !== null && this.open.length === 0;
  }

  /** Reads a name, a value, or the beginning or end of one. */
  step() {
    const sign = this.sign();
    const within = this.open.at(-1);
    if (sign === "," && within) {
      this.at += 1;
    } else if ((sign === "}" && within?.kind === "object" && this.name === null) || (sign === "]" && within?.kind === "array")) {
      this.at += 1;
      this.open.pop();
    } else if (within?.kind === "object" && this.name === null) {
      this.name = this.string();
      if (this.sign() !== ":") throw new SyntaxError(`no member at ${this.at}`);
      this.at += 1;
    } else {
      this.put(this.value(sign));
    }
  }

  /** @param {string | undefined} sign that it begins with @returns {Node} */
  value(sign) {
    if (this.open.length > DEPTH_MAX) throw new RangeError("the JSON is nested too deeply for a tree");
    if (sign === '"') return { kind: "string", text: this.string() };
    if (sign === "{" || sign === "[") {
      this.at += 1;
      return sign === "{" ? { kind: "object", entries: [] } : { kind: "array", items: [] };
    }
    const number = this.take(NUMBER);
    const text = number || this.take(LITERAL);
    if (!text) throw new SyntaxError(`no value at ${this.at}`);
    return { kind: number ? "number" : "literal", text };
  }

  /** @param {Node} node */
  put(node) {
    const within = this.open.at(-1);
    if (within?.kind === "object") within.entries.push([/** @type {string} */ (this.name), node]);
    else if (within) within.items.push(node);
    else this.top = node;
    this.name = null;
    if (node.kind === "object" || node.kind === "array") this.open.push(node);
  }

  /** What comes next beside space. */
  sign() {
    const sign = this.text[this.at];
    if (sign > " ") return sign;
    this.take(SPACE);
    return this.text[this.at];
  }

  string() {
    const from = this.at;
    const end = this.text.indexOf('"', from + 1);
    if (this.text[from] !== '"' || end < 0) throw new SyntaxError(`no text at ${from}`);
    this.at = end + 1;
    const plain = this.text.slice(from + 1, end);
    // Most texts have no escapes.
    if (!/[\\\0-\x1f]/.test(plain)) return plain;
    this.at = from + 1;
    this.take(ESCAPED);
    return JSON.parse(this.text.slice(from, this.at));
  }

  /** What comes next if it has this form, else "". @param {RegExp} form */
  take(form) {
    const from = this.at;
    form.lastIndex = from;
    if (form.test(this.text)) this.at = form.lastIndex;
    return this.text.slice(from, this.at);
  }
}

/** The value that a text of JSON has, or null if it is none or is nested too deeply. @param {string} text @returns {Node | null} */
export function parse(text) {
  const reader = new Reader(text);
  try {
    goOn(reader);
  } catch {
    return null;
  }
  return reader.top;
}

/** As `parse`, of a large text: the page goes on between its parts. @param {string} text @param {AbortSignal} stop @returns {Promise<Node | null>} */
export async function parseInParts(text, stop) {
  const reader = new Reader(text);
  try {
    await inParts(reader, stop);
    return reader.top;
  } catch {
    return null;
  }
}

/** A member of an object. @param {Node | null | undefined} node @param {string} name @returns {Node | null} */
export function member(node, name) {
  if (node?.kind !== "object") return null;
  return node.entries.find(([key]) => key === name)?.[1] ?? null;
}

/** JSON text of a value, indented by two spaces. @param {Node} node @returns {string} */
export function write(node, indent = "") {
  const inner = `${indent}  `;
  if (node.kind === "string") return JSON.stringify(node.text);
  if (node.kind === "array") {
    return node.items.length === 0 ? "[]" : `[\n${node.items.map((item) => inner + write(item, inner)).join(",\n")}\n${indent}]`;
  }
  if (node.kind === "object") {
    if (node.entries.length === 0) return "{}";
    return `{\n${node.entries.map(([name, value]) => `${inner}${JSON.stringify(name)}: ${write(value, inner)}`).join(",\n")}\n${indent}}`;
  }
  return node.text;
}

/** JSON text of a value, on one line. @param {Node} node @returns {string} */
export function writeLine(node) {
  if (node.kind === "string") return JSON.stringify(node.text);
  if (node.kind === "array") return `[${node.items.map(writeLine).join(",")}]`;
  if (node.kind === "object") return `{${node.entries.map(([name, value]) => `${JSON.stringify(name)}:${writeLine(value)}`).join(",")}}`;
  return node.text;
}

/** All strings of a value, at most `max`. @param {Node} node @param {number} max */
export function strings(node, max) {
  /** @type {string[]} */
  const found = [];
  const rest = [node];
  for (let next = rest.pop(); next && found.length < max; next = rest.pop()) {
    if (next.kind === "string") found.push(next.text);
    else if (next.kind === "array") rest.push(...next.items.slice(0, max).reverse());
    else if (next.kind === "object") rest.push(...next.entries.slice(0, max).map(([, value]) => value).reverse());
  }
  return found;
}
