// The charts of a page, of what the server recorded: of one endpoint, or of all.
import { html } from "../dom.js";
import { count, dateTime, duration, rate } from "../format.js";
import { utc } from "../prefs.js";
import { perSecond, zoom } from "../timeline.js";
import { Failed, Loading } from "./card.js";
import { Chart } from "./chart.js";
import { Later } from "../load.js";
import { refresh } from "../store.js";

/** @typedef {import("../timeline.js").History} History */
/**
 * @typedef {{title: string, unit: (value: number) => string, lines: (history: History) => import("./plot.js").Line[],
 *   isShown?: (history: History) => boolean, empty?: string}} Kind
 *   `isShown`: whether the chart is there at all · `empty`: what is in place of lines
 */

const ENDED = ["completed", "failed", "timedOut"];

/** The series that these charts need. */
export const SERIES = {
  jobs: ["queued", "queuedMax", "running", "runningMax", ...ENDED, "delayP50Ms", "delayP95Ms"],
  endpoint: ["runP50Ms", "runP95Ms", "workersIdle", "workersRunning", "workersStarting", "starts", "startP50Ms", "startP95Ms", "submitted", "retried", "workersThrottled"],
};

const STACKED = { isStepped: true, isFilled: true, isStacked: true };

/** Failed and timed out, a second. @param {History} history */
const failures = (history) => {
  const timedOut = perSecond(history, "timedOut");
  return perSecond(history, "failed").map((value, at) => (value === null ? null : value + (timedOut[at] ?? 0)));
};

/** The charts of more than one page. @type {Record<string, Kind>} */
export const KINDS = {
  jobs: {
    title: "Jobs",
    unit: count,
    lines: ({ series }) => [
      { name: "waiting", tone: "queued", values: series.queued, max: series.queuedMax, isStepped: true, isFilled: true },
      { name: "running", tone: "running", values: series.running, max: series.runningMax, isStepped: true },
    ],
  },
  ended: {
    title: "Ended a second",
    unit: rate,
    lines: (history) => [
      { name: "completed", tone: "completed", values: perSecond(history, "completed"), isFilled: true },
      { name: "failed", tone: "failed", values: failures(history) },
    ],
  },
  delay: { title: "Delay", unit: duration, lines: ({ series }) => half("queued", series.delayP50Ms, series.delayP95Ms) },
  run: { title: "Run time", unit: duration, lines: ({ series }) => half("running", series.runP50Ms, series.runP95Ms) },
  workers: {
    title: "Workers",
    unit: count,
    lines: ({ series }) => [
      { name: "starting", tone: "queued", values: series.workersStarting, ...STACKED },
      { name: "idle", tone: "completed", values: series.workersIdle, ...STACKED },
      { name: "running", tone: "running", values: series.workersRunning, ...STACKED },
      ...(series.workersThrottled?.some(Boolean) ? [{ name: "waiting for room", tone: "timedout", values: series.workersThrottled, ...STACKED }] : []),
    ],
  },
  starts: { title: "Cold starts", unit: duration, lines: ({ series }) => half("accent", series.startP50Ms, series.startP95Ms) },
};

/** A median, and the 95th percentile above it. @param {string} tone @param {(number | null)[]} p50 @param {(number | null)[]} p95 */
export const half = (tone, p50, p95) => [
  { name: "p50", tone, values: p50 },
  { name: "p95", tone, values: p95, isFaint: true },
];

/**
 * @param {{history: {data: History | undefined, error: any, path: string}, kinds: Kind[], hasMap?: boolean, more?: any}} props
 *   `hasMap`: the delays are shown as a map, too · `more` are further charts of the page's own
 */
export function HistoryCharts({ history, kinds, hasMap = false, more = null }) {
  const { data, error, path } = history;
  if (error && !data) return html`<${Failed} what="The charts" error=${error} onRetry=${() => refresh(path)} />`;
  if (!data) return html`<p class="range-note"> </p><div class="two">${kinds.filter(({ isShown }) => !isShown).map(({ title }) => html`<${Chart} key=${title} title=${title} t=${[]} lines=${[]} empty=${html`<${Loading} rows=${3} />`} />`)}</div>`;
  const t = data.t.map((at) => at / 1000);
  const span = /** @type {[number, number]} */ ([Date.parse(data.from) / 1000, Date.parse(data.to) / 1000]);
  const marks = data.marks.map(({ at, kind, text }) => ({ at: Date.parse(at) / 1000, text: kind === "restart" ? "start" : text.replace("version ", "v") }));
  const missing = data.missingBefore && dateTime(Date.parse(data.missingBefore), { utc: utc.value }).slice(0, 16);
  const isAll = data.missingBefore === data.to;
  return html`<p class="range-note dim">${isAll ? "No data in this time range." : missing ? `No data before ${missing}.` : `Each point is ${duration(data.stepMs)}.`}</p>
    <div class="two">${kinds.filter(({ isShown }) => !isShown || isShown(data)).map(({ title, lines, unit, empty }) => html`<${Chart} key=${title} title=${title} t=${t} lines=${lines(data)} unit=${unit} span=${span} marks=${marks}
      onZoom=${(/** @type {number} */ from, /** @type {number} */ to) => zoom(from * 1000, to * 1000)} empty=${isAll ? "No data in this time range." : (empty ?? "Nothing of this kind in this time range.")} />`)}${more}${hasMap && html`<${Later} address="./ui/heat_map.js" props=${{ title: "How long jobs waited", t, cells: data.series.delayCells ?? [] }} />`}</div>`;
}
