// The failures of an endpoint in groups: those of the same kind and place are one.
import { html } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { count, duration, shortId, visible } from "../format.js";
import { refresh, useReads } from "../store.js";
import { Card, Empty, Failed, Loading } from "./card.js";
import { Sparkline } from "./chart.js";
import { failureOf } from "./failure.js";
import { Age } from "./time.js";

const READ_MS = 15000;
/** Failed jobs that are read, of each state. */
const READ_MAX = 200;
const GROUPS_MAX = 20;
const BARS = 24;
const STATES = ["FAILED", "TIMED_OUT"];

/** @typedef {{key: string, title: string, message: string, place: string, jobs: any[]}} Group */

/** @param {string} endpoint @param {string} state */
const path = (endpoint, state) => `/v2/${encodeURIComponent(endpoint)}/requests?status=${state}&limit=${READ_MAX}`;

/** The last place of a traceback, such as `handler.py:12`. @param {string} trace */
const placeOf = (trace) => {
  const last = [...trace.matchAll(/File "([^"]+)", line (\d+)/g)].at(-1);
  return last ? `${last[1]}:${last[2]}` : "";
};

/** A message without what differs from job to job: numbers and ids. @param {string} message */
const withoutNumbers = (message) => message.replace(/\b[0-9a-f]{8}-[0-9a-f-]{20,}\b/gi, "#").replace(/\b(?:0x)?[0-9a-f]*\d[0-9a-f]*\b/gi, "#");

/** The largest group first. @param {any[]} jobs @returns {Group[]} */
export function groups(jobs) {
  /** @type {Map<string, Group>} */
  const found = new Map();
  for (const job of jobs) {
    const { title, message, trace } = failureOf(job.error ?? "", job.status);
    const place = placeOf(trace);
    const first = message.split("\n")[0].slice(0, 200);
    const key = [title, place, withoutNumbers(first)].join("\n");
    const group = found.get(key) ?? { key, title, message: first, place, jobs: [] };
    group.jobs.push(job);
    found.set(key, group);
  }
  return [...found.values()].sort((a, b) => b.jobs.length - a.jobs.length).slice(0, GROUPS_MAX);
}

/** How many jobs of a group ended in each part of the time of all. @param {Group} group @param {number} from @param {number} to */
function bars(group, from, to) {
  const numbers = new Array(BARS).fill(0);
  for (const job of group.jobs) {
    const at = Math.floor(((Date.parse(job.completedAt) - from) / Math.max(1, to - from)) * BARS);
    numbers[Math.min(BARS - 1, Math.max(0, at))] += 1;
  }
  return numbers;
}

/** @param {{endpoint: any, hasFailures: boolean}} props */
export function Failures({ endpoint, hasFailures }) {
  const reads = useReads(hasFailures ? STATES.map((state) => path(endpoint.id, state)) : [], READ_MS);
  if (!hasFailures) return null;
  const pages = STATES.map((state) => reads.get(path(endpoint.id, state)));
  const failed = pages.find((page) => page?.error && !page.data);
  if (failed) return html`<${Card} title="Failures"><${Failed} error=${/** @type {any} */ (failed.error)} onRetry=${() => refresh(`/v2/${endpoint.id}/requests`)} /><//>`;
  if (pages.some((page) => !page?.data)) return html`<${Card} title="Failures" flush><${Loading} rows=${2} /><//>`;
  const jobs = pages.flatMap((page) => page?.data.requests ?? []);
  if (jobs.length === 0) return html`<${Card} title="Failures" flush><${Empty}><p>No failed job is kept any more. Failed jobs are kept ${duration(endpoint.resultRetentionMs)}.</p><//><//>`;
  const times = jobs.map((job) => Date.parse(job.completedAt)).filter((at) => !Number.isNaN(at));
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const isCut = pages.some((page) => page?.data.requests.length === READ_MAX);
  return html`<${Card} title="Failures" note=${`${isCut ? "the newest " : ""}${count(jobs.length)} that are kept, in groups`} flush>
    <ul class="failure-groups">${groups(jobs).map((group) => html`<${Row} key=${group.key} endpoint=${endpoint} group=${group} values=${bars(group, from, to)} />`)}</ul>
  <//>`;
}

/** @param {{endpoint: any, group: Group, values: number[]}} props */
function Row({ endpoint, group, values }) {
  const newest = group.jobs.reduce((one, other) => (one.completedAt > other.completedAt ? one : other));
  return html`<li>
    <b class="failure-count">${count(group.jobs.length)}</b>
    <span class="failure-what"><span class="failure-title">${group.title}${group.place && html` <span class="mono dim">${group.place}</span>`}</span><span class="failure-message">${visible(group.message) || "without a message"}</span></span>
    <span class="failure-spark"><${Sparkline} values=${values} label=${`${group.jobs.length} failures over time`} /></span>
    <span class="dim failure-age"><${Age} at=${newest.completedAt} /></span>
    <a class="mono" href=${href(`${endpointPath(endpoint)}/requests/${newest.id}`)} title=${`The newest: ${newest.id}`}>${shortId(newest.id)}</a>
  </li>`;
}
