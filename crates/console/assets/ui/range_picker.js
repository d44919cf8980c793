// The time range of all charts of a page, in the top bar: one that ends now, or the one that a drag chose.
import { html, signal } from "../dom.js";
import { coarse, dateTime } from "../format.js";
import { utc } from "../prefs.js";
import { place } from "../router.js";
import { may } from "../session.js";
import { CHART_PAGES, currentRange, RANGES, showRange } from "../timeline.js";
import { Button } from "./button.js";

/** Opens a dialog in place of a range. */
const CUSTOM = "custom";
/** Whether that dialog is open. The frame shows it. */
export const customOpen = signal(false);

export function RangePicker() {
  if (!CHART_PAGES.includes(place.value.page) || !may.readsAny.value) return null;
  const { name, isLive } = currentRange();
  // Rendered again when the dialog opens, the list shows the range and not the word for the dialog.
  void customOpen.value;
  return html`<div class="range">
    <select aria-label="Time range" value=${name} onChange=${(/** @type {any} */ event) => (event.target.value === CUSTOM ? (customOpen.value = true) : showRange(event.target.value))}>
      ${!isLive && html`<option value="">${chosen()}</option>`}${RANGES.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}<option value=${CUSTOM}>Custom …</option></select>
    ${!isLive && html`<${Button} kind="quiet small" onClick=${() => showRange(place.peek().query.get("range") ?? "15 min")}>Back to now<//>`}
  </div>`;
}

/** The range that a drag chose: from when, to when, and how long it is. */
function chosen() {
  const { query } = place.value;
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  const text = (/** @type {number} */ at) => dateTime(at, { utc: utc.value });
  const isOneDay = text(from).slice(0, 10) === text(to).slice(0, 10);
  return `${text(from).slice(5)} – ${text(to).slice(isOneDay ? 11 : 5)}, ${coarse(to - from)}`;
}
