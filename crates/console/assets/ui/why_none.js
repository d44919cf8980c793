// Why no worker of an endpoint runs: in the words of the server's explanation, or that none is needed.
import { html } from "../dom.js";
import { useAttention } from "../fleet.js";
import { may } from "../session.js";
import { useRead } from "../store.js";
import { Empty } from "./card.js";

const READ_MS = 3000;

/** @param {{endpoint: Endpoint, health: Health | undefined}} props */
export function NoWorker({ endpoint, health }) {
  const isAsked = may.requests(endpoint.id);
  const { data, error } = useRead(isAsked ? `/v2/${encodeURIComponent(endpoint.id)}/explain` : null, READ_MS);
  // Without a job that waits, what would make one wait.
  const cause = data?.cause.code === "not_waiting" ? data.also.find((/** @type {any} */ other) => other.blocking) : data?.cause;
  return html`<${Empty}><p>No worker runs. ${cause ? because(cause) : (!isAsked || data || error) && unexplained(endpoint, health)}</p><//>`;
}

/** As far as events tell it: a page that reads nothing for it. @param {{endpoint: Endpoint, health: Health | undefined}} props */
export function NoWorkerBriefly({ endpoint, health }) {
  const problem = useAttention(endpoint.id).find(isOfWorkers);
  return html`<${Empty}><p>No worker runs. ${problem ? because(problem) : unexplained(endpoint, health)}</p><//>`;
}

/** Other problems are no reason that workers are missing. @param {{code: string}} problem */
const isOfWorkers = ({ code }) => !/_burn$|^queue_full$/.test(code);

/** @param {{code: string, title: string, text: string}} cause */
const because = ({ code, title, text }) => (code === "no_external_worker" ? text : `${title}: ${text}`);

/** @param {Endpoint} endpoint @param {Health | undefined} health */
function unexplained(endpoint, health) {
  if (endpoint.workersMax === 0) return "The endpoint is paused.";
  if (endpoint.provider === "external") return "They are started elsewhere, with the variables of a worker token.";
  return health?.jobs.inQueue ? "The scaler starts one for the jobs that wait." : "None is needed: one starts when a job comes.";
}

/**
 * Of several endpoints, by their problems.
 * @param {{problems: import("../fleet.js").Problem[]}} props
 */
export function NoWorkerOfAll({ problems }) {
  const waiting = problems.filter((problem) => problem.jobs > 0 && isOfWorkers(problem));
  const why = waiting.map(({ name, title }) => `${name}: ${title}.`).join(" ");
  return html`<${Empty}><p>No worker runs. ${why || "None is needed while no job waits."}</p><//>`;
}
