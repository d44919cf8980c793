// The charts that only the page of metrics has.
import { count, duration, percent, rate, size } from "../format.js";
import { perSecond } from "../timeline.js";

/** @typedef {import("./history_charts.js").Kind} Kind */

/** The series that these charts need. */
export const METRICS_SERIES = ["cancelled", "refused", "delayP90Ms", "delayP99Ms", "runP90Ms", "runP99Ms", "workersThrottled", "busyMs", "paidMs", "gpuMs", "bytesIn", "bytesOut", "chunks", "webhooksDelivered", "webhooksRetried", "webhooksFailed"];

/** @param {number} value from 0 to 1 */
const share = (value) => `${percent(value)} %`;

/** @type {Record<string, Kind>} */
export const METRICS_KINDS = {
  delays: { title: "Delay", unit: duration, lines: ({ series }) => percentiles("delay", series) },
  runs: { title: "Run time", unit: duration, lines: ({ series }) => percentiles("run", series) },
  submitted: {
    title: "Submitted a second",
    unit: rate,
    lines: (history) => [
      { name: "accepted", tone: "accent", values: perSecond(history, "submitted"), isFilled: true },
      { name: "refused", tone: "failed", values: perSecond(history, "refused") },
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
      { name: "in", tone: "accent", values: perSecond(history, "bytesIn").map(whole) },
      { name: "out", tone: "completed", values: perSecond(history, "bytesOut").map(whole) },
    ],
  },
  chunks: { title: "Stream chunks a second", unit: rate, lines: (history) => [{ name: "chunks", tone: "running", values: perSecond(history, "chunks"), isFilled: true }] },
  webhooks: {
    title: "Webhook calls",
    unit: count,
    lines: ({ series }) => [
      { name: "delivered", tone: "completed", values: series.webhooksDelivered, isFilled: true },
      { name: "tried again", tone: "queued", values: series.webhooksRetried },
      { name: "given up", tone: "failed", values: series.webhooksFailed },
    ],
  },
  gpus: { title: "GPUs of workers", unit: rate, lines: ({ series, stepMs }) => [{ name: "held", tone: "accent", values: series.gpuMs.map((value) => (value === null ? null : value / stepMs)), isFilled: true }] },
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
