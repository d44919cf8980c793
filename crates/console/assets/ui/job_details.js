// The facts of a job.
import { html } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { count, duration, size } from "../format.js";
import { now } from "../store.js";
import { Card } from "./card.js";
import { milestones } from "./life.js";
import { Moment } from "./time.js";
import { WorkerLink } from "./worker_link.js";

/** @param {{endpoint: Endpoint, job: Job}} props */
export function Details({ endpoint, job }) {
  const { created, started, ended } = milestones(job);
  const tries = (job.retries ?? 0) + 1;
  /** @type {[string, any][]} */
  const facts = [
    ["Endpoint", html`<a href=${href(endpointPath(endpoint))}>${endpoint.name}</a>${job.version ? `, version ${job.version}` : ""}`],
    ["Worker", job.workerId ? html`<${WorkerLink} endpoint=${endpoint} id=${job.workerId} />` : null],
    ["Waited", started === null ? null : duration(job.delayTime)],
    ["Ran", started === null ? null : duration(ended === null ? now.value - started : job.executionTime)],
    ["Tries", endpoint.maxRetries === undefined ? count(tries) : `${count(tries)} of ${count(endpoint.maxRetries + 1)}`],
    ["Created", html`<${Moment} at=${created} ms />`],
    ["Started", started === null ? null : html`<${Moment} at=${started} ms />`],
    ["Ended", ended === null ? null : html`<${Moment} at=${ended} ms />`],
    ["Kept until", job.expiresAt ?? job.ttlAt ? html`<${Moment} at=${job.expiresAt ?? job.ttlAt} />` : null],
    ["Sent by", job.key?.name ?? job.key?.id ?? (typeof job.key === "string" ? job.key : null)],
    ["Owner", job.owner],
    ["Mode", job.mode],
    ["May run", job.policy?.executionTimeout ? duration(job.policy.executionTimeout) : null],
    ["Kept at most", job.policy?.ttl ? duration(job.policy.ttl) : null],
    ["Low priority", job.policy?.lowPriority ? "yes: it starts no worker" : null],
    ["Input", job.inputBytes === undefined ? null : size(job.inputBytes)],
    ["Output", job.outputBytes === undefined || job.outputBytes === null ? null : size(job.outputBytes)],
    ["Trace", trace(job)],
  ];
  return html`<${Card} title="Details"><dl class="kv">${facts.filter(([, value]) => value !== null && value !== undefined).flatMap(([name, value]) => [html`<dt key=${`name of ${name}`}>${name}</dt>`, html`<dd key=${name}>${value}</dd>`])}</dl><//>`;
}

/** The trace of a job, with a link to the tool that shows it. @param {Job} job */
function trace(job) {
  if (!job.traceparent) return null;
  const id = job.traceparent.split("-")[1];
  if (!/^https?:\/\//.test(job.traceUrl ?? "")) return html`<span class="mono">${id}</span>`;
  return html`<a class="mono" href=${job.traceUrl} target="_blank" rel="noopener noreferrer">${id}</a>`;
}
