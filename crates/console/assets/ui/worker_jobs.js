// The jobs of one worker as bars on a time axis: one lane for each that ran concurrently.
import { html } from "../dom.js";
import { count, dateTime, duration, moment } from "../format.js";
import { ENDED, JOB_STATES } from "../icons.js";
import { endpointPath, href } from "../router.js";
import { utc } from "../prefs.js";
import { now, refresh, useRead } from "../store.js";
import { Card, Failed, Loading } from "./card.js";
import { JobTable } from "./job_table.js";

const JOBS_MAX = 100;
const READ_MS = 5000;
/** Most jobs in the table below. */
const SHOWN = 10;

/** @typedef {{job: any, from: number, to: number, lane: number}} Bar times in ms */

/** The bars of jobs, each in the first lane that is free. @param {any[]} jobs @param {number} at the present time, in ms @returns {Bar[]} */
function barsOf(jobs, at) {
  const began = jobs.map((job) => ({ job, from: moment(job.startedAt) })).filter(({ from }) => from !== null);
  began.sort((a, b) => Number(a.from) - Number(b.from));
  /** When each lane is free, in ms. @type {number[]} */
  const free = [];
  return began.map(({ job, from }) => {
    const start = Number(from);
    const to = Math.max(start, ENDED.includes(job.status) ? start + (job.executionTime ?? 0) : at);
    const found = free.findIndex((until) => until <= start);
    const lane = found < 0 ? free.length : found;
    free[lane] = to;
    return { job, from: start, to, lane };
  });
}

/** @param {{endpoint: Endpoint, worker: WorkerRecord}} props */
export function WorkerJobs({ endpoint, worker }) {
  const path = `/v2/${encodeURIComponent(endpoint.id)}/requests?worker=${encodeURIComponent(worker.id)}&limit=${JOBS_MAX}`;
  const { data, error } = useRead(path, worker.status === "EXITED" ? Infinity : READ_MS);
  if (error && !data) return html`<${Card} title="Jobs"><${Failed} error=${error} onRetry=${() => refresh(path)} /><//>`;
  if (!data) return html`<${Card} title="Jobs"><${Loading} rows=${2} /><//>`;
  const bars = barsOf(data.requests, now.value);
  if (bars.length === 0) return html`<${Card} title="Jobs"><p class="dim">${data.complete ? "It has no job that is kept." : "None of its jobs was found yet."}</p><//>`;
  const [from, to] = [Math.min(...bars.map((bar) => bar.from)), Math.max(...bars.map((bar) => bar.to), bars[0].from + 1)];
  const lanes = Math.max(...bars.map(({ lane }) => lane)) + 1;
  const place = (/** @type {number} */ at) => ((at - from) / (to - from)) * 100;
  const time = (/** @type {number} */ at) => dateTime(at, { utc: utc.value }).slice(11);
  return html`<${Card} title="Jobs" note=${data.complete ? count(bars.length) : `the newest ${count(bars.length)}`} actions=${html`<a class="button quiet small" href=${href(`${endpointPath(endpoint)}/requests?${new URLSearchParams({ q: `worker:${worker.id}` })}`)}>All its requests</a>`}>
    <div class="worker-jobs" role="img" aria-label=${`${count(bars.length)} jobs from ${time(from)} to ${time(to)}, ${count(lanes)} at a time at most`} style=${{ height: `${lanes * 18}px` }}>${bars.map(({ job, from: start, to: end, lane }) => html`<i key=${job.id} class=${`ground tone-${JOB_STATES[job.status].tone}`} title=${`${job.id}\n${JOB_STATES[job.status].word}, ${time(start)}, ${duration(end - start)}`} style=${{ left: `min(${place(start)}%, calc(100% - 4px))`, width: `${place(end) - place(start)}%`, top: `${lane * 18}px` }}></i>`)}</div>
    <p class="worker-axis dim"><span>${time(from)}</span><span>${time((from + to) / 2)}</span><span>${time(to)}</span></p>
    <${JobTable} endpoint=${endpoint} jobs=${data.requests.slice(0, SHOWN)} />
  <//>`;
}
