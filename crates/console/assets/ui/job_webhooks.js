// The calls of a job's webhook, with their attempts.
import { html } from "../dom.js";
import { duration, visible } from "../format.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Button } from "./button.js";
import { Card, Failed, Loading } from "./card.js";
import { Due, Moment } from "./time.js";
import { answerOf, asDelivered, CallState, deliver, LATE } from "./webhook_call.js";

const READ_MS = 5000;

/** @param {{endpoint: Endpoint, job: Job}} props */
export function Webhooks({ endpoint, job }) {
  const path = `/v2/${encodeURIComponent(endpoint.id)}/webhooks`;
  const { data, error } = useRead(`${path}?job=${encodeURIComponent(job.id)}`, READ_MS);
  const calls = data?.webhooks ?? (Array.isArray(data) ? data : null);
  // A key that may not read them is told nothing of them.
  if (!data && error && error.status >= 400 && error.status < 500) return null;
  return html`<${Card} title="Webhook">${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(path)} />` : !calls ? html`<${Loading} rows=${2} />` : calls.length === 0
    ? html`<p class="dim">No call was made so far.</p>`
    : calls.map(asDelivered).map((/** @type {WebhookCall} */ call) => html`<${Call} key=${call.id} call=${call} onAgain=${may.jobs(endpoint.id) && call.state !== "PENDING" ? () => deliver(endpoint, call) : null} />`)}<//>`;
}

/** @param {{call: WebhookCall, onAgain: (() => void) | null}} props */
function Call({ call, onAgain }) {
  return html`<dl class="kv">
    <dt>Receiver</dt><dd>${visible(call.receiver)}</dd>
    <dt>State</dt><dd><${CallState} call=${call} /></dd>
    ${call.attempts.map((/** @type {any} */ one) => html`<dt key=${one.attempt}>Attempt ${one.attempt}</dt><dd>${answerOf(one)} after ${duration(one.latencyMs)}<div class="dim"><${Moment} at=${one.at} /></div>${one.answer && html`<pre class="mono wrapped">${visible(one.answer)}</pre>`}</dd>`)}
    ${call.nextAttemptAt && html`<dt>Next attempt</dt><dd><${Due} at=${call.nextAttemptAt} late=${LATE} /></dd>`}
    ${onAgain && html`<dt></dt><dd><${Button} onClick=${onAgain}>Deliver again<//></dd>`}
  </dl>`;
}
