// The workers of one endpoint, or of all: those that run, and those that ended lately.
import { html, useState } from "../dom.js";
import { href, place, setQuery } from "../router.js";
import { count } from "../format.js";
import { useAttention } from "../fleet.js";
import { useEndpoint, useEndpointList } from "../fleet.js";
import { may, money } from "../session.js";
import { refresh, useReads } from "../store.js";
import { tryNow, workersPath } from "../worker_actions.js";
import { Button } from "../ui/button.js";
import { Alert, Card, Empty, Failed, Gauge, Gauges, Loading } from "../ui/card.js";
import { EndpointHead } from "../ui/endpoint_head.js";
import { DrainAll } from "../ui/drain_all.js";
import { EndpointLoading, NoEndpoint } from "../ui/no_endpoint.js";
import Problems from "../ui/problems.js";
import { attempt } from "../ui/toast.js";
import { NoWorker, NoWorkerOfAll } from "../ui/why_none.js";
import { EndedWorkers, Workers } from "../ui/worker_table.js";
import WorkerToken from "../ui/worker_token.js";

const READ_MS = 3000;
/** The endpoints of one page: over more it would ask too often. */
const ENDPOINTS_MAX = 50;
/** Ended workers that are shown at first, and with each press. */
const ENDED_STEP = 100;
/** The problems for which workers end, or cannot start. */
const CRASHES = ["workers_crash", "start_failed", "workers_unhealthy"];

export default function WorkersPage() {
  return place.value.params.endpoint ? html`<${OfOne} name=${place.value.params.endpoint} />` : html`<${OfAll} />`;
}

/** @param {{name: string}} props */
function OfOne({ name }) {
  const { endpoint, isReadable, error, health, healthError } = useEndpoint(name);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<${EndpointLoading} name=${name} />`;
  const head = html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />`;
  if (!isReadable) return html`${head}<${Empty}><p>This key may not see the workers.</p><//>`;
  return html`${head}<${Crashes} endpoint=${endpoint} health=${health} /><${Tables} endpoints=${[endpoint]} none=${html`<${NoWorker} endpoint=${endpoint} health=${health} />`} drain=${(/** @type {any[]} */ workers) => html`<${DrainAll} endpoint=${endpoint} workers=${workers} health=${health} />`} />
    ${endpoint.provider === "external" && may.change(endpoint.id) && html`<${WorkerToken} endpoint=${endpoint} />`}`;
}

/** That workers crash, with the button that tries again. @param {{endpoint: Endpoint, health: Health | undefined}} props */
function Crashes({ endpoint, health }) {
  const reason = health?.reasons?.unhealthy;
  if (!reason) return null;
  const isTried = endpoint.workersMin > 0 || health.jobs.inQueue > 0;
  const act = isTried && may.change(endpoint.id) && html`<${Button} icon="retry" onClick=${() => attempt(() => tryNow(endpoint), "The next worker starts now, if jobs wait for one.")}>Try now<//>`;
  return html`<${Alert} tone="bad" title="Workers crash while they start" actions=${act}><p>${reason}</p><//>`;
}

function OfAll() {
  const { data, error } = useEndpointList(10000);
  const problems = useAttention();
  const asked = Math.floor(Number(place.value.query.get("from")) || 0);
  const first = asked > 0 && asked < (data?.length ?? 0) ? asked : 0;
  const shown = data?.slice(first, first + ENDPOINTS_MAX) ?? [];
  const isCut = data !== undefined && shown.length < data.length;
  const note = isCut ? `Of endpoints ${count(first + 1)} to ${count(first + shown.length)} of ${count(data.length)}.` : "What runs the jobs of all endpoints.";
  const head = html`<div class="head"><h1>Workers</h1><p class="dim">${note}</p>${isCut && html`<${Pages} first=${first} all=${data.length} />`}</div>`;
  if (!may.readsAny.value) return html`${head}<${Empty}><p>This key may not see the workers.</p><//>`;
  if (error && !data) return html`${head}<${Failed} error=${error} onRetry=${() => refresh("/v1/endpoints")} />`;
  if (!data) return html`${head}<${Tables} endpoints=${null} none="" />`;
  if (data.length === 0) return html`${head}<${Empty}><p>No endpoint is here yet, so no worker is.</p><a class="button" href=${href("/endpoints")}>Endpoints</a><//>`;
  return html`${head}<${Problems} problems=${problems.filter(({ code }) => CRASHES.includes(code))} />
    <${Tables} key=${first} endpoints=${shown} isOfAll none=${html`<${NoWorkerOfAll} problems=${problems} />`} />`;
}

/** The way to the workers of the other endpoints. @param {{first: number, all: number}} props */
function Pages({ first, all }) {
  const go = (/** @type {number} */ from) => setQuery({ from: from > 0 ? String(from) : null });
  return html`<span class="acts"><${Button} kind="small" disabled=${first === 0} why="These are the first endpoints." onClick=${() => go(Math.max(0, first - ENDPOINTS_MAX))}>Endpoints before<//>
    <${Button} kind="small" disabled=${first + ENDPOINTS_MAX >= all} why="These are the last endpoints." onClick=${() => go(first + ENDPOINTS_MAX)}>Next endpoints<//></span>`;
}

/** @param {{endpoints: Endpoint[] | null, isOfAll?: boolean, none: any, drain?: (workers: any[]) => any}} props `endpoints`: null while they are read · `none` is in place of an empty list; `drain` is the button for all workers of one endpoint */
function Tables({ endpoints: known, isOfAll = false, none, drain }) {
  const endpoints = known ?? [];
  const reads = useReads(endpoints.map((endpoint) => workersPath(endpoint, true)), Math.max(READ_MS, endpoints.length * 200));
  const answers = endpoints.map((endpoint) => ({ endpoint, read: reads.get(workersPath(endpoint, true)) }));
  // An endpoint that was deleted a moment ago has no workers.
  const failed = answers.filter(({ read }) => read?.error && !read.data && !(isOfAll && read.error.status === 404));
  const isUnread = known === null || answers.some(({ read }) => !read?.data && !read?.error);
  const rows = answers.flatMap(({ endpoint, read }) => (read?.data ?? []).map((/** @type {WorkerRecord} */ worker) => ({ endpoint, worker })));
  const running = rows.filter(({ worker }) => worker.status !== "EXITED");
  const ended = rows.filter(({ worker }) => worker.status === "EXITED");
  ended.sort((a, b) => ((a.worker.endedAt ?? "") < (b.worker.endedAt ?? "") ? 1 : -1));
  const cost = running.reduce((sum, { worker }) => sum + (worker.costPerHr ?? 0), 0);
  const number = (/** @type {string} */ status) => (isUnread ? null : running.filter(({ worker }) => worker.status === status).length);
  const fault = failed[0] && html`<${Failed} what=${ofSome(failed)} error=${failed[0].read?.error} onRetry=${() => refresh("/v1/endpoints")} />`;
  if (failed.length === answers.length && fault) return fault;
  return html`${fault}<${Gauges}>
      <${Gauge} name="Running jobs" value=${count(number("RUNNING"))} unit="workers" />
      <${Gauge} name="Idle" value=${count(number("IDLE"))} unit="workers" />
      <${Gauge} name="Starting" value=${count(number("INITIALIZING"))} unit="workers" />
      <${Gauge} name="Waiting for room" value=${count(number("THROTTLED"))} bad=${(number("THROTTLED") ?? 0) > 0} unit="workers" />
      ${cost > 0 && html`<${Gauge} name="Cost" value=${money(cost)} unit="an hour" />`}
    <//>
    <${Card} title="Running" note=${isUnread ? undefined : count(running.length)} flush actions=${running.length > 0 && drain?.(running.map(({ worker }) => worker))}>
      ${isUnread ? html`<${Loading} rows=${4} />` : running.length === 0 ? none : html`<${Workers} rows=${running} isOfAll=${isOfAll} />`}
    <//>
    ${!isUnread && ended.length > 0 && html`<${Ended} rows=${ended} isOfAll=${isOfAll} />`}`;
}

/** @param {{endpoint: Endpoint}[]} failed */
const ofSome = (failed) => `The workers of ${failed[0].endpoint.name}${failed.length > 1 ? ` and ${count(failed.length - 1)} more` : ""}`;

/** @param {{rows: any[], isOfAll: boolean}} props */
function Ended({ rows, isOfAll }) {
  const [most, setMost] = useState(ENDED_STEP);
  const more = rows.length > most && html`<p class="log-more"><${Button} kind="small" onClick=${() => setMost(most + ENDED_STEP)}>Older ones<//></p>`;
  return html`<${Card} title="Ended" note=${`${more ? `the last ${count(most)} of ` : ""}${count(rows.length)} whose logs are kept`} flush><${EndedWorkers} rows=${rows.slice(0, most)} isOfAll=${isOfAll} />${more}<//>`;
}
