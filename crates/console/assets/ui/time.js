// Times and ages, each with the whole moment in its title.
import { html } from "../dom.js";
import { ago, coarse, dateTime, moment, UNKNOWN } from "../format.js";
import { utc } from "../prefs.js";
import { now } from "../store.js";

/** @param {number} at */
const both = (at) => `${dateTime(at, { ms: true })} local\n${dateTime(at, { ms: true, utc: true })} UTC`;

/** How long ago something was. @param {{at: string | number | null | undefined, none?: string}} props */
export function Age({ at, none = UNKNOWN }) {
  const time = moment(at);
  if (time === null) return html`<span class="dim">${none}</span>`;
  return html`<time datetime=${new Date(time).toISOString()} title=${both(time)}>${ago(now.value - time)}</time>`;
}

/** A moment to the second. @param {{at: string | number | null | undefined, none?: string, ms?: boolean}} props */
export function Moment({ at, none = UNKNOWN, ms = false }) {
  const time = moment(at);
  if (time === null) return html`<span class="dim">${none}</span>`;
  return html`<time datetime=${new Date(time).toISOString()} title=${both(time)}>${dateTime(time, { utc: utc.value, ms })}${utc.value ? " UTC" : ""}</time>`;
}

/** In how long something is due; `late` is what stands there once it is. @param {{at: string | number | null | undefined, late: string}} props */
export function Due({ at, late }) {
  const time = moment(at);
  if (time === null) return html`<span class="dim">${UNKNOWN}</span>`;
  const ms = time - now.value;
  return html`<time datetime=${new Date(time).toISOString()} title=${both(time)}>${ms > 0 ? `in ${coarse(ms)}` : late}</time>`;
}
