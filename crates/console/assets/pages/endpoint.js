// One endpoint: what it does now, why it does not, its workers and its newest requests.
import { html } from "../dom.js";
import { endpointPath, href, place } from "../router.js";
import { count, duration, percent, rate } from "../format.js";
import { newestPath, oldestOf, times, useAttention, useEndpoint, useLastHalfHour } from "../fleet.js";
import { may, money } from "../session.js";
import { refresh, useRead } from "../store.js";
import { useHistory } from "../timeline.js";
import { workersPath } from "../worker_actions.js";
import { Card, Empty, Failed, Gauge, Gauges, Loading } from "../ui/card.js";
import { HistoryCharts, KINDS, SERIES } from "../ui/history_charts.js";
import { EndpointHead } from "../ui/endpoint_head.js";
import { CHARTS_FORWARDED, Forwarded, isForwarded, SERIES_FORWARDED } from "../ui/forwarded.js";
import { Failures } from "../ui/failures.js";
import { JobTable } from "../ui/job_table.js";
import { METRICS_KINDS } from "../ui/metrics_charts.js";
import { EndpointLoading, NoEndpoint } from "../ui/no_endpoint.js";
import { Objectives } from "../ui/objectives.js";
import Problems from "../ui/problems.js";
import { WorkerTable } from "../ui/worker_table.js";

const NEWEST_MS = 2000;
const COST_MS = 60000;
const SHOWN = 20;
const SERIES_JOBS = [...SERIES.jobs, ...SERIES.endpoint, "chunks"];
const CHARTS = [KINDS.jobs, KINDS.ended, KINDS.delay, KINDS.run, KINDS.workers, KINDS.starts];

export default function Endpoint() {
  const name = place.value.params.endpoint;
  const { endpoint, isReadable, error, health, healthError, rate: speed } = useEndpoint(name);
  const history = useHistory(endpoint?.id ?? null, endpoint?.type === "LB" ? SERIES_FORWARDED : SERIES_JOBS, isReadable && Boolean(endpoint));
  const mayList = Boolean(endpoint) && (may.requests(endpoint.id) || !isReadable);
  const newest = useRead(mayList && !isForwarded(endpoint, health) ? newestPath(endpoint.id) : null, NEWEST_MS);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<${EndpointLoading} name=${name} />`;
  // The counts are all that a key for jobs may read of it.
  if (healthError && !health && !isReadable) return html`<${NoEndpoint} name=${name} error=${healthError} />`;
  if (isForwarded(endpoint, health)) {
    return html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />
      <${Forwarded} endpoint=${endpoint} health=${health} speed=${speed} isReadable=${isReadable} />
      ${isReadable && html`<${HistoryCharts} history=${history} kinds=${CHARTS_FORWARDED} />`}
      ${isReadable && html`<${Card} title="Running workers" flush><${WorkerTable} endpoint=${endpoint} health=${health} /><//>`}`;
  }
  const figures = timesOf(history.data, history.range.name, times(newest.data));
  return html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />
    ${isReadable && html`<${Trouble} id=${endpoint.id} />`}
    <${Figures} endpoint=${endpoint} health=${health} speed=${speed} figures=${figures} jobs=${newest.data?.requests} isReadable=${isReadable} />
    ${isReadable && html`<${Objectives} endpoint=${endpoint} />`}
    ${isReadable && html`<${HistoryCharts} history=${history} kinds=${streams(history.data) ? [...CHARTS, METRICS_KINDS.chunks] : CHARTS} />`}
    ${isReadable && html`<${Failures} endpoint=${endpoint} hasFailures=${(health?.jobs.failed ?? 0) > 0} />`}
    ${mayList && html`<${Card} title="Newest requests" flush actions=${html`<a class="button quiet small" href=${href(`${endpointPath(endpoint)}/requests`)}>All requests</a>`}>
      ${newest.error && !newest.data ? html`<${Failed} error=${newest.error} onRetry=${() => refresh(newestPath(endpoint.id))} />` : !newest.data ? html`<${Loading} rows=${6} />` : html`<${Newest} endpoint=${endpoint} jobs=${newest.data.requests} />`}
    <//>`}
    ${isReadable && html`<${Card} title="Running workers" flush><${WorkerTable} endpoint=${endpoint} health=${health} /><//>`}`;
}

/** Whether jobs streamed in the range. @param {import("../timeline.js").History | undefined} history */
const streams = (history) => Boolean(history?.series.chunks?.some(Boolean));

/** @param {{id: string}} props */
const Trouble = ({ id }) => html`<${Problems} problems=${useAttention(id)} />`;

/**
 * @typedef {{delayP50: number | null, delayP95: number | null, runP50: number | null, runP95: number | null, failed: number | null, ended: number | null, of: string, starts: number | null, startP50: number | null}} Times
 *   `of` says what the figures are of
 */

/**
 * The times of the chosen range; of the newest jobs for a key that may not read the history.
 * @param {import("../timeline.js").History | undefined} history
 * @param {string} name of the range
 * @param {import("../fleet.js").Times | null} newest
 * @returns {Times | null}
 */
function timesOf(history, name, newest) {
  if (!history) return newest && { ...newest, of: `of the newest ${count(newest.ended)}`, starts: null, startP50: null };
  const { delayP50Ms, delayP95Ms, runP50Ms, runP95Ms, completed, failed, timedOut } = history.total;
  const bad = failed === null ? null : failed + (timedOut ?? 0);
  return { delayP50: delayP50Ms, delayP95: delayP95Ms, runP50: runP50Ms, runP95: runP95Ms, failed: bad, ended: bad === null ? null : bad + (completed ?? 0), of: name ? `in ${name}` : "in this range", starts: history.total.starts, startP50: history.total.startP50Ms };
}

/** @param {{endpoint: Endpoint, health: Health | undefined, speed: any, figures: Times | null, jobs: any[] | undefined, isReadable: boolean}} props */
function Figures({ endpoint, health, speed, figures, jobs, isReadable }) {
  const failed = figures?.ended ? (figures.failed ?? 0) / figures.ended : null;
  const { inQueue } = health?.jobs ?? {};
  const past = useLastHalfHour().get(endpoint.id);
  const waiting = jobs?.filter((job) => job.status === "IN_QUEUE") ?? [];
  // The newest jobs have the oldest one that waits only if they have all that wait.
  const oldest = waiting.length > 0 && waiting.length === inQueue ? Date.now() - Date.parse(waiting.at(-1).createdAt) : oldestOf(endpoint.id, health, past);
  const total = health ? health.workers.idle + health.workers.running + health.workers.initializing : null;
  return html`<${Gauges}>
    <${Gauge} name="Waiting" value=${count(inQueue)} note=${inQueue === 0 ? "nothing waits" : oldest ? `oldest ${duration(oldest)}` : ""} />
    <${Gauge} name="Running" value=${count(health?.jobs.inProgress)} note=${isReadable ? `on ${count(health?.workers.running)} of ${count(total)} workers` : ""} />
    <${Gauge} name="Delay p50" value=${duration(figures?.delayP50)} note=${`p95 ${duration(figures?.delayP95)}`} />
    <${Gauge} name="Run p50" value=${duration(figures?.runP50)} note=${`p95 ${duration(figures?.runP95)}`} />
    <${Gauge} name="Finished" value=${rate(speed && speed.completed + speed.failed)} unit="a second" note=${`${count(health?.jobs.completed)} completed in all`} />
    <${Gauge} name="Failed" value=${percent(failed)} unit="%" bad=${(failed ?? 0) > 0} note=${figures && figures.ended !== null ? `${count(figures.failed)} of ${count(figures.ended)} ${figures.of}` : ""} />
    ${isReadable && html`<${Gauge} name="Cold starts" value=${count(figures?.starts)} note=${figures?.startP50 ? `p50 ${duration(figures.startP50)}` : figures?.of ?? ""} />`}
    ${isReadable && html`<${Cost} endpoint=${endpoint} />`}
  <//>`;
}

/** What its workers cost in an hour, and what they cost today; nothing without prices. @param {{endpoint: Endpoint}} props */
function Cost({ endpoint }) {
  const workers = useRead(workersPath(endpoint), COST_MS).data;
  const today = new Date().toISOString().slice(0, 10);
  const bill = useRead(may.everyRead.value ? `/v1/billing/endpoints?bucketSize=day&endpointId=${encodeURIComponent(endpoint.id)}&startTime=${today}T00:00:00Z` : null, COST_MS).data;
  const sum = (/** @type {any[] | undefined} */ list, /** @type {string} */ name) => list?.reduce((total, one) => total + (one[name] ?? 0), 0) ?? 0;
  const [hourly, daily] = [sum(workers, "costPerHr"), sum(bill, "amount")];
  if (!hourly && !daily) return null;
  return html`<${Gauge} name="Cost" value=${money(hourly)} unit="an hour" note=${bill ? `${money(daily)} today` : ""} />`;
}

/** @param {{endpoint: Endpoint, jobs: any[]}} props */
function Newest({ endpoint, jobs }) {
  if (jobs.length > 0) return html`<${JobTable} endpoint=${endpoint} jobs=${jobs.slice(0, SHOWN)} />`;
  const kept = endpoint.resultRetentionMs ? html` Finished ones are kept ${duration(endpoint.resultRetentionMs)}; <span class="mono">resultRetentionMs</span> changes that.` : "";
  return html`<${Empty}><p>No job is here.${kept}</p>${may.jobs(endpoint.id) && html`<p>Run one with the button above, or send one with “Copy as”.</p>`}<//>`;
}
