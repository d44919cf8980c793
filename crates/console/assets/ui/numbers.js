// The numbers of a chart as a table, the newest first; loaded when one asks for it.
import { html, useState } from "../dom.js";
import { count, dateTime } from "../format.js";
import { utc } from "../prefs.js";
import { Button } from "./button.js";
import { shown } from "./chart.js";

/** Rows that are shown at first; a press shows all. */
const ROWS = 60;

/** @typedef {{name: string, of: (at: number) => string}} Column `of`: the text at a place in `t` */

/** @param {{t: number[], lines: import("./plot.js").Line[], unit: (value: number) => string}} props */
export default function Numbers({ t, lines, unit }) {
  const all = lines.flatMap(({ name, values, max }) => [{ name, values }, ...(max ? [{ name: `most ${name}`, values: max }] : [])]);
  return html`<${NumberTable} t=${t} columns=${all.map(({ name, values }) => ({ name, of: (/** @type {number} */ at) => shown(values[at], unit) }))} />`;
}

/** @param {{t: number[], columns: Column[]}} props `t` in seconds */
export function NumberTable({ t, columns }) {
  const [most, setMost] = useState(ROWS);
  const rows = t.map((_, at) => at).reverse().slice(0, most);
  return html`<div class="table-box" tabindex="0"><table class="table">
    <thead><tr><th scope="col">Time</th>${columns.map(({ name }) => html`<th scope="col" class="num" key=${name}>${name}</th>`)}</tr></thead>
    <tbody>${rows.map((at) => html`<tr key=${t[at]}><td>${dateTime(t[at] * 1000, { utc: utc.value })}</td>${columns.map(({ name, of }) => html`<td class="num" key=${name}>${of(at)}</td>`)}</tr>`)}</tbody>
  </table></div>${t.length > most && html`<${Button} kind="small" onClick=${() => setMost(Infinity)}>${count(t.length - most)} more<//>`}`;
}
