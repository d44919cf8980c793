// The charts that only the page of metrics has.
import { count, duration, percent, rate, size } from "../format.js";
import { perSecond } from "../timeline.js";

/** @typedef {import("./history_charts.js").Kind} Kind */

/** The series that these charts need. */
export const METRICS_SERIES = [
  "failedHandler", "failedWorkerLost", "failedSize", "failedDamaged", "delivered", "metColdStart",
  "limitedRun", "limitedRunsync", "limitedStatus", "limitedStream", "limitedCancel", "limitedPurgeQueue", "limitedOpenai", "limitedRequests", "limitedWebhooks", "limitedLb",
  "cancelled", "refused", "delayP90Ms", "delayP99Ms", "runP90Ms", "runP99Ms", "busyMs", "paidMs", "gpuMs", "gpuReadMs", "gpuBusyMs", "bytesIn", "bytesOut", "chunks", "webhooksDelivered", "webhooksRetried", "webhooksFailed",
];

/** Why jobs failed: the name, the series, the tone. @type {[string, string, string][]} */
export const FAILURE_KINDS = [
  ["error of the handler", "failedHandler", "failed"],
  ["timed out", "timedOut", "timedout"],
  ["worker lost", "failedWorkerLost", "cancelled"],
  ["too large", "failedSize", "queued"],
  ["damaged", "failedDamaged", "accent"],
];

/** The operations whose requests have limits, and the queue, which refuses submits when it is full. @type {[string, string, string][]} */
export const LIMITED = [
  ["run", "limitedRun", "accent"],
  ["runsync", "limitedRunsync", "running"],
  ["queue full", "refused", "failed"],
  ["status", "limitedStatus", "queued"],
  ["stream", "limitedStream", "timedout"],
  ["openai", "limitedOpenai", "completed"],
  ["cancel", "limitedCancel", "cancelled"],
  ["purge-queue", "limitedPurgeQueue", "cancelled"],
  ["requests", "limitedRequests", "queued"],
  ["webhooks", "limitedWebhooks", "timedout"],
  ["forwarded", "limitedLb", "accent"],
];

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
  kinds: { title: "Failures by kind", unit: count, lines: ({ series }) => [...happened(series, FAILURE_KINDS), ...unknownKinds(series)] },
  limited: { title: "Refused, by operation", unit: count, lines: ({ series }) => happened(series, LIMITED) },
  ready: { title: "Workers that became ready", unit: count, lines: ({ series }) => [{ name: "cold starts", tone: "accent", values: series.starts, isStepped: true, isFilled: true }] },
  cold: { title: "Jobs that met a cold start", unit: share, lines: ({ series }) => [{ name: "of those delivered", tone: "accent", values: ratio(series.metColdStart, series.delivered), isFilled: true }] },
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
  gpuUse: {
    title: "GPU use",
    unit: share,
    lines: ({ series }) => [{ name: "of the workers' GPUs", tone: "running", values: ratio(series.gpuBusyMs, series.gpuReadMs), isFilled: true }],
    isShown: ({ series }) => series.gpuMs.some(Boolean),
    empty: "Nothing says how busy these GPUs were in this time range.",
  },
};

/** Four percentiles of a time. @param {string} name @param {Record<string, (number | null)[]>} series */
const percentiles = (name, series) => [
  { name: "p50", tone: "completed", values: series[`${name}P50Ms`] },
  { name: "p90", tone: "running", values: series[`${name}P90Ms`] },
  { name: "p95", tone: "queued", values: series[`${name}P95Ms`] },
  { name: "p99", tone: "failed", values: series[`${name}P99Ms`], isFaint: true },
];

/** The lines of what happened; without any, the first one. @param {Record<string, (number | null)[]>} series @param {[string, string, string][]} named */
function happened(series, named) {
  const some = named.filter(([, name]) => series[name].some(Boolean));
  return (some.length > 0 ? some : named.slice(0, 1)).map(([name, of, tone]) => ({ name, tone, values: series[of] }));
}

/** Failures of which an older version of the server recorded no kind. @param {Record<string, (number | null)[]>} series */
function unknownKinds(series) {
  const named = FAILURE_KINDS.map(([, name]) => series[name]).filter((values) => values !== series.timedOut);
  const values = series.failed.map((failed, at) => (failed === null ? null : Math.max(0, failed - named.reduce((sum, one) => sum + (one[at] ?? 0), 0))));
  return values.some(Boolean) ? [{ name: "kind not recorded", tone: "cancelled", values, isFaint: true }] : [];
}

/** @param {number | null} value */
const whole = (value) => (value === null ? null : Math.round(value));

/** One series divided by another; unknown where the other is 0. @param {(number | null)[]} part @param {(number | null)[]} of */
const ratio = (part, of) => part.map((value, at) => (value === null || !of[at] ? null : value / of[at]));
