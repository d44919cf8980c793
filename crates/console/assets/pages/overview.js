// Is everything all right, and if not, what?
import { html } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { count, rate, shortId } from "../format.js";
import { useAttention } from "../attention.js";
import { useBillOfToday, useFleet } from "../fleet.js";
import { may, money } from "../session.js";
import { refresh, useRead, useReads } from "../store.js";
import { useHistory } from "../timeline.js";
import { Card, Empty, Failed, Gauge, Gauges, Loading } from "../ui/card.js";
import { CodeLine } from "../ui/copy.js";
import { EndpointTable, workersOf } from "../ui/endpoint_table.js";
import { HistoryCharts, SERIES } from "../ui/history_charts.js";
import { Problems } from "../ui/problems.js";
import { JobState } from "../ui/state.js";
import { Age } from "../ui/time.js";

const NEWS_MAX = 8;
/** More endpoints are on their own page. */
const ROWS_MAX = 50;
const KINDS = ["jobs", "ended", "delay", "workers"];
const MACHINES_MS = 60000;

export default function Overview() {
  const { rows, error } = useFleet({ withTimes: true });
  if (error && !rows) return html`<h1>Overview</h1><${Failed} error=${error} onRetry=${() => refresh("/v1/endpoints")} />`;
  if (!rows) return html`<h1>Overview</h1><${Loading} rows=${6} />`;
  if (rows.length === 0) return html`<h1>Overview</h1><${FirstEndpoint} />`;
  return html`<h1 class="offscreen">Overview</h1>
    <${Attention} />
    <${Totals} rows=${rows} />
    <${Charts} />
    <${Card} title="Endpoints" note=${rows.length > 1 ? count(rows.length) : undefined} flush actions=${html`<a class="button quiet small" href=${href("/endpoints")}>All endpoints</a>`}>
      <${EndpointTable} rows=${rows.slice(0, ROWS_MAX)} />
    <//>
    <${JustNow} rows=${rows} />`;
}

const Attention = () => html`<${Problems} problems=${useAttention()} />`;

/** @param {{rows: import("../fleet.js").Row[]}} props */
function Totals({ rows }) {
  const sum = (/** @type {(row: import("../fleet.js").Row) => number | null | undefined} */ of) => {
    const known = rows.map(of).filter((value) => value !== null && value !== undefined);
    return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
  };
  const bill = useBillOfToday();
  const machines = useRead(may.everyRead.value ? "/v1/machines" : null, MACHINES_MS).data;
  const gpus = machines?.flatMap((/** @type {any} */ machine) => machine.gpus) ?? [];
  const ended = sum(({ times }) => times?.ended);
  const failed = sum(({ times }) => times?.failed);
  const cost = bill?.reduce((total, record) => total + record.amount, 0);
  return html`<${Gauges}>
    <${Gauge} name="Waiting" value=${count(sum(({ health }) => health?.jobs.inQueue))} unit="jobs" />
    <${Gauge} name="Running" value=${count(sum(({ health }) => health?.jobs.inProgress))} unit="jobs" />
    <${Gauge} name="Completed" value=${rate(sum((row) => row.rate?.completed))} unit="a second" />
    <${Gauge} name="Failed" value=${count(failed)} unit=${`of the newest ${count(ended)}`} bad=${(failed ?? 0) > 0} />
    <${Gauge} name="Workers" value=${count(sum(({ health }) => workersOf(health)))} unit=${`of ${count(sum(({ endpoint }) => endpoint.workersMax))}`} />
    ${gpus.length > 0 && html`<${Gauge} name="GPUs" value=${count(gpus.filter((/** @type {any} */ gpu) => gpu.worker).length)} unit=${`of ${count(gpus.length)}`} />`}
    ${bill && html`<${Gauge} name="Cost today" value=${money(cost)} note="at the set prices" />`}
  <//>`;
}

/** What all endpoints did together. */
function Charts() {
  const history = useHistory(null, [...SERIES.jobs, "workersIdle", "workersRunning", "workersStarting"], may.readsAny.value);
  return may.readsAny.value ? html`<${HistoryCharts} history=${history} kinds=${KINDS} />` : null;
}

/** The newest jobs that did not complete. @param {{rows: import("../fleet.js").Row[]}} props */
function JustNow({ rows }) {
  const all = rows.flatMap(({ endpoint, times }) => (times?.jobs ?? []).map((job) => ({ endpoint, job })));
  const failures = all.filter(({ job }) => ["FAILED", "TIMED_OUT"].includes(job.status));
  failures.sort((a, b) => (a.job.completedAt < b.job.completedAt ? 1 : -1));
  const shown = failures.slice(0, NEWS_MAX);
  // Events tell that a job failed, and not why.
  const statusOf = (/** @type {{endpoint: any, job: any}} */ { endpoint, job }) => `/v2/${encodeURIComponent(endpoint.id)}/status/${job.id}`;
  const errors = useReads(shown.filter(({ job }) => job.error === undefined).map(statusOf), Infinity);
  if (shown.length === 0) return null;
  return html`<${Card} title="Newest failures" flush><ul class="news">
    ${shown.map(({ endpoint, job }) => html`<li key=${job.id}><a href=${href(`${endpointPath(endpoint)}/requests/${job.id}`)}>
      <${JobState} status=${job.status} /><span class="news-name">${endpoint.name} <span class="mono dim">${shortId(job.id)}</span></span>
      <span class="news-text dim">${firstLine(job.error ?? errors.get(statusOf({ endpoint, job }))?.data?.error)}</span><span class="dim"><${Age} at=${job.completedAt} /></span></a></li>`)}
  </ul><//>`;
}

/** What went wrong, in a line: the SDK's message or the end of the text. @param {string | undefined} error */
function firstLine(error) {
  if (!error) return "";
  try {
    const { error_message: message } = JSON.parse(error);
    if (message) return String(message).split("\n")[0];
  } catch {
    // A text of the server or of another worker.
  }
  return error.trim().split("\n").at(-1) ?? "";
}

/** Three ways to the first endpoint. */
function FirstEndpoint() {
  return html`<${Empty}>
    <h2>No endpoint yet</h2>
    <p>An endpoint is a queue of jobs with the workers that run them. Three ways lead to the first one.</p>
    <p>Run a folder with a handler here, and change it while it runs:</p><${CodeLine} text="longshore dev examples/hello" />
    <p>Put a folder on this server:</p><${CodeLine} text="longshore deploy examples/hello" />
    ${may.everything.value ? html`<p>Or make it here, from a command, an image or a template:</p><a class="button" href=${href("/new-endpoint")}>New endpoint</a>` : html`<p>Or create it with a template of your own:</p><${CodeLine} text="longshore endpoint create hello --template my-template" />`}
  <//>`;
}

