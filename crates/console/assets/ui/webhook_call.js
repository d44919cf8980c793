// A call of a webhook in words: its state, and what the receiver said to an attempt.
import { html } from "../dom.js";
import { visible } from "../format.js";
import { Icon } from "../icons.js";

const STATES = /** @type {Record<string, {icon: string, word: string, tone: string}>} */ ({
  DELIVERED: { icon: "completed", word: "Delivered", tone: "completed" },
  PENDING: { icon: "queued", word: "Pending", tone: "queued" },
  FAILED: { icon: "failed", word: "Failed", tone: "failed" },
});

/** A call that is due waits for its receiver: for a place among its calls, or for the end of a pause. */
export const LATE = "when its receiver is free";

/** @param {{call: WebhookCall}} props */
export function CallState({ call: { state } }) {
  const { icon, word, tone } = STATES[state] ?? { icon: "warn", word: state, tone: "cancelled" };
  return html`<span class=${`state tone-${tone}`}><${Icon} name=${icon} />${word}</span>`;
}

/** What the receiver said to an attempt. @param {any} one */
export const answerOf = (one) => (one ? (one.status ? `HTTP ${one.status}` : visible(one.error ?? "no answer")) : "–");
