// Draining all workers of an endpoint, with the effect in numbers.
import { html, useState } from "../dom.js";
import { count } from "../format.js";
import { may } from "../session.js";
import { drainAll } from "../worker_actions.js";
import { Button } from "./button.js";
import { SureDialog } from "./sure_dialog.js";
import { toast } from "./toast.js";

/** The workers that a drain of all ends: those that the server started and that do not end already. @param {any[]} workers */
const drained = (workers) => workers.filter(({ startedAt, status }) => startedAt !== undefined && !["THROTTLED", "EXITED", "DRAINING"].includes(status));

/** @param {number} number @param {string} noun */
const of = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/**
 * What a drain of these workers does, in sentences.
 * @param {Endpoint} endpoint
 * @param {any[]} workers those that drain
 * @param {number} waiting how many jobs wait
 */
function effects(endpoint, workers, waiting) {
  const running = workers.reduce((sum, { jobsInProgress }) => sum + (jobsInProgress ?? 0), 0);
  const isOne = workers.length === 1;
  const first = running === 0 ? (isOne ? "It runs no job: it ends now." : "None runs a job: they end now.") : `${isOne ? "It ends" : "They end"} after ${of(running, "running job")} and ${isOne ? "gets" : "get"} no further one.`;
  if (endpoint.workersMax === 0) return `${first} The endpoint is paused: no other starts.`;
  const next = [endpoint.workersMin > 0 && `\`workersMin\` is ${count(endpoint.workersMin)}`, waiting > 0 && (waiting === 1 ? "1 job waits" : `${count(waiting)} jobs wait`)].filter(Boolean).join(" and ");
  return `${first} ${next ? `Others start in their place: ${next}.` : "Others start when jobs come."} Pause the endpoint to prevent that.`;
}

/** The button that asks for it; without workers to drain, it says why it is off. @param {{endpoint: Endpoint, workers: any[] | undefined, health: Health | undefined, kind?: string}} props */
export function DrainAll({ endpoint, workers, health, kind = "quiet small" }) {
  const [isAsking, setAsking] = useState(false);
  if (!may.change(endpoint.id)) return null;
  const those = drained(workers ?? []);
  return html`<${Button} kind=${kind} disabled=${those.length === 0} why="No worker runs that this server has started." onClick=${() => setAsking(true)}>Drain all<//>
    ${isAsking && html`<${Sure} endpoint=${endpoint} workers=${those} waiting=${health?.jobs.inQueue ?? 0} onClose=${() => setAsking(false)} />`}`;
}

/** @param {{endpoint: Endpoint, workers: any[], waiting: number, onClose: () => void}} props */
function Sure({ endpoint, workers, waiting, onClose }) {
  const act = async () => {
    const ending = await drainAll(endpoint);
    toast(`${of(ending.length, "worker")} of ${endpoint.name} ${ending.length === 1 ? "ends after its jobs" : "end after their jobs"}.`);
    onClose();
  };
  return html`<${SureDialog} title=${`Drain ${of(workers.length, "worker")} of ${endpoint.name}?`} keep="Keep running" action="Drain" onAct=${act} onClose=${onClose}>
    <p>${effects(endpoint, workers, waiting)}</p>
  <//>`;
}
