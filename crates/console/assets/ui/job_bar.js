// How long a job waited, then ran: two bars on a square-root scale, so that 10 ms and 10 min are both seen.
import { html } from "../dom.js";
import { moment } from "../format.js";
import { JOB_STATES } from "../icons.js";
import { now } from "../store.js";

/** A bar of this time has the full width. */
const FULL_MS = 60000;

/** @param {number} ms */
const width = (ms) => Math.sqrt(Math.min(ms, FULL_MS) / FULL_MS) * 100;

/** Times of a job in ms, up to now for one that has not ended. @param {any} job */
export function timesOf(job) {
  const created = moment(job.createdAt) ?? now.value;
  const isQueued = job.status === "IN_QUEUE";
  const waited = isQueued ? Math.max(0, now.value - created) : (job.delayTime ?? 0);
  const started = moment(job.startedAt) ?? created + waited;
  const ran = job.status === "IN_PROGRESS" ? Math.max(job.executionTime ?? 0, now.value - started) : (job.executionTime ?? 0);
  return { waited, ran: isQueued ? 0 : ran };
}

/** @param {{job: any}} props */
export function JobBar({ job }) {
  const { waited, ran } = timesOf(job);
  const total = Math.max(width(waited) + width(ran), 100);
  const tone = JOB_STATES[job.status]?.tone ?? "cancelled";
  return html`<span class="job-bar" aria-hidden="true">
    <i class="ground tone-queued" style=${{ width: `${(width(waited) / total) * 100}%` }}></i>
    ${ran > 0 && html`<i class=${`ground tone-${tone}`} style=${{ width: `${(width(ran) / total) * 100}%` }}></i>`}
  </span>`;
}
