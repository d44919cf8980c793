// The search of a list that is read as a whole: by any text that its rows show. Short lists have none.
import { html } from "../dom.js";
import { place, setQuery } from "../router.js";
import { count } from "../format.js";
import { Empty } from "./card.js";
import { useKeys } from "./keys.js";

/** A list of at most this many rows is seen whole. */
const SHORT = 7;

/**
 * The rows that the search in the address leaves, the field for it, and how many rows there are, for the card's note.
 * @template T
 * @param {T[] | undefined} rows
 * @param {string} name of the list, in lower case
 * @param {string} placeholder what can be searched for
 * @param {(row: T) => string} textOf all of a row that can be found
 * @returns {{shown: T[], note: string | undefined, field: any, none: any}} `none` stands in place of a table without rows
 */
export function useListSearch(rows, name, placeholder, textOf) {
  const typed = place.value.query.get("q") ?? "";
  const isHere = rows !== undefined && (rows.length > SHORT || typed !== "");
  useKeys(isHere ? [{ key: "/", does: "Search", act: () => document.getElementById("search")?.focus() }] : []);
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (/** @type {T} */ row) => {
    const text = textOf(row).toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const all = rows ?? [];
  const shown = words.length === 0 ? all : all.filter(matches);
  const note = rows && (shown.length === all.length ? count(all.length) : `${count(shown.length)} of ${count(all.length)}`);
  const field = isHere && html`<div class="filters"><input id="search" type="search" aria-label=${`Search ${name}`} placeholder=${placeholder} autocomplete="off" spellcheck=${false} value=${typed} onInput=${(/** @type {any} */ event) => setQuery({ q: event.target.value })} /></div>`;
  const none = html`<${Empty}><p>Nothing matches “${typed}”.</p><button type="button" class="button" onClick=${() => setQuery({ q: null })}>Show all</button><//>`;
  return { shown, note, field, none };
}
