// How this browser likes to see things: the theme, and local time or UTC. `request_columns.js` and `playground_kept.js` keep more.
import { signal } from "./dom.js";

/** @typedef {"system" | "light" | "dark"} Theme */

/** What is kept under this name. @param {string} name */
export const stored = (name) => localStorage.getItem(`longshore.${name}`);

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

/** Switches between local time and UTC. */
export function switchZone() {
  utc.value = !utc.value;
  localStorage.setItem("longshore.zone", utc.value ? "utc" : "local");
}
