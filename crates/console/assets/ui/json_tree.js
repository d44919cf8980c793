// JSON as a tree that folds. Large arrays and objects show their first members, and more when asked.
import { html, useState } from "../dom.js";
import { count, visible } from "../format.js";
import { Icon } from "../icons.js";

/** @typedef {import("../json_text.js").Node} Node */

const SHOWN = 100;
const STRING_SHOWN = 2000;
/** Deeper values are folded at first. */
const OPEN_DEPTH = 3;

/** @param {{node: Node}} props */
export const JsonTree = ({ node }) => html`<div class="json mono json-top"><${Value} node=${node} depth=${0} /></div>`;

/** @param {{node: Node, depth: number}} props */
function Value({ node, depth }) {
  if (node.kind === "string") return html`<${Text} text=${node.text} />`;
  if (node.kind === "number") return html`<span class="n">${node.text}</span>`;
  if (node.kind === "literal") return html`<span class="z">${node.text}</span>`;
  return html`<${Branch} node=${node} depth=${depth} />`;
}

/** @param {{text: string}} props */
function Text({ text }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? text : text.slice(0, STRING_SHOWN);
  return html`<span class="s">"<${Linked} text=${visible(shown)} />"</span>${shown.length < text.length && html` <button type="button" class="more" onClick=${() => setWhole(true)}>all ${count(text.length)} characters</button>`}`;
}

/** A text that is an address, as a link; it is never fetched. @param {{text: string}} props */
const Linked = ({ text }) => (/^https?:\/\/[^\s"'<>]+$/.test(text) ? html`<a href=${text} target="_blank" rel="noopener noreferrer">${text}</a>` : text);

/** @param {{node: import("../json_text.js").ObjectNode | import("../json_text.js").ArrayNode, depth: number}} props */
function Branch({ node, depth }) {
  const isObject = node.kind === "object";
  const size = isObject ? node.entries.length : node.items.length;
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && size <= SHOWN * 5);
  const [shown, setShown] = useState(SHOWN);
  const [left, right] = isObject ? ["{", "}"] : ["[", "]"];
  if (size === 0) return html`${left}${right}`;
  const words = isObject ? (size === 1 ? "member" : "members") : size === 1 ? "item" : "items";
  const fold = html`<button type="button" class="fold" aria-expanded=${isOpen} aria-label=${isOpen ? "Fold" : "Unfold"} onClick=${() => setOpen(!isOpen)}><${Icon} name="chevron" /></button>`;
  if (!isOpen) return html`${fold}${left} <span class="dim">${count(size)} ${words}</span> ${right}`;
  /** @type {[string | null, Node][]} */
  const members = isObject ? node.entries.slice(0, shown) : node.items.slice(0, shown).map((item) => [null, item]);
  return html`${fold}${left}<ul>
    ${members.map(([name, value], at) => html`<li key=${at}>${name !== null && html`<span class="k">"${visible(name)}"</span>: `}<${Value} node=${value} depth=${depth + 1} />${at < size - 1 ? "," : ""}</li>`)}
    ${shown < size && html`<li><button type="button" class="more" onClick=${() => setShown(shown + 10 * SHOWN)}>${count(size - shown)} more</button></li>`}
  </ul>${right}`;
}
