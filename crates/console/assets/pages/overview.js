// Is everything all right, and if not, what?
import { html } from "../dom.js";
import { href } from "../router.js";
import { count, rate } from "../format.js";
import { useAttention } from "../fleet.js";
import { useBillOfToday, useFleet } from "../fleet.js";
import { may, money } from "../session.js";
import { refresh, useRead } from "../store.js";
import { useHistory } from "../timeline.js";
import { Card, Failed, Gauge, Gauges, LoadingPage } from "../ui/card.js";
import { EndpointTable, workersOf } from "../ui/endpoint_table.js";
import { HistoryCharts, KINDS, SERIES } from "../ui/history_charts.js";
import { Later } from "../load.js";

/** More endpoints are searched: `SHORT` of `list_search.js`. */
const SHORT = 7;
const CHARTS = [KINDS.jobs, KINDS.ended, KINDS.delay, KINDS.workers];
const MACHINES_MS = 60000;
const GAUGES = ["Waiting", "Running", "Finished", "Failed", "Workers"];

export default function Overview() {
  const { rows, error } = useFleet();
  const history = useHistory(null, [...SERIES.jobs, "workersIdle", "workersRunning", "workersStarting"], may.readsAny.value);
  if (error && !rows) return html`<h1>Overview</h1><${Failed} error=${error} onRetry=${() => refresh("/v1/endpoints")} />`;
  const charts = may.readsAny.value && html`<${HistoryCharts} history=${history} kinds=${CHARTS} />`;
  if (!rows) return html`<h1 class="offscreen">Overview</h1><${LoadingPage} gauges=${GAUGES} cards=${["Endpoints"]}>${charts}<//>`;
  if (rows.length === 0) return html`<h1>Overview</h1><${Later} address="./ui/first_endpoint.js" />`;
  return html`<h1 class="offscreen">Overview</h1>
    <${Attention} />
    <${Totals} rows=${rows} history=${history} />
    ${charts}
    ${rows.length > SHORT ? html`<${Later} address="./ui/searched_endpoints.js" props=${{ rows, card }} />` : card(rows.length > 1 ? count(rows.length) : undefined, html`<${EndpointTable} rows=${rows} />`)}
    <${Later} address="./ui/just_now.js" props=${{ rows }} />`;
}

/** @param {string | undefined} note @param {any} content */
const card = (note, content) => html`<${Card} title="Endpoints" note=${note} flush actions=${html`<a class="button quiet small" href=${href("/endpoints")}>All endpoints</a>`}>${content}<//>`;

/** Most servers have no problem, and do not load how one looks. */
function Attention() {
  const problems = useAttention();
  return problems.length > 0 && html`<${Later} address="./ui/problems.js" props=${{ problems }} />`;
}

/** @param {{rows: import("../fleet.js").Row[], history: ReturnType<typeof useHistory>}} props */
function Totals({ rows, history }) {
  const sum = (/** @type {(row: import("../fleet.js").Row) => number | null | undefined} */ of) => {
    const known = rows.map(of).filter((value) => value !== null && value !== undefined);
    return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
  };
  const bill = useBillOfToday();
  const machines = useRead(may.everyRead.value ? "/v1/machines" : null, MACHINES_MS).data;
  const gpus = machines?.flatMap((/** @type {Machine} */ machine) => machine.gpus) ?? [];
  const total = history.data?.total;
  const failed = total ? total.failed === null ? null : total.failed + total.timedOut : sum(({ times }) => times?.failed);
  const of = total ? `in ${history.range.name || "this range"}` : `of the newest ${count(sum(({ times }) => times?.ended))}`;
  const cost = bill?.reduce((total, record) => total + record.amount, 0);
  // Without prices, time costs nothing.
  const isPriced = cost || !bill?.some(({ timeBilledMs }) => timeBilledMs);
  return html`<${Gauges}>
    <${Gauge} name="Waiting" value=${count(sum(({ health }) => health?.jobs.inQueue))} unit="jobs" />
    <${Gauge} name="Running" value=${count(sum(({ health }) => health?.jobs.inProgress))} unit="jobs" />
    <${Gauge} name="Finished" value=${rate(sum(({ rate }) => rate && rate.completed + rate.failed))} unit="a second" />
    <${Gauge} name="Failed" value=${count(failed)} unit=${of} bad=${(failed ?? 0) > 0} />
    <${Gauge} name="Workers" value=${count(sum(({ health }) => workersOf(health)))} unit=${`of ${count(sum(({ endpoint }) => endpoint.workersMax))}`} />
    ${gpus.length > 0 && html`<${Gauge} name="GPUs" value=${count(gpus.filter((/** @type {any} */ gpu) => gpu.worker).length)} unit=${`of ${count(gpus.length)}`} />`}
    ${bill && html`<${Gauge} name="Cost today" value=${isPriced ? money(cost) : "–"} note="at the set prices" />`}
  <//>`;
}
