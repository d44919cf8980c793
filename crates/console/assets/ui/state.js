// The state of a job and of an endpoint: an icon of its own shape, a word, and a colour.
import { html } from "../dom.js";
import { Icon, JOB_STATES } from "../icons.js";

/** @param {{status: string}} props one of the six states of a job */
export function JobState({ status }) {
  const { icon, word, tone } = JOB_STATES[status] ?? { icon: "warn", word: status, tone: "cancelled" };
  return html`<span class=${`state tone-${tone}`}><${Icon} name=${icon} />${word}</span>`;
}

/** @typedef {{word: string, tone: string, icon: string, reason: string}} EndpointState */

/** The settings that a reason names if a worker waits for anything but a GPU. */
const OF_ROOM = /\x60(memory|vcpus|workers)/;

/**
 * The worst true state of an endpoint, from its record and its health.
 * @param {Endpoint} endpoint
 * @param {Health | undefined} health undefined before it was read
 * @returns {EndpointState | null}
 */
export function endpointState(endpoint, health) {
  if (!endpoint || !health) return null;
  const { jobs, workers, reasons = {} } = health;
  const waiting = jobs.inQueue > 0 ? `${jobs.inQueue} ${jobs.inQueue === 1 ? "waits" : "wait"}. ` : "";
  if (reasons.unhealthy && workers.ready + workers.running === 0) return { word: "Workers crash", tone: "failed", icon: "warn", reason: waiting + reasons.unhealthy };
  if (reasons.impossible) return { word: "Impossible", tone: "failed", icon: "warn", reason: waiting + reasons.impossible };
  if (workers.throttled > 0 && workers.ready === 0) return { word: OF_ROOM.test(reasons.throttled ?? "") ? "Waiting for room" : "Waiting for a GPU", tone: "timedout", icon: "warn", reason: waiting + (reasons.throttled ?? "") };
  if (endpoint.workersMax === 0) return { word: "Paused", tone: "cancelled", icon: "pause", reason: `${waiting}workersMax is 0: no worker starts.` };
  if (workers.initializing > 0) return { word: "Starting", tone: "queued", icon: "queued", reason: `${waiting}A worker starts.` };
  if (jobs.inProgress > 0) return { word: "Running", tone: "running", icon: "running", reason: "" };
  if (workers.ready > 0 || workers.idle > 0) return { word: "Ready", tone: "completed", icon: "completed", reason: "" };
  if (endpoint.provider === "external" && jobs.inQueue > 0) return { word: "No worker", tone: "timedout", icon: "warn", reason: `${waiting}Its workers are external, and none asks for jobs.` };
  return { word: "Asleep", tone: "cancelled", icon: "asleep", reason: waiting ? `${waiting}The scaler starts a worker.` : "No worker runs, and none is needed." };
}

/** @param {{state: EndpointState | null}} props */
export function EndpointStateTag({ state }) {
  if (!state) return html`<span class="state dim">–</span>`;
  return html`<span class=${`state tone-${state.tone}`} title=${state.reason || undefined}><${Icon} name=${state.icon} />${state.word}</span>`;
}
