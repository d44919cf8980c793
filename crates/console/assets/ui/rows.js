// The rows of the page's tables by the keyboard: the focus goes to what leads on from a row, and Enter follows it.

/** What leads on from a row. Nothing is deleted or stopped by mistake. */
const LEADS = "a, button:not(.danger)";

/** What leads on from a row: the first that is shown, in the marked cell if there is one. @param {Element} row @returns {HTMLElement | undefined} */
export function leadOf(row) {
  const all = /** @type {HTMLElement[]} */ ([...(row.querySelector("[data-leads]") ?? row).querySelectorAll(LEADS)]);
  return all.find((one) => one.getClientRects().length > 0);
}

/** Goes to the next row that leads somewhere, or to the one before. Without one, to the first that is in the window. @param {1 | -1} by */
export function step(by) {
  const rows = [...document.querySelectorAll("main tbody tr")].filter(leadOf);
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = at >= 0 ? rows[at + by] : rows.find((row) => row.getBoundingClientRect().bottom > 0);
  if (next) leadOf(next)?.focus();
}
