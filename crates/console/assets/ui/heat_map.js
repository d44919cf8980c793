// How long jobs waited over time, as a map: a column for each step, a row for each length of the wait, darker where more jobs were.
import { html, useEffect, useRef, useState } from "../dom.js";
import { coarse, count, dateTime, duration } from "../format.js";
import { isDark, theme, utc } from "../prefs.js";
import { Button } from "./button.js";
import { Card } from "./card.js";
import { NumberTable } from "./numbers.js";
import { HEIGHT, tick, token } from "./plot.js";

/** @typedef {[number, number][]} Cells the longest time of a cell in ms, and its jobs */

/** Two rows a decade: the first to 10 ms, the last from 1 000 s on. */
const ROWS = 12;
/** The rows whose upper ends have a label. */
const LABELLED = [0, 2, 4, 6, 8, 10];
const MINUTE_MS = 60000;
const LEFT = 66;
const BOTTOM = 26;
/** The faintest shade of a cell with a job, of 1. */
const FAINTEST = 0.14;

/** @param {number} ms the longest time of a cell */
const rowOf = (ms) => Math.min(ROWS - 1, Math.max(0, Math.ceil(Math.log10(Math.max(1, ms)) * 2 - 0.001) - 2));

/** The longest wait of a row, in ms. @param {number} row */
const endOf = (row) => Math.round(10 ** ((row + 2) / 2));

/** @param {number} row */
const nameOf = (row) => (row === 0 ? `up to ${duration(endOf(0))}` : row === ROWS - 1 ? `over ${duration(endOf(row - 1))}` : `${duration(endOf(row - 1))} to ${duration(endOf(row))}`);

/** The jobs of each row in one step; null where nothing is known. @param {Cells | null} cells */
function rowsOf(cells) {
  if (!cells) return null;
  const rows = new Array(ROWS).fill(0);
  for (const [ms, jobs] of cells) rows[rowOf(ms)] += jobs;
  return rows;
}

/** @param {{title: string, t: number[], cells: (Cells | null)[]}} props `t` in seconds */
export default function HeatMap({ title, t, cells }) {
  const [isTable, setTable] = useState(false);
  const steps = cells.map(rowsOf);
  const isEmpty = steps.every((rows) => !rows || rows.every((/** @type {number} */ jobs) => jobs === 0));
  const actions = html`<span class="legend"><span><i class="ground mark tone-accent faint"></i>few jobs</span><span><i class="ground mark tone-accent"></i>many</span></span><${Button} kind="quiet small" label=${isTable ? `Show ${title} as a map` : `Show ${title} as a table`} onClick=${() => setTable(!isTable)}>${isTable ? "Map" : "Table"}<//>`;
  return html`<${Card} title=${title} actions=${actions}>${isEmpty ? html`<p class="chart-empty dim">No job was delivered in this time range.</p>` : isTable ? html`<${Numbers} t=${t} steps=${steps} />` : html`<${Drawn} title=${title} t=${t} steps=${steps} />`}<//>`;
}

/** @param {{title: string, t: number[], steps: (number[] | null)[]}} props */
function Drawn({ title, t, steps }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [at, setAt] = useState(/** @type {{step: number, row: number} | null} */ (null));
  const isNight = isDark();
  useEffect(() => {
    const node = canvas.current;
    if (!node) return undefined;
    const resized = new ResizeObserver(() => draw(node, t, steps));
    resized.observe(node);
    return () => resized.disconnect();
  }, [isNight, theme.value, utc.value, t[0], t.at(-1), t.length]);
  const point = (/** @type {PointerEvent} */ event) => {
    const node = /** @type {HTMLCanvasElement} */ (canvas.current);
    const step = Math.floor(((event.offsetX - LEFT) / (node.clientWidth - LEFT)) * t.length);
    const row = ROWS - 1 - Math.floor((event.offsetY / (HEIGHT - BOTTOM)) * ROWS);
    setAt(step >= 0 && step < t.length && row >= 0 && row < ROWS ? { step, row } : null);
  };
  const most = busiest(steps);
  return html`<div class="plot-box"><canvas class="heat-map" ref=${canvas} role="img" aria-label=${`${title}: most jobs waited ${nameOf(most)}`} onPointerMove=${point} onPointerLeave=${() => setAt(null)}></canvas>
    <p class="plot-values" aria-hidden="true">${at && html`<span>${dateTime(t[at.step] * 1000, { utc: utc.value }).slice(5)}</span><span>${nameOf(at.row)} <b>${steps[at.step] ? count(steps[at.step]?.[at.row]) : "–"}</b></span>`}</p></div>`;
}

/** The row with the most jobs. @param {(number[] | null)[]} steps */
function busiest(steps) {
  const sums = Array.from({ length: ROWS }, (_, row) => steps.reduce((sum, rows) => sum + (rows?.[row] ?? 0), 0));
  return sums.indexOf(Math.max(...sums));
}

/** @param {HTMLCanvasElement} node @param {number[]} t @param {(number[] | null)[]} steps */
function draw(node, t, steps) {
  const scale = devicePixelRatio;
  [node.width, node.height] = [Math.round(node.clientWidth * scale), Math.round(HEIGHT * scale)];
  const ctx = node.getContext("2d");
  if (!ctx) return;
  ctx.scale(scale, scale);
  const [width, height] = [node.clientWidth - LEFT, HEIGHT - BOTTOM];
  const [wide, tall] = [width / t.length, height / ROWS];
  const most = Math.max(1, ...steps.flatMap((rows) => rows ?? []));
  ctx.fillStyle = token("accent");
  steps.forEach((rows, step) => rows?.forEach((jobs, row) => {
    if (jobs === 0) return;
    ctx.globalAlpha = FAINTEST + (1 - FAINTEST) * Math.sqrt(jobs / most);
    ctx.fillRect(LEFT + step * wide, (ROWS - 1 - row) * tall + 0.5, Math.max(1, wide), tall - 1);
  }));
  ctx.globalAlpha = 1;
  ctx.fillStyle = token("ink-3");
  ctx.font = "11px Inter, sans-serif";
  ctx.textAlign = "right";
  for (const row of LABELLED) ctx.fillText(endOf(row) < MINUTE_MS ? duration(endOf(row)) : coarse(endOf(row)), LEFT - 8, (ROWS - 1 - row) * tall + 4);
  ctx.textAlign = "center";
  const ticks = Math.max(2, Math.floor(width / 110));
  for (let place = 1; place < ticks; place += 1) {
    const step = Math.round((place / ticks) * t.length);
    if (t[step] !== undefined) ctx.fillText(tick(t[step], (t.at(-1) ?? 0) - t[0]), LEFT + step * wide, HEIGHT - 8);
  }
}

/** A table with a column for each row that has a job. @param {{t: number[], steps: (number[] | null)[]}} props */
function Numbers({ t, steps }) {
  const rows = Array.from({ length: ROWS }, (_, row) => row).filter((row) => steps.some((one) => one?.[row]));
  return html`<${NumberTable} t=${t} columns=${rows.map((row) => ({ name: nameOf(row), of: (/** @type {number} */ at) => (steps[at] ? count(steps[at]?.[row]) : "–") }))} />`;
}
