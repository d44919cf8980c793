// The workers of one endpoint, or of all: those that run, and those that ended lately.
import { html } from "../dom.js";
import { href, place } from "../router.js";
import { count } from "../format.js";
import { useEndpoint, useEndpointList } from "../fleet.js";
import { may, money } from "../session.js";
import { refresh, useReads } from "../store.js";
import { tryNow } from "../worker_actions.js";
import { Button } from "../ui/button.js";
import { Alert, Card, Empty, Failed, Gauge, Gauges, Loading } from "../ui/card.js";
import { EndpointHead, NoEndpoint } from "../ui/endpoint_head.js";
import { DrainAll } from "../ui/drain_all.js";
import { attempt } from "../ui/toast.js";
import { EndedWorkers, whyNone, Workers, workersPath } from "../ui/worker_table.js";
import { WorkerToken } from "../ui/worker_token.js";

const READ_MS = 3000;
/** A page over more endpoints would ask too often. */
const ENDPOINTS_MAX = 50;
const ENDED_MAX = 100;

export default function WorkersPage() {
  return place.value.params.endpoint ? html`<${OfOne} name=${place.value.params.endpoint} />` : html`<${OfAll} />`;
}

/** @param {{name: string}} props */
function OfOne({ name }) {
  const { endpoint, isReadable, error, health } = useEndpoint(name);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<h1>${name}</h1><${Loading} rows=${6} />`;
  const head = html`<${EndpointHead} endpoint=${endpoint} health=${health} isReadable=${isReadable} />`;
  if (!isReadable) return html`${head}<${Empty}><p>This key may not see the workers.</p><//>`;
  return html`${head}<${Crashes} endpoint=${endpoint} health=${health} /><${Tables} endpoints=${[endpoint]} none=${whyNone(endpoint, health)} drain=${(/** @type {any[]} */ workers) => html`<${DrainAll} endpoint=${endpoint} workers=${workers} health=${health} />`} />
    ${endpoint.provider === "external" && may.change(endpoint.id) && html`<${WorkerToken} endpoint=${endpoint} />`}`;
}

/** That workers crash, with the button that tries again. @param {{endpoint: any, health: any}} props */
function Crashes({ endpoint, health }) {
  const reason = health?.workers.unhealthy > 0 && health.reasons?.unhealthy;
  if (!reason) return null;
  const act = may.change(endpoint.id) && html`<${Button} icon="retry" onClick=${() => attempt(() => tryNow(endpoint), "The next worker starts now, if jobs wait for one.")}>Try now<//>`;
  return html`<${Alert} tone="bad" title="Workers crash while they start" actions=${act}><p>${reason}</p><//>`;
}

function OfAll() {
  const { data, error } = useEndpointList(10000);
  const note = data && data.length > ENDPOINTS_MAX ? `Of the first ${ENDPOINTS_MAX} of ${count(data.length)} endpoints.` : "What runs the jobs of all endpoints.";
  const head = html`<div class="head"><h1>Workers</h1><p class="dim">${note}</p></div>`;
  if (!may.readsAny.value) return html`${head}<${Empty}><p>This key may not see the workers.</p><//>`;
  if (error && !data) return html`${head}<${Failed} error=${error} onRetry=${() => refresh("/v1/endpoints")} />`;
  if (!data) return html`${head}<${Loading} rows=${6} />`;
  if (data.length === 0) return html`${head}<${Empty}><p>No endpoint is here yet, so no worker is.</p><a class="button" href=${href("/endpoints")}>Endpoints</a><//>`;
  return html`${head}<${Tables} endpoints=${data.slice(0, ENDPOINTS_MAX)} isOfAll none="None is needed." />`;
}

/** @param {{endpoints: any[], isOfAll?: boolean, none: string, drain?: (workers: any[]) => any}} props `drain` is the button for all workers of one endpoint */
function Tables({ endpoints, isOfAll = false, none, drain }) {
  const reads = useReads(endpoints.map((endpoint) => workersPath(endpoint, true)), Math.max(READ_MS, endpoints.length * 200));
  const answers = endpoints.map((endpoint) => ({ endpoint, read: reads.get(workersPath(endpoint, true)) }));
  const failed = answers.find(({ read }) => read?.error && !read.data);
  if (failed) return html`<${Failed} error=${failed.read?.error} onRetry=${() => refresh("/v1/endpoints")} />`;
  if (answers.some(({ read }) => !read?.data)) return html`<${Loading} rows=${4} />`;
  const rows = answers.flatMap(({ endpoint, read }) => read?.data.map((/** @type {any} */ worker) => ({ endpoint, worker })));
  const running = rows.filter(({ worker }) => worker.status !== "EXITED");
  const ended = rows.filter(({ worker }) => worker.status === "EXITED");
  ended.sort((a, b) => ((a.worker.endedAt ?? "") < (b.worker.endedAt ?? "") ? 1 : -1));
  const cost = running.reduce((sum, { worker }) => sum + (worker.costPerHr ?? 0), 0);
  const number = (/** @type {string} */ status) => running.filter(({ worker }) => worker.status === status).length;
  return html`<${Gauges}>
      <${Gauge} name="Running jobs" value=${count(number("RUNNING"))} unit="workers" />
      <${Gauge} name="Idle" value=${count(number("IDLE"))} unit="workers" />
      <${Gauge} name="Starting" value=${count(number("INITIALIZING"))} unit="workers" />
      <${Gauge} name="Waiting for a GPU" value=${count(number("THROTTLED"))} bad=${number("THROTTLED") > 0} unit="workers" />
      ${cost > 0 && html`<${Gauge} name="Cost" value=${money(cost)} unit="an hour" />`}
    <//>
    <${Card} title="Running" note=${count(running.length)} flush actions=${running.length > 0 && drain?.(running.map(({ worker }) => worker))}>
      ${running.length === 0 ? html`<${Empty}><p>No worker runs. ${none}</p><//>` : html`<${Workers} rows=${running} isOfAll=${isOfAll} />`}
    <//>
    ${ended.length > 0 && html`<${Card} title="Ended" note=${`the last ${count(Math.min(ended.length, ENDED_MAX))} whose logs are kept`} flush><${EndedWorkers} rows=${ended.slice(0, ENDED_MAX)} isOfAll=${isOfAll} /><//>`}`;
}
