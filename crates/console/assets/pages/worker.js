// One worker: what it does or how it ended, its jobs over time, what it uses, and what it printed.
import { html } from "../dom.js";
import { endpointPath, href, place } from "../router.js";
import { count, duration, percent, rate, size } from "../format.js";
import { useEndpoint } from "../fleet.js";
import { Icon } from "../icons.js";
import { may, money } from "../session.js";
import { refresh, useRead } from "../store.js";
import { causeOf, exitOf, workersPath } from "../worker_actions.js";
import { Card, Empty, Failed, LoadingPage } from "../ui/card.js";
import { Id } from "../ui/copy.js";
import { LogLines } from "../ui/log_lines.js";
import { NoEndpoint } from "../ui/no_endpoint.js";
import { Age, Moment } from "../ui/time.js";
import { WorkerJobs } from "../ui/worker_jobs.js";
import { WorkerResources } from "../ui/worker_resources.js";
import { Jobs, isElsewhere, lived, useMachineNames, WorkerButtons, WorkerState } from "../ui/worker_table.js";
import WorkerToken from "../ui/worker_token.js";

const READ_MS = 3000;

export default function WorkerPage() {
  const { endpoint: name, worker: id } = place.value.params;
  const { endpoint, isReadable, error } = useEndpoint(name);
  const workers = useRead(endpoint && isReadable ? workersPath(endpoint, true) : null, READ_MS);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (endpoint && !isReadable) return html`<h1>Worker</h1><${Empty}><p>This key may not see the workers.</p><//>`;
  if (workers.error && !workers.data) return html`<h1 class="job-title">${id}</h1><${Failed} error=${workers.error} onRetry=${() => refresh("/v1/endpoints")} />`;
  if (!endpoint || !workers.data) return html`<h1 class="job-title">${id}</h1><${LoadingPage} cards=${["Details", "Jobs", "Log"]} />`;
  const worker = workers.data.find((/** @type {any} */ one) => one.id === id);
  if (!worker) return html`<h1>This worker is not here</h1><${Empty}><p>No worker of ${endpoint.name} has the id <span class="mono">${id}</span>, and no log of it is kept. The logs of the last ten that ended are.</p><a class="button" href=${href(`${endpointPath(endpoint)}/workers`)}>Its workers</a><//>`;
  return html`<div class="head"><h1 class="job-title">${worker.id}</h1>
      ${worker.status === "EXITED" ? html`<${Exit} worker=${worker} />` : html`<span><${WorkerState} worker=${worker} /></span>`}
      <div class="acts"><${WorkerButtons} row=${{ endpoint, worker }} /></div></div>
    <${Card} title="Details"><${Details} endpoint=${endpoint} worker=${worker} /><//>
    ${may.requests(endpoint.id) && html`<${WorkerJobs} endpoint=${endpoint} worker=${worker} />`}
    ${worker.status !== "EXITED" && html`<${WorkerResources} worker=${worker} at=${workers.at} />`}
    ${isElsewhere(worker) && may.change(endpoint.id) && html`<${WorkerToken} endpoint=${endpoint} />`}
    <${LogLines} endpoint=${endpoint} filter=${{ worker: worker.id }} since=${worker.startedAt} title="Log" />`;
}

/** @param {{worker: WorkerRecord}} props */
function Exit({ worker }) {
  const exit = exitOf(worker.exit);
  return html`<span class=${`state tone-${exit.isBad ? "failed" : "cancelled"}`}><${Icon} name=${exit.isBad ? "failed" : "out"} />${exit.word}</span><span class="dim">${exit.text}</span>`;
}

/** How the GPUs of a worker are, as far as their driver says it. @param {{worker: WorkerRecord}} props */
function Gpus({ worker }) {
  return (worker.gpus ?? []).map((/** @type {any} */ gpu) => html`<div key=${gpu.id} class="dim">${said(gpu).join(", ")}</div>`);
}

/** @param {any} gpu @returns {string[]} */
function said({ useRatio, memoryUsedBytes, memoryBytes, temperatureC, fault }) {
  const isKnown = (/** @type {unknown} */ value) => typeof value === "number";
  const parts = [isKnown(useRatio) && `${percent(useRatio)} % busy`, isKnown(memoryUsedBytes) && `${size(memoryUsedBytes)} of ${size(memoryBytes)} used`, isKnown(temperatureC) && `${temperatureC} °C`, fault && `sick: ${fault}`];
  return parts.filter((part) => typeof part === "string");
}

/** @param {{endpoint: Endpoint, worker: WorkerRecord}} props */
function Details({ endpoint, worker }) {
  const machineOf = useMachineNames();
  const isOld = worker.version !== undefined && worker.version !== endpoint.version;
  /** @type {[string, any][]} */
  const facts = [
    ["Id", html`<${Id} id=${worker.id} />`],
    ["Endpoint", html`<a href=${href(endpointPath(endpoint))}>${endpoint.name}</a>${worker.version !== undefined && `, version ${worker.version}`}${isOld ? `; the present one is ${endpoint.version}` : ""}`],
    ...(machineOf ? /** @type {[string, any][]} */ ([["Machine", isElsewhere(worker) ? "elsewhere" : machineOf(worker)]]) : []),
    ["GPU", worker.gpu?.count ? html`${worker.gpu.count} × ${worker.gpu.id}${worker.status !== "EXITED" && html`<${Gpus} worker=${worker} />`}` : "none"],
    ["Started", worker.startedAt ? html`<${Moment} at=${worker.startedAt} />${worker.startedBecause && html` <span class="dim">because: ${causeOf(worker.startedBecause)}</span>`}` : "elsewhere, by someone else"],
    ["Start took", worker.startMs === undefined ? html`<span class="dim">${worker.startedAt === undefined ? "not known of a worker that others started" : worker.status === "EXITED" ? (worker.jobsDone === undefined ? "not recorded" : "it never asked for a job") : "it has not asked for a job yet"}</span>` : duration(worker.startMs)],
  ];
  if (worker.status === "EXITED") facts.push(["Ended", html`<${Moment} at=${worker.endedAt} /> <span class="dim">after ${duration(lived(worker))}</span>`]);
  else facts.push(["Jobs", html`<${Jobs} endpoint=${endpoint} worker=${worker} />`], ["Last heard", html`<${Age} at=${worker.lastHeardAt} />`]);
  if (worker.address) facts.push(["Address", html`<span class="mono">${worker.address}</span> <span class="dim">where it last asked for jobs from</span>`]);
  facts.push(["Jobs done", count(worker.jobsDone)]);
  if (worker.rssBytes !== undefined) facts.push(["Memory", size(worker.rssBytes)]);
  if (worker.cpuRatio !== undefined) facts.push(["Processors", `${rate(worker.cpuRatio)} busy`]);
  if (worker.costPerHr) facts.push(["Cost", `${money(worker.costPerHr)} an hour`]);
  if (worker.unenforcedLimits) facts.push(["Limits", worker.unenforcedLimits]);
  return html`<dl class="kv">${facts.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>`;
}
