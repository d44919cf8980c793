// Icons are masks in styles/icons.css: one node each, in the colour of the text.
import { html } from "./dom.js";

/**
 * @param {{name: string, label?: string}} props `label` names the icon where no word stands beside it
 */
export function Icon({ name, label }) {
  return label
    ? html`<i class="icon icon-${name}" role="img" aria-label=${label}></i>`
    : html`<i class="icon icon-${name}" aria-hidden="true"></i>`;
}

/** The icon and the text of each state of a job. */
export const JOB_STATES = /** @type {Record<string, {icon: string, word: string, tone: string}>} */ ({
  IN_QUEUE: { icon: "queued", word: "Queued", tone: "queued" },
  IN_PROGRESS: { icon: "running", word: "Running", tone: "running" },
  COMPLETED: { icon: "completed", word: "Completed", tone: "completed" },
  FAILED: { icon: "failed", word: "Failed", tone: "failed" },
  TIMED_OUT: { icon: "timedout", word: "Timed out", tone: "timedout" },
  CANCELLED: { icon: "cancelled", word: "Cancelled", tone: "cancelled" },
});

/** The states that a job does not leave by itself. */
export const ENDED = ["COMPLETED", "FAILED", "TIMED_OUT", "CANCELLED"];
