// A call of a webhook in words: its state, and what the receiver said to an attempt.
import { html, signal } from "../dom.js";
import * as api from "../api.js";
import { visible } from "../format.js";
import { Icon } from "../icons.js";
import { refresh } from "../store.js";
import { attempt } from "./toast.js";

const STATES = /** @type {Record<string, {icon: string, word: string, tone: string}>} */ ({
  DELIVERED: { icon: "completed", word: "Delivered", tone: "completed" },
  PENDING: { icon: "queued", word: "Pending", tone: "queued" },
  FAILED: { icon: "failed", word: "Failed", tone: "failed" },
});

/** A call that is due waits for its receiver: for a place among its calls, or for the end of a pause. */
export const LATE = "when its receiver is free";

/** The state of calls that were asked for again, by their ids, with the begin of the last attempt before. @type {import("../vendor/signals.js").Signal<Record<string, {state: WebhookCall["state"], at: string | undefined}>>} */
const again = signal({});

/** Notes that calls were asked for again, and the state that they have now. @param {WebhookCall[]} calls @param {WebhookCall["state"]} state */
export function noteAgain(calls, state) {
  again.value = { ...again.value, ...Object.fromEntries(calls.map(({ id, attempts }) => [id, { state, at: attempts.at(-1)?.at }])) };
}

/** Delivers a call again. @param {{id: string}} endpoint @param {WebhookCall} call */
export const deliver = (endpoint, call) => attempt(async () => {
  const path = `/v2/${encodeURIComponent(endpoint.id)}/webhooks`;
  const { state } = await api.json("POST", `${path}/${encodeURIComponent(call.id)}/redeliver`);
  noteAgain([call], state);
  refresh("/v1/webhooks");
  refresh(path);
}, "The webhook is called again.");

/** A listed call as it is: the server's list has the answer to another delivery only with its first attempt. @param {WebhookCall} call @returns {WebhookCall} */
export function asDelivered(call) {
  const asked = again.value[call.id];
  return asked && asked.at === call.attempts.at(-1)?.at ? { ...call, state: asked.state } : call;
}

/** @param {{call: WebhookCall}} props */
export function CallState({ call: { state } }) {
  const { icon, word, tone } = STATES[state] ?? { icon: "warn", word: state, tone: "cancelled" };
  return html`<span class=${`state tone-${tone}`}><${Icon} name=${icon} />${word}</span>`;
}

/** What the receiver said to an attempt. @param {any} one */
export const answerOf = (one) => (one ? (one.status ? `HTTP ${one.status}` : visible(one.error ?? "no answer")) : "–");
