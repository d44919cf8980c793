// Searches a tree of JSON: Enter goes to the next member that holds the text, Shift and Enter to the one before.
import { html, useEffect, useState } from "../dom.js";
import { count } from "../format.js";
import { FOUND_MAX, find, pathText } from "../json_find.js";
import { CopyButton } from "./copy.js";

/** @typedef {import("../json_find.js").Path} Path */

/** @type {Path[]} */
const NONE = [];

/** @param {{title: string, node: import("../json_text.js").Node, onFound: (path: Path | null) => void}} props `onFound` must not change */
export function JsonSearch({ title, node, onFound }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const { found, isLooking } = useFound(node, text.trim());
  const path = found[at] ?? null;
  useEffect(() => onFound(path), [path, onFound]);
  const write = (/** @type {any} */ event) => {
    setText(event.target.value);
    setAt(0);
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape" && text) {
      event.stopPropagation();
      setText("");
    }
    if (event.key !== "Enter" || found.length === 0) return;
    event.preventDefault();
    setAt((at + (event.shiftKey ? found.length - 1 : 1)) % found.length);
  };
  const number = found.length === FOUND_MAX ? `the first ${count(FOUND_MAX)}` : count(found.length);
  return html`<div class="json-search">
    <input type="search" aria-label=${`Find in ${title.toLowerCase()}`} placeholder="Find" autocomplete="off" spellcheck=${false} value=${text} onInput=${write} onKeyDown=${press} />
    <span class="dim" role="status">${text.trim() && !isLooking && (path ? `${count(at + 1)} of ${number}` : "not found")}</span>
    ${path && html`<code>${pathText(path)}</code><${CopyButton} text=${pathText(path)} label="Copy the path" kind="quiet small" />`}
  </div>`;
}

/** The members that hold a text; none while they are looked for. @param {import("../json_text.js").Node} node @param {string} text */
function useFound(node, text) {
  const [of, setOf] = useState({ node, text: "", found: /** @type {Path[]} */ ([]) });
  useEffect(() => {
    const stop = new AbortController();
    void find(node, text, stop.signal).then((found) => !stop.signal.aborted && setOf({ node, text, found }));
    return () => stop.abort();
  }, [node, text]);
  const isLooking = of.node !== node || of.text !== text;
  return { found: isLooking ? NONE : of.found, isLooking };
}
