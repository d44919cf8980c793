// The facts of a job, and its webhook.
import { html } from "../dom.js";
import * as api from "../api.js";
import { endpointPath, href } from "../router.js";
import { count, duration, size, visible } from "../format.js";
import { may } from "../session.js";
import { now, refresh, useRead } from "../store.js";
import { Button } from "./button.js";
import { Card } from "./card.js";
import { milestones } from "./life.js";
import { Due, Moment } from "./time.js";
import { attempt } from "./toast.js";
import { WorkerLink } from "./worker_link.js";

const WEBHOOKS_MS = 5000;

/** @param {{endpoint: any, job: any}} props */
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
    ["Low priority", job.policy?.lowPriority ? "yes: it starts no worker" : null],
    ["Input", job.inputBytes === undefined ? null : size(job.inputBytes)],
    ["Output", job.outputBytes === undefined || job.outputBytes === null ? null : size(job.outputBytes)],
    ["Trace", trace(job)],
  ];
  return html`<${Card} title="Details"><dl class="kv">${facts.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl><//>`;
}

/** The trace of a job, with a link to the tool that shows it. @param {any} job */
function trace(job) {
  if (!job.traceparent) return null;
  const id = job.traceparent.split("-")[1];
  if (!/^https?:\/\//.test(job.traceUrl ?? "")) return html`<span class="mono">${id}</span>`;
  return html`<a class="mono" href=${job.traceUrl} target="_blank" rel="noopener noreferrer">${id}</a>`;
}

const STATES = /** @type {Record<string, string>} */ ({ delivered: "completed", succeeded: "completed", failed: "failed", pending: "queued" });

/** What the receiver said to an attempt, and how long it took. @param {any} one */
const answerOf = (one) => `${one.status ? `HTTP ${one.status}` : visible(one.error ?? "no answer")} after ${duration(one.latencyMs)}`;

/** The calls of a job's webhook. @param {{endpoint: any, job: any}} props */
export function Webhooks({ endpoint, job }) {
  const path = `/v2/${encodeURIComponent(endpoint.id)}/webhooks`;
  const { data, error } = useRead(`${path}?job=${encodeURIComponent(job.id)}`, WEBHOOKS_MS);
  const calls = data?.webhooks ?? (Array.isArray(data) ? data : null);
  if (error || !calls) return null;
  const again = (/** @type {string} */ id) => attempt(async () => {
    await api.json("POST", `${path}/${encodeURIComponent(id)}/redeliver`);
    refresh(path);
  }, "The webhook is called again.");
  return html`<${Card} title="Webhook">${calls.length === 0 ? html`<p class="dim">None was asked for.</p>` : calls.map((/** @type {any} */ call) => html`<dl class="kv" key=${call.id}>
      <dt>Receiver</dt><dd>${visible(call.receiver)}</dd>
      <dt>State</dt><dd class=${`tone-${STATES[String(call.state).toLowerCase()] ?? "queued"}`}>${call.state}</dd>
      <dt>Attempts</dt><dd>${count(call.attempts.length)}</dd>
      ${call.attempts.length > 0 && html`<dt>Last answer</dt><dd>${answerOf(call.attempts.at(-1))}</dd>`}
      ${call.nextAttemptAt && html`<dt>Next attempt</dt><dd><${Due} at=${call.nextAttemptAt} late="when its receiver is free" /></dd>`}
      ${may.jobs(endpoint.id) && String(call.state).toLowerCase() !== "pending" && html`<dt></dt><dd><${Button} onClick=${() => again(call.id)}>Deliver again<//></dd>`}
    </dl>`)}<//>`;
}
