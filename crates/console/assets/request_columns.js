// The further columns of lists of requests that this browser shows.
import { signal } from "./dom.js";
import { stored } from "./prefs.js";

/** The further columns of lists of requests. */
export const COLUMNS = ["key", "size", "webhook"];

/** Those that are shown. */
export const columns = signal((stored("columns") ?? "").split(",").filter((name) => COLUMNS.includes(name)));

/** Shows a column or hides it. @param {string} name */
export function switchColumn(name) {
  columns.value = COLUMNS.filter((one) => (one === name ? !columns.value.includes(one) : columns.value.includes(one)));
  localStorage.setItem("longshore.columns", columns.value.join());
}
