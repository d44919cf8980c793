// How this browser likes to see things: the theme, local time or UTC, and further columns of requests. The playground keeps its runs beside it.
import { signal } from "./dom.js";

/** @typedef {"system" | "light" | "dark"} Theme */

const stored = (/** @type {string} */ name) => localStorage.getItem(`longshore.${name}`);

/** @type {import("./vendor/signals.js").Signal<Theme>} */
export const theme = signal(/** @type {Theme} */ (stored("theme") ?? "system"));

/** Whether times are shown in UTC. */
export const utc = signal(stored("zone") === "utc");

const TYPED = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(Z|[+-]\d\d:\d\d)?$/;

/**
 * The moment that one typed, in ms: 2030-01-31T12:00 or a day alone, which begins at midnight. Without a zone, it is in the one that is
 * shown. Null for another text.
 * @param {string} text
 */
export function typedMoment(text) {
  const found = TYPED.exec(text.trim().toUpperCase());
  if (!found) return null;
  const [, day, clock = "00:00", zone = utc.peek() ? "Z" : ""] = found;
  const at = Date.parse(`${day}T${clock}${zone}`);
  return Number.isNaN(at) ? null : at;
}

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
