// How this browser likes to see things: the theme, local time or UTC, and further columns of requests. The playground keeps its runs beside it.
import { signal } from "./dom.js";

/** @typedef {"system" | "light" | "dark"} Theme */

const stored = (/** @type {string} */ name) => localStorage.getItem(`longshore.${name}`);

/** @type {import("./vendor/signals.js").Signal<Theme>} */
export const theme = signal(/** @type {Theme} */ (stored("theme") ?? "system"));

/** Whether times are shown in UTC. */
export const utc = signal(stored("zone") === "utc");

/** Whether the page is dark now, also when the system decides. */
export const isDark = () =>
  theme.value === "dark" || (theme.value === "system" && matchMedia("(prefers-color-scheme: dark)").matches);

/** Switches between light and dark. */
export function switchTheme() {
  theme.value = isDark() ? "light" : "dark";
  localStorage.setItem("longshore.theme", theme.value);
  document.documentElement.dataset.theme = theme.value;
}

/** The further columns of lists of requests. */
export const COLUMNS = ["key", "size", "webhook"];

/** Those that are shown. */
export const columns = signal((stored("columns") ?? "").split(",").filter((name) => COLUMNS.includes(name)));

/** Shows a column or hides it. @param {string} name */
export function switchColumn(name) {
  columns.value = COLUMNS.filter((one) => (one === name ? !columns.value.includes(one) : columns.value.includes(one)));
  localStorage.setItem("longshore.columns", columns.value.join());
}

/** Switches between local time and UTC. */
export function switchZone() {
  utc.value = !utc.value;
  localStorage.setItem("longshore.zone", utc.value ? "utc" : "local");
}
