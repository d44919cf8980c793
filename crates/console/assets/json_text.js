// JSON as it was written: numbers keep all their digits, and members their order.

/**
 * @typedef {{kind: "object", entries: [string, Node][]}} ObjectNode
 * @typedef {{kind: "array", items: Node[]}} ArrayNode
 * @typedef {{kind: "string", text: string}} StringNode
 * @typedef {{kind: "number" | "literal", text: string}} PlainNode
 * @typedef {ObjectNode | ArrayNode | StringNode | PlainNode} Node
 */

/** Deeper values are shown as text. */
const DEPTH_MAX = 500;

const TOKEN = /[\s]*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|(true|false|null))/y;

/** Reads JSON text from its start. */
class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  /** The next token: its kind, by position of its group, and its text. */
  next() {
    TOKEN.lastIndex = this.at;
    const found = TOKEN.exec(this.text);
    if (!found) throw new SyntaxError(`no JSON at ${this.at}`);
    this.at = TOKEN.lastIndex;
    const group = found.findIndex((part, index) => index > 0 && part !== undefined);
    return { group, text: found[group] };
  }

  /** @param {number} depth @param {{group: number, text: string}} token @returns {Node} */
  value(depth, token = this.next()) {
    if (depth > DEPTH_MAX) throw new RangeError("the JSON is nested too deeply for a tree");
    if (token.group === 2) return { kind: "string", text: JSON.parse(token.text) };
    if (token.group === 3) return { kind: "number", text: token.text };
    if (token.group === 4) return { kind: "literal", text: token.text };
    if (token.text === "{") return this.object(depth);
    if (token.text === "[") return this.array(depth);
    throw new SyntaxError(`no value at ${this.at}`);
  }

  /** @param {number} depth @returns {ObjectNode} */
  object(depth) {
    /** @type {[string, Node][]} */
    const entries = [];
    for (let token = this.next(); token.text !== "}"; token = this.next()) {
      const name = token.text === "," ? this.next() : token;
      if (name.group !== 2 || this.next().text !== ":") throw new SyntaxError(`no member at ${this.at}`);
      entries.push([JSON.parse(name.text), this.value(depth + 1)]);
    }
    return { kind: "object", entries };
  }

  /** @param {number} depth @returns {ArrayNode} */
  array(depth) {
    /** @type {Node[]} */
    const items = [];
    for (let token = this.next(); token.text !== "]"; token = this.next()) {
      items.push(this.value(depth + 1, token.text === "," ? this.next() : token));
    }
    return { kind: "array", items };
  }
}

/** The value that a text of JSON has, or null if it is none or is nested too deeply. @param {string} text @returns {Node | null} */
export function parse(text) {
  try {
    return new Reader(text).value(0);
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
