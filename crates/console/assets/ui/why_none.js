// Why no worker of an endpoint runs: in the words of the server's explanation, or that none is needed.
import { html } from "../dom.js";
import { may } from "../session.js";
import { useRead } from "../store.js";
import { Empty } from "./card.js";

const READ_MS = 3000;

/** @param {{endpoint: any}} props */
export function NoWorker({ endpoint }) {
  const isAsked = may.requests(endpoint.id);
  const { data, error } = useRead(isAsked ? `/v2/${encodeURIComponent(endpoint.id)}/explain` : null, READ_MS);
  return html`<${Empty}><p>No worker runs. ${because(data) || ((!isAsked || data || error) && unexplained(endpoint))}</p><//>`;
}

/** Without a job that waits, what would make one wait. @param {any} data what the server explains */
function because(data) {
  const cause = data?.cause.code === "not_waiting" ? data.also.find((/** @type {any} */ other) => other.blocking) : data?.cause;
  // That no worker is there is said already.
  return !cause ? "" : cause.code === "no_external_worker" ? cause.text : `${cause.title}: ${cause.text}`;
}

/** @param {any} endpoint */
function unexplained(endpoint) {
  if (endpoint.workersMax === 0) return "The endpoint is paused.";
  return endpoint.provider === "external" ? "They are started elsewhere, with the variables of a worker token." : "None is needed.";
}

/**
 * Of several endpoints, by their problems.
 * @param {{problems: import("../attention.js").Problem[]}} props
 */
export function NoWorkerOfAll({ problems }) {
  const waiting = problems.filter(({ jobs }) => jobs > 0);
  const why = waiting.map(({ name, title }) => `${name}: ${title}.`).join(" ");
  return html`<${Empty}><p>No worker runs. ${why || "None is needed."}</p><//>`;
}
