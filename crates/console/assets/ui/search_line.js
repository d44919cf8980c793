// The search line of requests: what one types, with the tokens and the values that may come next.
import { html, useRef, useState } from "../dom.js";
import { suggestions } from "../filter.js";
import { may } from "../session.js";
import { useRead } from "../store.js";
import { useTyped } from "./typed.js";

/** The newest versions are suggested. */
const VERSIONS_MAX = 8;

/** The values that are here, with what each is. @param {string} text @param {string[]} workers @param {number} version @returns {Record<string, [string, string][]>} */
function useKnown(text, workers, version) {
  const isOfKey = may.everything.value && /(^|\s)key:\S*$/.test(text);
  const keys = useRead(isOfKey ? "/v1/apikeys" : null, Infinity).data ?? [];
  return {
    worker: workers.map((worker) => [worker, ""]),
    version: Array.from({ length: Math.min(version, VERSIONS_MAX) }, (_, at) => [String(version - at), at === 0 ? "the present one" : ""]),
    key: [["admin", "the operator's key"], ...keys.filter((/** @type {any} */ { id }) => id !== "admin").map((/** @type {any} */ { id, name }) => [id, name])],
  };
}

/**
 * @param {{line: string, wrong: string, workers: string[], version: number, onLine: (line: string) => void}} props
 *   `workers` are those of the rows that are shown, `version` is the endpoint's present one, or 0
 */
export function SearchLine({ line, wrong, workers, version, onLine }) {
  // A token without its value is not whole yet.
  const { text, setText, search } = useTyped(line, onLine, (typed) => !/[:.]$/.test(typed));
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const known = useKnown(text, workers, version);
  const found = isOpen ? suggestions(text, known) : [];
  const type = (/** @type {string} */ next) => {
    setText(next);
    setAt(-1);
    setOpen(true);
  };
  const take = (/** @type {number} */ index) => {
    const begin = text.slice(0, text.length - lastPart(text).length);
    const { insert } = found[index];
    // A name waits for its value; a value is whole.
    type(begin + insert + (/[:.]$/.test(insert) ? "" : " "));
    field.current?.focus();
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && !isOpen) setOpen(true);
    if (step) {
      event.preventDefault();
      if (found.length > 0) setAt((at + step + found.length) % found.length);
    } else if (event.key === "Enter" && at >= 0 && found[at]) {
      event.preventDefault();
      take(at);
    } else if (event.key === "Enter") {
      setOpen(false);
      search();
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      setOpen(false);
    }
  };
  // Browsers lead Tab to a list that scrolls, unless it says no: this one goes when the field is left, and the focus with it.
  return html`<div class="search-line">
    <input id="search" ref=${field} type="search" role="combobox" aria-label="Search requests" aria-expanded=${found.length > 0} aria-controls="search-list" aria-activedescendant=${found[at] ? `search-${at}` : undefined}
      spellcheck=${false} autocomplete="off" aria-invalid=${wrong ? "true" : undefined} aria-describedby=${wrong ? "search-fault" : undefined}
      placeholder="Id or text, state:failed after:10min ran:>1min" value=${text} onInput=${(/** @type {any} */ event) => type(event.target.value)} onKeyDown=${press} onFocus=${() => setOpen(true)} onBlur=${() => {
        setOpen(false);
        search();
      }} />
    <ul id="search-list" class="menu" role="listbox" tabindex="-1" aria-label="What may come next" hidden=${found.length === 0}>
      ${found.map(({ insert, does }, index) => html`<li key=${insert} id=${`search-${index}`} role="option" aria-selected=${index === at} onMouseDown=${(/** @type {Event} */ event) => event.preventDefault()} onClick=${() => take(index)}><span class="mono">${insert}</span><span class="dim">${does}</span></li>`)}
    </ul>
  </div>`;
}

/** What is typed after the last space. @param {string} text */
const lastPart = (text) => /\S*$/.exec(text)?.[0] ?? "";
