// The charts of a page, of what the server recorded: of one endpoint, or of all.
import { html } from "../dom.js";
import { count, dateTime, duration, percent, rate, size } from "../format.js";
import { utc } from "../prefs.js";
import { perSecond, zoom } from "../timeline.js";
import { Failed } from "./card.js";
import { Chart } from "./chart.js";
import { Later } from "./later.js";
import { RangePicker } from "./range_picker.js";
import { refresh } from "../store.js";

/** @typedef {import("../timeline.js").History} History */
/** @typedef {{title: string, unit: (value: number) => string, lines: (history: History) => import("./plot.js").Line[]}} Kind */

const ENDED = ["completed", "failed", "timedOut"];

/** The series that all charts need. */
export const SERIES = {
  jobs: ["queued", "running", ...ENDED, "delayP50Ms", "delayP95Ms"],
  endpoint: ["runP50Ms", "runP95Ms", "workersIdle", "workersRunning", "workersStarting", "starts", "startP50Ms", "startP95Ms", "submitted", "retried"],
  metrics: ["cancelled", "refused", "delayP90Ms", "delayP99Ms", "runP90Ms", "runP99Ms", "workersThrottled", "busyMs", "paidMs", "gpuMs", "bytesIn", "bytesOut", "chunks"],
};

/** @param {History} history @param {string} name */
const sum = (history, name) => perSecond(history, name);

/** Failed and timed out, a second. @param {History} history */
const failures = (history) => {
  const timedOut = sum(history, "timedOut");
  return sum(history, "failed").map((value, at) => (value === null ? null : value + (timedOut[at] ?? 0)));
};

/** @param {number} value from 0 to 1 */
const share = (value) => `${percent(value)} %`;

/** @type {Record<string, Kind>} */
const KINDS = {
  jobs: {
    title: "Jobs",
    unit: count,
    lines: ({ series }) => [
      { name: "waiting", tone: "queued", values: series.queued, isStepped: true, isFilled: true },
      { name: "running", tone: "running", values: series.running, isStepped: true },
    ],
  },
  ended: {
    title: "Ended a second",
    unit: rate,
    lines: (history) => [
      { name: "completed", tone: "completed", values: sum(history, "completed"), isFilled: true },
      { name: "failed", tone: "failed", values: failures(history) },
    ],
  },
  delay: { title: "Delay", unit: duration, lines: ({ series }) => half("queued", series.delayP50Ms, series.delayP95Ms) },
  run: { title: "Run time", unit: duration, lines: ({ series }) => half("running", series.runP50Ms, series.runP95Ms) },
  workers: {
    title: "Workers",
    unit: count,
    lines: ({ series }) => [
      { name: "running", tone: "running", values: series.workersRunning, isStepped: true, isFilled: true },
      { name: "idle", tone: "completed", values: series.workersIdle, isStepped: true },
      { name: "starting", tone: "queued", values: series.workersStarting, isStepped: true },
    ],
  },
  delays: { title: "Delay", unit: duration, lines: ({ series }) => percentiles("delay", series) },
  runs: { title: "Run time", unit: duration, lines: ({ series }) => percentiles("run", series) },
  submitted: {
    title: "Submitted a second",
    unit: rate,
    lines: (history) => [
      { name: "accepted", tone: "accent", values: sum(history, "submitted"), isFilled: true },
      { name: "refused", tone: "failed", values: sum(history, "refused") },
    ],
  },
  bad: {
    title: "Not completed",
    unit: count,
    lines: ({ series }) => [
      { name: "failed", tone: "failed", values: series.failed },
      { name: "timed out", tone: "timedout", values: series.timedOut },
      { name: "cancelled", tone: "cancelled", values: series.cancelled },
      { name: "retried", tone: "queued", values: series.retried, isFaint: true },
    ],
  },
  busy: { title: "Busy part of the workers' time", unit: share, lines: ({ series }) => [{ name: "busy", tone: "running", values: ratio(series.busyMs, series.paidMs), isFilled: true }] },
  bytes: {
    title: "Bytes a second",
    unit: size,
    lines: (history) => [
      { name: "in", tone: "accent", values: sum(history, "bytesIn").map(whole) },
      { name: "out", tone: "completed", values: sum(history, "bytesOut").map(whole) },
    ],
  },
  chunks: { title: "Stream chunks a second", unit: rate, lines: (history) => [{ name: "chunks", tone: "running", values: sum(history, "chunks"), isFilled: true }] },
  gpus: { title: "GPUs of workers", unit: rate, lines: ({ series, stepMs }) => [{ name: "held", tone: "accent", values: series.gpuMs.map((value) => (value === null ? null : value / stepMs)), isFilled: true }] },
  starts: { title: "Cold starts", unit: duration, lines: ({ series }) => half("accent", series.startP50Ms, series.startP95Ms) },
};

/** Four percentiles of a time. @param {string} name @param {Record<string, (number | null)[]>} series */
const percentiles = (name, series) => [
  { name: "p50", tone: "completed", values: series[`${name}P50Ms`] },
  { name: "p90", tone: "running", values: series[`${name}P90Ms`] },
  { name: "p95", tone: "queued", values: series[`${name}P95Ms`] },
  { name: "p99", tone: "failed", values: series[`${name}P99Ms`], isFaint: true },
];

/** @param {number | null} value */
const whole = (value) => (value === null ? null : Math.round(value));

/** One series divided by another; unknown where the other is 0. @param {(number | null)[]} part @param {(number | null)[]} of */
const ratio = (part, of) => part.map((value, at) => (value === null || !of[at] ? null : value / of[at]));

/** A median, and the 95th percentile above it. @param {string} tone @param {(number | null)[]} p50 @param {(number | null)[]} p95 */
const half = (tone, p50, p95) => [
  { name: "p50", tone, values: p50 },
  { name: "p95", tone, values: p95, isFaint: true },
];

/**
 * @param {{history: {data: History | undefined, error: any, path: string}, kinds: string[], hasMap?: boolean, more?: any}} props
 *   `hasMap`: the delays are shown as a map, too · `more` are further charts of the page's own
 */
export function HistoryCharts({ history, kinds, hasMap = false, more = null }) {
  const { data, error, path } = history;
  if (error && !data) return html`<${RangePicker} /><${Failed} error=${error} onRetry=${() => refresh(path)} />`;
  if (!data) return html`<${RangePicker} /><div class="two">${kinds.map((kind) => html`<${Chart} key=${kind} title=${KINDS[kind].title} t=${[]} lines=${[]} empty=" " />`)}</div>`;
  const t = data.t.map((at) => at / 1000);
  const span = /** @type {[number, number]} */ ([Date.parse(data.from) / 1000, Date.parse(data.to) / 1000]);
  const marks = data.marks.map(({ at, kind, text }) => ({ at: Date.parse(at) / 1000, text: kind === "start" ? "start" : text.replace("version ", "v") }));
  const missing = data.missingBefore && dateTime(Date.parse(data.missingBefore), { utc: utc.value }).slice(0, 16);
  const isAll = data.missingBefore === data.to;
  return html`<${RangePicker} note=${isAll ? "No data in this time range." : missing ? `No data before ${missing}.` : `Each point is ${duration(data.stepMs)}.`} />
    <div class="two">${kinds.map((kind) => html`<${Chart} key=${kind} title=${KINDS[kind].title} t=${t} lines=${KINDS[kind].lines(data)} unit=${KINDS[kind].unit} span=${span} marks=${marks}
      onZoom=${(/** @type {number} */ from, /** @type {number} */ to) => zoom(from * 1000, to * 1000)} empty=${isAll ? "No data in this time range." : "Nothing of this kind in this time range."} />`)}${more}${hasMap && html`<${Later} address="./ui/heat_map.js" props=${{ title: "How long jobs waited", t, cells: data.series.delayCells ?? [] }} />`}</div>`;
}
