// A job as it lives: why it waits or failed, its life, its stream and its output. For its page and the playground.
import { html, useEffect, useLayoutEffect, useMemo, useState } from "../dom.js";
import { JobFollow } from "../job_follow.js";
import { outputOf } from "../job_record.js";
import { ENDED, JOB_STATES } from "../icons.js";
import { Ahead, Later } from "../load.js";
import { useRead } from "../store.js";
import { announce } from "./announcer.js";
import { shortId } from "../format.js";
import { Card, Failed } from "./card.js";
import { FailureCard } from "./failure.js";
import { Life } from "./life.js";
import { Payload } from "./payload.js";
import { Viewer } from "./viewer.js";
import { WhyWaits } from "./why_waits.js";

const LIFE_MS = 5000;

/**
 * Follows a job while a component shows it.
 * @param {string} endpoint its id or slug
 * @param {string} job
 */
export function useFollow(endpoint, job) {
  const [run, setRun] = useState(0);
  const follow = useMemo(() => new JobFollow(endpoint, job), [endpoint, job, run]);
  useLayoutEffect(() => {
    follow.run();
    return () => follow.close();
  }, [follow]);
  const status = follow.record.value?.job.status;
  useEffect(() => {
    if (status) announce(`Job ${shortId(job)}: ${JOB_STATES[status]?.word}.`);
  }, [status]);
  return { follow, again: () => setRun(run + 1) };
}

/** What is known of a job beside its record. @param {string} endpoint its id @param {string} job */
const useDetails = (endpoint, job) => useRead(endpoint ? `/v2/${encodeURIComponent(endpoint)}/jobs/${encodeURIComponent(job)}` : null, LIFE_MS);

/** Reads beside the record of a job, and not after it, what `useLife` needs. @param {Endpoint | null} endpoint @param {string} job */
export const useLifeAhead = (endpoint, job) => void useDetails(endpoint?.id ?? "", job);

/**
 * A job with all that is known of it, while it is followed.
 * @param {Endpoint} endpoint
 * @param {{text: string, job: Job}} record
 * @param {JobFollow} follow
 */
export function useLife(endpoint, record, follow) {
  const { data, at, askedAt = 0 } = useDetails(endpoint.id, record.job.id);
  useEffect(() => {
    // What was asked for before the end may be older than the record, also if the answer comes later.
    if (data && follow.endedAt > 0 && askedAt > follow.endedAt && !follow.isCut() && hasChanged(record.job, data)) follow.again();
  }, [data]);
  const later = follow.progressAt.filter((one) => one > at).map((one) => new Date(one).toISOString());
  const life = data && { ...data, progressAt: [...(data.progressAt ?? []), ...later] };
  // The record is as old as the last event of the job's stream; the rest is read beside it.
  return { life, job: follow.isPaused.value || follow.isCut() ? { ...record.job, ...life } : { ...life, ...record.job } };
}

/** Whether a job that had ended was retried. @param {Job} before @param {Job} now */
const hasChanged = (before, now) => now.status !== before.status || (now.retries ?? 0) !== (before.retries ?? 0) || now.delayTime !== before.delayTime || now.executionTime !== before.executionTime;

/** @param {{endpoint: Endpoint, job: Job, text: string, follow: JobFollow, onAgain: () => void}} props `text` is the job's record */
export function JobView({ endpoint, job, text, follow, onAgain }) {
  const isLive = !ENDED.includes(job.status);
  const hasFailed = job.status === "FAILED" || job.status === "TIMED_OUT";
  const stream = { count: follow.chunks.length, firstAt: follow.firstAt() };
  void follow.version.value;
  return html`${job.status === "IN_QUEUE" && html`<${WhyWaits} endpoint=${endpoint} job=${job} />`}
    ${hasFailed && html`<${FailureCard} job=${job} />`}
    <${Life} endpoint=${endpoint} job=${job} stream=${stream} />
    ${follow.error.value && html`<${Failed} error=${follow.error.value} onRetry=${onAgain} />`}
    ${follow.chunks.length > 0 ? html`<${Later} address="./ui/stream.js" props=${{ follow, job, isLive }} />` : isLive && html`<${Ahead} address="./ui/stream.js" />`}
    <${Output} endpoint=${endpoint} job=${job} text=${text} isLive=${isLive} isRead=${isLive !== ENDED.includes(follow.record.value?.job.status ?? "")} />`;
}

/**
 * What came out of a job, or its progress while it runs.
 * @param {{endpoint: Endpoint, job: Job, text: string, isLive: boolean, isRead: boolean}} props `isRead`: the record has what is shown of the job
 */
function Output({ endpoint, job, text, isLive, isRead }) {
  const output = useMemo(() => outputOf(text), [text]);
  if (isRead && typeof output === "string") return html`<${Viewer} title=${isLive ? "Progress" : "Output"} text=${output} name=${`${job.id}-output.json`} />`;
  if (isLive) return null;
  // The record of a large output comes without it, and one that is no longer followed is older than the output.
  if (job.outputBytes && !(isRead && output === null)) return html`<${Payload} key=${`${job.delayTime} ${job.executionTime}`} of="output" endpoint=${endpoint} job=${job} bytes=${job.outputBytes} />`;
  return html`<${Card} title="Output"><p class="dim">${job.status === "CANCELLED" ? "It was cancelled before it had one." : "This job ended without an output."}</p><//>`;
}
