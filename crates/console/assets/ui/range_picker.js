// The time range of the charts of a page: one that ends now, or the one that a drag chose.
import { html } from "../dom.js";
import { coarse, dateTime } from "../format.js";
import { utc } from "../prefs.js";
import { place } from "../router.js";
import { currentRange, RANGES, showRange } from "../timeline.js";
import { Button } from "./button.js";

/** @param {{note?: any}} props */
export function RangePicker({ note }) {
  const range = currentRange();
  return html`<div class="range-bar">
    ${note && html`<p class="dim">${note}</p>`}<span class="grow"></span>
    ${!range.isLive && html`<${Chosen} />`}
    <div class="switch" role="group" aria-label="Time range">${RANGES.map(({ name }) => html`<button type="button" key=${name} aria-pressed=${range.name === name} onClick=${() => showRange(name)}>${name}</button>`)}</div>
  </div>`;
}

function Chosen() {
  const { query } = place.value;
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  const text = (/** @type {number} */ at) => dateTime(at, { utc: utc.value });
  return html`<span class="chosen-range"><span>${text(from).slice(5)} – ${text(to).slice(text(from).slice(0, 10) === text(to).slice(0, 10) ? 11 : 5)}</span><span class="dim">${coarse(to - from)}</span><${Button} kind="quiet small" onClick=${() => showRange(query.get("range") ?? "15 min")}>Back to now<//></span>`;
}
