// The life of a job as bars on one time axis.
import { html } from "../dom.js";
import { count, duration, moment, timeOfId } from "../format.js";
import { ENDED, JOB_STATES } from "../icons.js";
import { now } from "../store.js";
import { Card } from "./card.js";
import { LAST_LINES } from "./failure.js";
import { Moment } from "./time.js";
import { WorkerLink } from "./worker_link.js";

/**
 * @typedef {{id: string, name: string, worker?: string, tone: string, from: number, to: number, note?: any, isAfter?: boolean, marks?: number[], isCut?: boolean}} Bar
 *   `id`: the same for as long as the job is shown · `worker`: on which it ran · `isAfter`: it is of what follows the end · `marks`: moments in place of a bar · `isCut`: it may end beyond the axis
 */

/** The share of the axis that is free for what goes on after all else. */
const BEYOND = 0.12;

const ENDS = /** @type {Record<string, string>} */ ({ completed: "completed", failed: "failed", timedOut: "timedout", cancelled: "cancelled", workerLost: "failed", drained: "cancelled", undelivered: "cancelled" });
const END_WORDS = /** @type {Record<string, string>} */ ({ workerLost: "worker lost", drained: "drained", undelivered: "not delivered", timedOut: "timed out" });

/** When the job was made, taken and ended, in ms; later ones are null before they are. @param {Job} job */
export function milestones(job) {
  const created = moment(job.createdAt) ?? timeOfId(job.id) ?? now.value;
  const hasStarted = job.delayTime !== undefined && job.status !== "IN_QUEUE";
  const started = hasStarted ? (moment(job.startedAt) ?? created + (job.delayTime ?? 0)) : null;
  const isEnded = ENDED.includes(job.status);
  const ended = isEnded ? (moment(job.completedAt) ?? (started ?? created) + (job.executionTime ?? 0)) : null;
  return { created, started, ended };
}

/** @param {Job} job @param {{count: number, firstAt: number | null}} stream @returns {Bar[]} */
function bars(job, stream) {
  const { created, started, ended } = milestones(job);
  const end = ended ?? now.value;
  /** @type {Bar[]} */
  const list = [];
  const attempts = job.attempts ?? [];
  // Of a job with many attempts, the first ones are not known.
  let queuedAt = attempts[0]?.n > 1 ? null : created;
  for (const attempt of attempts) {
    const takenAt = moment(attempt.takenAt) ?? created;
    if (queuedAt !== null) list.push({ id: `wait ${attempt.n}`, name: "Waited", tone: "queued", from: queuedAt, to: takenAt });
    queuedAt = moment(attempt.endedAt);
    const name = attempts.length > 1 || attempt.n > 1 ? `Try ${attempt.n}` : "Ran";
    const word = END_WORDS[attempt.end ?? ""];
    list.push({ id: `try ${attempt.n}`, name, worker: attempt.worker ?? undefined, tone: ENDS[attempt.end ?? ""] ?? "running", from: takenAt, to: queuedAt ?? end, note: [[word, attempt.reason?.split(LAST_LINES)[0]].filter(Boolean).join(": "), attempt.gpu].filter(Boolean).join(" · ") });
  }
  if (attempts.length === 0 || (queuedAt !== null && queuedAt < end)) list.push({ id: `wait ${(attempts[attempts.length - 1]?.n ?? job.retries ?? 0) + 1}`, name: "Waited", tone: "queued", from: queuedAt ?? created, to: started ?? end });
  if (job.coldStart) list.splice(1, 0, { id: "start", name: "Worker started", tone: "accent", from: moment(job.coldStart.requestedAt) ?? created, to: moment(job.coldStart.readyAt) ?? end });
  if (attempts.length === 0 && started !== null) {
    const tries = (job.retries ?? 0) + 1;
    list.push({ id: `try ${tries}`, name: ended ? "Ran" : "Runs", worker: job.workerId, tone: JOB_STATES[job.status].tone, from: started, to: end, note: tries > 1 ? `try ${tries}` : "" });
  }
  const first = moment(job.firstChunkAt) ?? stream.firstAt;
  if (stream.count > 0 && first !== null && started !== null) list.push({ id: "stream", name: `Streamed ${count(stream.count)} ${stream.count === 1 ? "chunk" : "chunks"}`, tone: "accent", from: Math.max(first, started), to: end });
  const marks = (job.progressAt ?? []).map(moment).filter((/** @type {number | null} */ at) => at !== null);
  if (marks.length > 0) list.push({ id: "progress", name: "Progress", tone: "accent", from: marks[0], to: marks[marks.length - 1], marks, note: `${count(marks.length)} ${marks.length === 1 ? "value" : "values"}, the last after ${duration(marks[marks.length - 1] - (started ?? created))}` });
  for (const [number, call] of (job.webhooks ?? []).entries()) {
    for (const { attempt, at, latencyMs, status } of call.attempts ?? []) {
      const from = moment(at) ?? end;
      list.push({ id: `call ${number} ${attempt}`, name: `Webhook call ${attempt}`, tone: status === 200 ? "completed" : "failed", from, to: from + latencyMs, note: status ? `HTTP ${status}` : "no answer", isAfter: true });
    }
  }
  const kept = moment(job.expiresAt ?? job.ttlAt);
  if (kept !== null && kept > end) list.push({ id: "kept", name: "Kept", tone: "cancelled", from: end, to: kept, note: html`until <${Moment} at=${kept} ms />${ended === null && ", when its ttl ends"}`, isAfter: true, isCut: true });
  return list;
}

/** @param {{endpoint: Endpoint, job: Job, stream: {count: number, firstAt: number | null}}} props */
export function Life({ endpoint, job, stream }) {
  const list = bars(job, stream);
  const from = Math.min(...list.map((bar) => bar.from));
  const last = Math.max(...list.filter(({ isCut }) => !isCut).map((bar) => bar.to), from + 1);
  // How long a job is kept is often a thousand times its life: the axis ends before.
  const to = Math.min(Math.max(...list.map((bar) => bar.to), last), last + (last - from) * BEYOND);
  const isEnded = ENDED.includes(job.status);
  const jobEnd = Math.max(...list.filter(({ isAfter }) => !isAfter).map((bar) => bar.to), from + 1);
  const place = (/** @type {number} */ at) => ((at - from) / (to - from)) * 100;
  return html`<${Card} title="Life" note=${`${duration(jobEnd - from)} ${isEnded ? "in all" : "so far"}`}>
    <div class="life" role="list">${list.map((bar) => html`<div class="life-row" role="listitem" key=${bar.id}>
      <span class="life-name" title=${bar.name}>${bar.name}${bar.worker && html` on <${WorkerLink} endpoint=${endpoint} id=${bar.worker} />`}</span>
      <span class="life-track">${(bar.marks ?? [bar.from]).map((begin, number) => html`<i key=${number} class=${`ground tone-${bar.tone} ${bar.to > to ? "cut" : ""}`} style=${{ left: `min(${place(begin)}%, calc(100% - 3px))`, width: bar.marks ? "0" : `${Math.max(0, place(Math.min(bar.to, to)) - place(begin))}%` }}></i>`)}</span>
      <span class="life-time mono">${bar.marks?.length === 1 ? "" : duration(bar.to - bar.from)}</span>
      ${bar.note && html`<span class="life-note">${bar.note}</span>`}
    </div>`)}</div>
  <//>`;
}
