// What this browser saw of each endpoint's counts since the page was opened: the numbers behind rates and charts.
import { signal } from "./dom.js";
import * as store from "./store.js";

/** @typedef {{at: number, queued: number, running: number, completed: number, failed: number}} Sample */

const SAMPLES_MAX = 900;
const SAMPLE_MS = 2000;
/** A rate is the mean over this time. */
const RATE_MS = 10000;

/** @type {Map<string, Sample[]>} */
const samples = new Map();

/** Changes when a sample was added. */
export const sampled = signal(0);

/** Since when samples are taken. */
export const since = Date.now();

/** What was read or told of each endpoint last. @type {Map<string, any>} */
const latest = new Map();

/** Takes a sample of each endpoint every 2 s: also while nothing happens, a chart goes on. */
export function start() {
  store.whenRead((path, data) => {
    const found = path.match(/^\/v2\/([^/]+)\/health$/);
    if (!found) return;
    const endpoint = decodeURIComponent(found[1]);
    latest.set(endpoint, data);
    if (!samples.has(endpoint)) add(endpoint, data);
  });
  setInterval(() => {
    if (!document.hidden) latest.forEach((health, endpoint) => add(endpoint, health));
  }, SAMPLE_MS);
}

/** @param {string} endpoint @param {any} health */
function add(endpoint, health) {
  const list = samples.get(endpoint) ?? [];
  samples.set(endpoint, list);
  const { inQueue, inProgress, completed, failed } = health.jobs;
  list.push({ at: Date.now(), queued: inQueue, running: inProgress, completed, failed });
  if (list.length > SAMPLES_MAX) list.shift();
  sampled.value += 1;
}

/** @param {string} endpoint */
export const samplesOf = (endpoint) => samples.get(endpoint) ?? [];

/**
 * Jobs that ended in a second, over the last 10 s; null before there are two samples.
 * @param {string} endpoint
 * @returns {{completed: number, failed: number} | null}
 */
export function rates(endpoint) {
  void sampled.value;
  const list = samplesOf(endpoint);
  const last = list.at(-1);
  const first = list.findLast((sample) => last && last.at - sample.at >= RATE_MS) ?? list[0];
  if (!last || !first || last.at - first.at < 1000) return null;
  const seconds = (last.at - first.at) / 1000;
  return {
    completed: Math.max(0, last.completed - first.completed) / seconds,
    failed: Math.max(0, last.failed - first.failed) / seconds,
  };
}

/**
 * Columns for a chart: times in seconds, then the sum over endpoints of each series. Null where an endpoint has no sample.
 * @param {string[]} endpoints
 * @param {number} stepMs
 */
export function columns(endpoints, stepMs) {
  void sampled.value;
  const lists = endpoints.map(samplesOf).filter((list) => list.length > 0);
  const first = Math.min(...lists.map((list) => list[0].at));
  const last = Math.max(...lists.map((list) => list.at(-1)?.at ?? 0));
  const begin = Math.ceil(first / stepMs) * stepMs;
  /** @type {number[]} */
  const t = [];
  for (let at = begin; at <= last + stepMs; at += stepMs) t.push(at);
  const each = lists.map((list) => resampled(list, t));
  const sum = (/** @type {(row: Row) => number} */ of) =>
    t.map((_, at) => {
      const rows = each.map((rows) => rows[at]).filter((row) => row !== null);
      return rows.length === 0 ? null : rows.reduce((total, row) => total + of(row), 0);
    });
  return {
    t: t.map((at) => at / 1000),
    queued: sum((row) => row.queued),
    running: sum((row) => row.running),
    completed: sum((row) => row.completed),
    failed: sum((row) => row.failed),
  };
}

/** @typedef {{queued: number, running: number, completed: number, failed: number}} Row */

/**
 * The last sample before each time, with the rates since the step before.
 * @param {Sample[]} list
 * @param {number[]} times
 * @returns {(Row | null)[]}
 */
function resampled(list, times) {
  let next = 0;
  let previous = /** @type {{sample: Sample, time: number} | null} */ (null);
  return times.map((time) => {
    while (next < list.length && list[next].at <= time) next += 1;
    const sample = list[next - 1];
    if (!sample) return null;
    const since = previous?.sample ?? sample;
    const seconds = Math.max(0.001, (time - (previous?.time ?? time - 1000)) / 1000);
    previous = { sample, time };
    return {
      queued: sample.queued,
      running: sample.running,
      completed: Math.max(0, sample.completed - since.completed) / seconds,
      failed: Math.max(0, sample.failed - since.failed) / seconds,
    };
  });
}
