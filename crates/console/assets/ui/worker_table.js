// The workers of an endpoint or of several: what each does, since when, and how the ended ones ended.
import { html } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { coarse, count, duration, moment, percent, rate, shortId, size } from "../format.js";
import { Icon } from "../icons.js";
import { may, money } from "../session.js";
import { refresh, useRead } from "../store.js";
import { drain, exitOf, stop, workersPath } from "../worker_actions.js";
import { Button } from "./button.js";
import { Failed, Loading } from "./card.js";
import { SureButton } from "./sure_button.js";
import { Age } from "./time.js";
import { attempt } from "./toast.js";
import { NoWorkerBriefly } from "./why_none.js";
import { WorkerLink } from "./worker_link.js";

const READ_MS = 3000;
const MACHINES_MS = 60000;

/** The word, the colour and the icon of a worker's status. */
const STATES = /** @type {Record<string, {word: string, tone: string, icon: string}>} */ ({
  INITIALIZING: { word: "Starting", tone: "queued", icon: "queued" },
  IDLE: { word: "Idle", tone: "completed", icon: "completed" },
  RUNNING: { word: "Running", tone: "running", icon: "running" },
  DRAINING: { word: "Ends after its jobs", tone: "cancelled", icon: "out" },
  THROTTLED: { word: "Waits", tone: "timedout", icon: "clock" },
});

/** @typedef {{endpoint: Endpoint, worker: WorkerRecord}} Row */

/** The running workers of one endpoint, for its first page. @param {{endpoint: Endpoint, health: Health | undefined}} props */
export function WorkerTable({ endpoint, health }) {
  const { data, error } = useRead(workersPath(endpoint), READ_MS);
  if (error && !data) return html`<${Failed} error=${error} onRetry=${() => refresh(workersPath(endpoint))} />`;
  if (!data) return html`<${Loading} rows=${2} />`;
  if (data.length === 0) return html`<${NoWorkerBriefly} endpoint=${endpoint} health=${health} />`;
  return html`<${Workers} rows=${data.map((/** @type {WorkerRecord} */ worker) => ({ endpoint, worker }))} />`;
}

/** Whether someone else started the worker, on any computer. @param {WorkerRecord} worker */
export const isElsewhere = ({ startedAt, machineId, status }) => startedAt === undefined && !machineId && status !== "THROTTLED";

/**
 * The name of a worker's computer, or the address of one that runs elsewhere; null for a key that may not know the computers.
 * @returns {((worker: WorkerRecord) => string) | null}
 */
export function useMachineNames() {
  const machines = useRead(may.everyRead.value ? "/v1/machines" : null, MACHINES_MS).data;
  if (!may.everyRead.value) return null;
  return ({ machineId, status, address }) => (status === "THROTTLED" ? "–" : machineId ? (machines?.find((/** @type {any} */ { id }) => id === machineId)?.name ?? machineId) : address ? `elsewhere, ${address}` : "elsewhere");
}

/** How busy and how full a GPU is, as far as its driver says it. @param {any} gpu @returns {string} */
const said = ({ useRatio, memoryUsedBytes, memoryBytes, fault }) =>
  [fault && "sick", typeof useRatio === "number" && `${percent(useRatio)} %`, typeof memoryUsedBytes === "number" && `${size(memoryUsedBytes)} of ${size(memoryBytes)}`].filter(Boolean).join(", ");

/** The GPUs of a worker, and what it costs where a price is set. @param {{worker: WorkerRecord, isOfAll: boolean}} props */
function Gpus({ worker, isOfAll }) {
  const cost = worker.costPerHr !== undefined && worker.costPerHr > 0 && `${money(worker.costPerHr)} an hour`;
  if (!worker.gpu?.count) return html`<span class="dim">none${cost && html`<br /><small>${cost}</small>`}</span>`;
  const lines = [...(worker.gpus ?? []).map(said), cost].filter(Boolean);
  return html`${worker.gpu.count} × ${worker.gpu.id}${lines.length > 0 && html`<small class=${isOfAll ? "below dim opt" : "below dim"}>${lines.join(" · ")}</small>`}`;
}

/** On a phone, a row of a worker of any endpoint has two lines: its endpoint is below its id. */
const tableClass = (/** @type {boolean} */ isOfAll) => (isOfAll ? "table of-all" : "table");

/** @param {{endpoint: Endpoint}} props */
const OnPhone = ({ endpoint }) => html`<a class="on-phone one-line dim" href=${href(endpointPath(endpoint))}>${endpoint.name}</a>`;

/** @param {{rows: Row[], isOfAll?: boolean}} props */
export function Workers({ rows, isOfAll = false }) {
  const machineOf = useMachineNames();
  return html`<div class="table-box"><table class=${tableClass(isOfAll)}>
    <thead><tr><th scope="col">State</th><th scope="col">Worker${machineOf && html`<span class="opt">, machine</span>`}</th>${isOfAll ? html`<th scope="col" class="opt2">Endpoint</th>` : html`<th scope="col" class="num opt2">Version</th>`}<th scope="col" class="opt2">GPU</th><th scope="col" class=${isOfAll ? "opt2" : ""}>Jobs</th><th scope="col" class="num opt">Done</th><th scope="col" class=${isOfAll ? "num opt" : "num opt2"}>Started</th><th scope="col" class="num opt">Memory, CPU</th><th scope="col" class=${isOfAll ? "opt2" : ""}><span class="offscreen">Actions</span></th></tr></thead>
    <tbody>${rows.map((row) => html`<${WorkerRow} key=${row.worker.id} row=${row} isOfAll=${isOfAll} machine=${machineOf?.(row.worker)} />`)}</tbody>
  </table></div>`;
}

/** What happens to a worker that starts, by its `stage`. @type {Record<string, string>} */
const STAGES = { creating: "its container is made", pulling: "its image is pulled", starting: "its container starts", environment: "its Python environment is made", packages: "its packages are installed", loading: "its handler loads" };

/** @param {{worker: WorkerRecord}} props */
export function WorkerState({ worker }) {
  const { word, tone, icon } = STATES[worker.status] ?? { word: worker.status, tone: "cancelled", icon: "warn" };
  const since = worker.status === "IDLE" && worker.idleMs !== undefined && worker.idleMs >= 1000 ? html`<span class="dim">${coarse(worker.idleMs)}</span>` : null;
  const doing = worker.reason ?? (worker.status === "INITIALIZING" && worker.stage ? (STAGES[worker.stage] ?? worker.stage) : null);
  const isIll = worker.health === "unhealthy";
  if (isIll) return html`<span class="state-line"><span class="state tone-failed"><${Icon} name="warn" />Unhealthy</span><span class="dim">${worker.lastCheck}</span></span>`;
  return html`<span class="state-line"><span class=${`state tone-${tone}`}><${Icon} name=${icon} />${word}</span>${since}${doing && html`<span class="dim">${doing}</span>`}</span>`;
}

/** @param {{row: Row, isOfAll: boolean, machine?: string}} props `machine`: absent for a key that may not know it */
function WorkerRow({ row, isOfAll, machine }) {
  const { endpoint, worker } = row;
  const isPlaced = worker.status !== "THROTTLED";
  const isManaged = worker.startedAt !== undefined || !worker.lastHeardAt;
  const old = worker.version !== undefined && worker.version !== endpoint.version && html` <span class="tone-queued">old</span>`;
  return html`<tr>
    <td class="wraps"><${WorkerState} worker=${worker} /></td>
    <td>${isPlaced ? html`<${WorkerLink} endpoint=${endpoint} id=${worker.id} />` : html`<span class="dim">not started</span>`}${isOfAll && html`<${OnPhone} endpoint=${endpoint} />`}${machine && html`<small class="below one-line dim opt" title=${machine}>${machine}</small>`}</td>
    ${isOfAll ? html`<td class="opt2 one-line"><a href=${href(endpointPath(endpoint))} title=${endpoint.name}>${endpoint.name}</a>${worker.version !== undefined && html`<br /><small class="dim">version ${worker.version}${old}</small>`}</td>` : html`<td class="num opt2">${worker.version ?? "–"}${old}</td>`}
    <td class="opt2"><${Gpus} worker=${worker} isOfAll=${isOfAll} /></td>
    <td class=${isOfAll ? "opt2" : ""}><${Jobs} endpoint=${endpoint} worker=${worker} /></td>
    <td class="num opt">${count(worker.jobsDone)}</td>
    <td class=${isOfAll ? "num dim opt" : "num dim opt2"}>${isManaged ? html`<${Age} at=${worker.startedAt} />` : html`<small>heard <${Age} at=${worker.lastHeardAt} /></small>`}${worker.startMs !== undefined && html`<br /><small>took ${duration(worker.startMs)}</small>`}</td>
    <td class="num opt">${size(worker.rssBytes)}${worker.cpuRatio !== undefined && html`<br /><small class="dim" title="Processors that it keeps busy">${rate(worker.cpuRatio)} CPU</small>`}</td>
    <td class=${isOfAll ? "acts opt2" : "acts"}><${WorkerButtons} row=${row} /></td>
  </tr>`;
}

const JOBS_SHOWN = 3;

/** How many jobs a worker runs, of those that one is expected to run, and the jobs as links. @param {{endpoint: Endpoint, worker: WorkerRecord}} props */
export function Jobs({ endpoint, worker }) {
  const jobs = worker.jobs ?? [];
  // Requests to a worker of a load-balancing endpoint have no ids.
  if (endpoint.type === "LB") return html`${count(worker.jobsInProgress ?? 0)}`;
  const ofMost = (/** @type {number} */ running) => html`<small class="dim" title="Running jobs of those that one worker runs concurrently">${count(running)}/${count(endpoint.maxConcurrency ?? 1)}</small>`;
  if (jobs.length === 0) return ofMost(0);
  const path = `${endpointPath(endpoint)}/requests`;
  const more = (worker.jobsInProgress ?? jobs.length) - JOBS_SHOWN;
  const links = jobs.slice(0, JOBS_SHOWN).map((/** @type {string} */ job) => html`<a key=${job} class="mono job-link" href=${href(`${path}/${job}`)} title=${job}>${shortId(job)}</a>`);
  const others = more > 0 && html`<a href=${href(`${path}?${new URLSearchParams({ state: "IN_PROGRESS", q: `worker:${worker.id}` })}`)}>${count(more)} more</a>`;
  return html`${links}${others}<br />${ofMost(worker.jobsInProgress ?? jobs.length)}`;
}

/** Drain and Stop, of a worker that the server started. @param {{row: Row}} props */
export function WorkerButtons({ row: { endpoint, worker } }) {
  const isManaged = worker.startedAt !== undefined && worker.status !== "THROTTLED" && worker.status !== "EXITED";
  if (!isManaged || !may.change(endpoint.id)) return null;
  const name = shortId(worker.id);
  return html`<span class="row-acts">
    ${worker.status !== "DRAINING" && html`<${Button} kind="quiet small" label=${`Drain ${name}`} onClick=${() => attempt(() => drain(endpoint, worker.id), `Worker ${name} ends after its jobs.`)}>Drain<//>`}
    <${SureButton} kind="quiet small danger" onClick=${() => attempt(() => stop(endpoint, worker.id), `Worker ${name} ends now. Its jobs are queued again.`)}>Stop<//>
  </span>`;
}

/** Workers that have ended, the last first. @param {{rows: Row[], isOfAll?: boolean}} props */
export function EndedWorkers({ rows, isOfAll = false }) {
  return html`<div class="table-box"><table class=${tableClass(isOfAll)}>
    <thead><tr><th scope="col">End</th><th scope="col">Worker</th>${isOfAll && html`<th scope="col" class="opt2">Endpoint</th>`}<th scope="col" class="num opt2">Version</th><th scope="col" class="num opt">Lived</th><th scope="col" class="num opt">Done</th><th scope="col" class="num">Ended</th></tr></thead>
    <tbody>${rows.map((row) => html`<${EndedRow} key=${row.worker.id} row=${row} isOfAll=${isOfAll} />`)}</tbody>
  </table></div>`;
}

/** @param {{row: Row, isOfAll: boolean}} props */
function EndedRow({ row, isOfAll }) {
  const { endpoint, worker } = row;
  const exit = exitOf(worker.exit);
  return html`<tr>
    <td class="wraps"><span class="state-line"><span class=${`state tone-${exit.isBad ? "failed" : "cancelled"}`}><${Icon} name=${exit.isBad ? "failed" : "out"} />${exit.word}</span><span class="dim">${exit.text}</span></span></td>
    <td><${WorkerLink} endpoint=${endpoint} id=${worker.id} />${isOfAll && html`<${OnPhone} endpoint=${endpoint} />`}</td>
    ${isOfAll && html`<td class="opt2"><a href=${href(endpointPath(endpoint))}>${endpoint.name}</a></td>`}
    <td class="num opt2">${worker.version ?? "–"}</td>
    <td class="num opt">${duration(lived(worker))}</td>
    <td class="num opt">${count(worker.jobsDone)}</td>
    <td class="num dim"><${Age} at=${worker.endedAt} /></td>
  </tr>`;
}

/** @param {WorkerRecord} worker */
export function lived(worker) {
  const [from, to] = [moment(worker.startedAt), moment(worker.endedAt)];
  return from === null || to === null ? null : to - from;
}
