// The focus when what has it goes away with its row: it goes on to the next row, and without one to the heading above.
import { leadOf } from "./rows.js";

/** The place of what has the focus in a table: null outside of rows. */
export function placeOfFocus() {
  const row = document.activeElement?.closest("tbody tr");
  const part = row?.closest(".card, main");
  if (!row?.parentElement || !part) return null;
  const rows = [...row.parentElement.children];
  const at = rows.indexOf(row);
  return { part, nearest: [...rows.slice(at), ...rows.slice(0, at).reverse()] };
}

/** Moves the focus to what is nearest to a place, as far as it is still there. @param {NonNullable<ReturnType<typeof placeOfFocus>>} place */
export function focusNear({ part, nearest }) {
  const lead = nearest.filter((row) => row.isConnected).map(leadOf).find(Boolean);
  const heading = /** @type {HTMLElement | null} */ (part.querySelector("h1, h2"));
  if (heading) heading.tabIndex = -1;
  // Rows of a long table go away also while one scrolls: what is seen stays.
  (lead ?? heading)?.focus({ preventScroll: true });
}

/** Keeps the focus, which is in a row that may be removed. */
export function keepFocus() {
  const focused = document.activeElement;
  const place = placeOfFocus();
  if (!place) return;
  const watch = new MutationObserver(() => {
    const isThere = focused?.isConnected;
    if (isThere && document.activeElement === focused) return;
    watch.disconnect();
    // A person may have taken the focus from what is still there.
    if (!isThere && document.activeElement === document.body) focusNear(place);
  });
  watch.observe(place.part, { childList: true, subtree: true });
}
