// What this browser saw of each endpoint's counts since the page was opened: the numbers behind rates.
import { signal } from "./dom.js";
import { connection, whenTold } from "./live.js";
import * as store from "./store.js";

/** @typedef {{at: number, completed: number, failed: number}} Sample */

/** They reach back farther than a rate. */
const SAMPLES_MAX = 10;
const SAMPLE_MS = 2000;
/** A rate is the mean over this time. */
const RATE_MS = 10000;

/** @type {Map<string, Sample[]>} */
const samples = new Map();

/** When samples were taken last. */
const sampled = signal(0);

/** What was read or told of each endpoint last, and when. @type {Map<string, {health: Health, readAt: number}>} */
const latest = new Map();

/** When the oldest waiting job of each endpoint was submitted, in ms, as it was told last. @type {Map<string, number | null>} */
export const oldest = new Map();

/** Takes a sample of each endpoint every 2 s: also while nothing happens, a rate goes down. Without events, only of what was read since the last one. */
export function start() {
  // What happened without this tab being told is in none of the counts until they are read again.
  whenTold((name, told) => {
    if (name === "again") [latest, oldest].forEach((map) => map.clear());
    if (told?.oldestAt !== undefined) oldest.set(told.endpoint, told.oldestAt);
  });
  store.whenRead((path, health, readAt) => {
    const found = path.match(/^\/v2\/([^/]+)\/health$/);
    if (!found) return;
    const endpoint = decodeURIComponent(found[1]);
    latest.set(endpoint, { health, readAt });
    if (!samples.has(endpoint)) add(endpoint, health);
  });
  setInterval(() => {
    if (document.hidden) return;
    latest.forEach(({ health, readAt }, endpoint) => (connection.peek().state === "live" || readAt > sampled.peek()) && add(endpoint, health));
    sampled.value = Date.now();
  }, SAMPLE_MS);
}

/** @param {string} endpoint @param {Health} health */
function add(endpoint, health) {
  const list = samples.get(endpoint) ?? [];
  samples.set(endpoint, list);
  const { completed, failed } = health.lb ? ofRequests(health.lb.requests) : health.jobs;
  list.push({ at: Date.now(), completed, failed });
  if (list.length > SAMPLES_MAX) list.shift();
}

/** Forwarded requests: a status 5xx and a refusal of the server are failures. @param {Record<string, number>} requests */
const ofRequests = (requests) => ({
  completed: requests["1xx"] + requests["2xx"] + requests["3xx"] + requests["4xx"],
  failed: requests["5xx"] + requests.refused,
});

/** @param {string} endpoint */
const samplesOf = (endpoint) => samples.get(endpoint) ?? [];

/**
 * Jobs, or forwarded requests, that ended in a second, over the last 10 s; null before there are two samples, and while there are no new ones.
 * @param {string} endpoint
 * @returns {{completed: number, failed: number} | null}
 */
export function rates(endpoint) {
  void sampled.value;
  const list = samplesOf(endpoint);
  const last = list.at(-1);
  const first = list.findLast((sample) => last && last.at - sample.at >= RATE_MS) ?? list[0];
  if (!last || !first || last.at - first.at < 1000 || Date.now() - last.at > RATE_MS) return null;
  const seconds = (last.at - first.at) / 1000;
  return {
    completed: Math.max(0, last.completed - first.completed) / seconds,
    failed: Math.max(0, last.failed - first.failed) / seconds,
  };
}
