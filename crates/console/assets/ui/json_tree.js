// JSON as a tree that folds. Large arrays and objects show their first members, and more when asked; a name copies its path.
import { html, useEffect, useRef, useState } from "../dom.js";
import { attempt } from "./toast.js";
import { count, visible } from "../format.js";
import { Icon } from "../icons.js";
import { pathText } from "../json_find.js";
import { copy } from "./copy.js";
import { NumberRow, isNumberRow } from "./number_row.js";

/** @typedef {import("../json_text.js").Node} Node */
/** @typedef {import("../json_find.js").Path} Path */

const SHOWN = 100;
const MORE = 10 * SHOWN;
const STRING_SHOWN = 2000;
/** Deeper values are folded at first. */
const OPEN_DEPTH = 3;

/** @param {{node: Node, found?: Path | null, isFolded?: boolean}} props `found` is marked, and unfolded · `isFolded`: at first all of it is */
export const JsonTree = ({ node, found = null, isFolded = false }) => html`<div class="json mono json-top"><${Value} node=${node} path=${[]} found=${found} openDepth=${isFolded ? 0 : OPEN_DEPTH} /></div>`;

/** @param {{node: Node, path: Path, found: Path | null, openDepth: number}} props `found` only if it is this value or below it · `openDepth`: deeper values are folded at first */
function Value({ node, path, found, openDepth }) {
  if (node.kind === "string") return html`<${Text} text=${node.text} />`;
  if (node.kind === "number") return html`<span class="n">${node.text}</span>`;
  if (node.kind === "literal") return html`<span class="z">${node.text}</span>`;
  return html`<${Branch} node=${node} path=${path} found=${found} openDepth=${openDepth} />`;
}

/** @param {{text: string}} props */
function Text({ text }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? text : text.slice(0, STRING_SHOWN);
  return html`<span class="s">"<${Linked} text=${visible(shown)} />"</span>${shown.length < text.length && html` <button type="button" class="more" onClick=${() => setWhole(true)}>all ${count(text.length)} characters</button>`}`;
}

/** A text that is an address, as a link; it is never fetched. @param {{text: string}} props */
const Linked = ({ text }) => (/^https?:\/\/[^\s"'<>]+$/.test(text) ? html`<a href=${text} target="_blank" rel="noopener noreferrer">${text}</a>` : text);

/** @param {{node: import("../json_text.js").ObjectNode | import("../json_text.js").ArrayNode, path: Path, found: Path | null, openDepth: number}} props */
function Branch({ node, path, found, openDepth }) {
  const isObject = node.kind === "object";
  const size = isObject ? node.entries.length : node.items.length;
  const below = found && found.length > path.length ? found[path.length] : null;
  const [isOpen, setOpen] = useState(path.length < openDepth && size <= SHOWN * 5 && !isNumberRow(node));
  const [shown, setShown] = useState(SHOWN);
  const foundAt = below === null ? -1 : isObject ? node.entries.findIndex(([name]) => name === below) : Number(below);
  useEffect(() => {
    if (foundAt < 0) return;
    setOpen(true);
    // What is found far behind is shown without all that is before it.
    if (foundAt < MORE) setShown((now) => Math.max(now, foundAt + 1));
  }, [found, foundAt]);
  const [left, right] = isObject ? ["{", "}"] : ["[", "]"];
  if (size === 0) return html`${left}${right}`;
  const words = isObject ? (size === 1 ? "member" : "members") : size === 1 ? "item" : "items";
  const fold = html`<button type="button" class="fold" aria-expanded=${isOpen} aria-label=${isOpen ? "Fold" : "Unfold"} onClick=${() => setOpen(!isOpen)}><${Icon} name="chevron" /></button>`;
  if (!isOpen) return html`${fold}${left} ${isNumberRow(node) ? html`<${NumberRow} node=${node} />` : html`<span class="dim">${count(size)} ${words}</span>`} ${right}`;
  /** @type {[string | number, Node][]} */
  const members = isObject ? node.entries.slice(0, shown) : node.items.slice(0, shown).map((item, at) => [at, item]);
  const member = (/** @type {[string | number, Node]} */ [step, value], /** @type {number} */ at) =>
    html`<${Member} key=${at} step=${step} node=${value} path=${[...path, step]} found=${at === foundAt ? found : null} openDepth=${openDepth} isLast=${at === size - 1} />`;
  return html`${fold}${left}<ul>
    ${members.map(member)}
    ${shown < size && html`<li><button type="button" class="more" onClick=${() => setShown(shown + MORE)}>${count(size - shown)} more</button></li>`}
    ${foundAt >= shown && member(isObject ? node.entries[foundAt] : [foundAt, node.items[foundAt]], foundAt)}
  </ul>${right}`;
}

/** @param {{step: string | number, node: Node, path: Path, found: Path | null, openDepth: number, isLast: boolean}} props */
function Member({ step, node, path, found, openDepth, isLast }) {
  const row = useRef(/** @type {HTMLElement | null} */ (null));
  const isFound = found?.length === path.length;
  useEffect(() => {
    if (isFound) row.current?.scrollIntoView({ block: "nearest" });
  }, [found, isFound]);
  // The search names the path too, and is reached with the keyboard: a large tree has thousands of names.
  const press = { type: "button", tabindex: -1, title: "Copy the path", "aria-label": `Copy the path ${pathText(path)}`, onClick: () => attempt(() => copy(pathText(path)), "") };
  const name = typeof step === "string" ? html`<button class="k" ...${press}>"${visible(step)}"</button>: ` : html`<button class="at" data-at=${step} ...${press}></button>`;
  return html`<li ref=${row} class=${isFound ? "found" : ""}>${name}<${Value} node=${node} path=${path} found=${found} openDepth=${openDepth} />${isLast ? "" : ","}</li>`;
}
