// Everything that the server recorded of an endpoint over time: charts, and the figures beside those of the time before.
import { html, useRef } from "../dom.js";
import { place, setQuery } from "../router.js";
import { count, duration, percent, size } from "../format.js";
import { costsOf } from "../billing.js";
import { useEndpoint } from "../fleet.js";
import { may, money } from "../session.js";
import { useRead } from "../store.js";
import { currentRange, useHistory, useHistoryBefore, zoom } from "../timeline.js";
import { Button } from "../ui/button.js";
import { Card, Empty } from "../ui/card.js";
import { Chart } from "../ui/chart.js";
import { EndpointHead } from "../ui/endpoint_head.js";
import { HistoryCharts, KINDS, SERIES } from "../ui/history_charts.js";
import { FAILURE_KINDS, LIMITED, METRICS_KINDS, METRICS_SERIES } from "../ui/metrics_charts.js";
import { EndpointLoading, NoEndpoint } from "../ui/no_endpoint.js";
import { Objectives } from "../ui/objectives.js";

/** @typedef {Record<string, number | null>} Totals */
/**
 * @typedef {{name: string, of: (total: Totals) => number | null, shown: (value: number | null) => string, isRare?: boolean, needs?: string}} Row
 * `isRare`: shown if it happened · `needs`: a series without which it is not shown
 */

const { submitted, limited, bad, kinds, delays, runs, ready, cold, busy, gpus, gpuUse, bytes, chunks, webhooks } = METRICS_KINDS;
const CHARTS = [KINDS.jobs, submitted, KINDS.ended, limited, bad, kinds, delays, runs, KINDS.workers, ready, KINDS.starts, cold, busy, gpus, gpuUse, bytes, chunks, webhooks];
const HOUR_MS = 3600000;
/** The hour that goes on costs more each minute. */
const COSTS_MS = 60000;
const ALL = [...new Set([...SERIES.jobs, ...SERIES.endpoint, ...METRICS_SERIES])];

export default function Metrics() {
  const name = place.value.params.endpoint;
  const { endpoint, isReadable, error, health, healthError } = useEndpoint(name);
  const isCompared = place.value.query.get("compare") === "1";
  const history = useHistory(endpoint?.id ?? null, [...ALL, "delayCells"], isReadable && Boolean(endpoint));
  const before = useTotalBefore(endpoint?.id ?? null, isReadable && Boolean(endpoint) && isCompared);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<${EndpointLoading} name=${name} />`;
  const head = html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />`;
  if (!isReadable) return html`${head}<${Empty}><p>This key may not read the metrics.</p><//>`;
  return html`${head}<${Objectives} endpoint=${endpoint} /><${HistoryCharts} history=${history} kinds=${CHARTS} hasMap more=${html`<${Costs} endpoint=${endpoint} history=${history.data} />`} />
    ${history.data && html`<${Figures} total=${history.data.total} before=${before} isCompared=${isCompared} />`}`;
}

/**
 * The figures of the time before the current range. Those of a range that ends now stay until the next ones are read.
 * @param {string | null} endpoint its id
 * @param {boolean} isAsked
 * @returns {Totals | undefined}
 */
function useTotalBefore(endpoint, isAsked) {
  const { data } = useHistoryBefore(endpoint, ALL, isAsked);
  const of = isAsked ? `${endpoint} ${currentRange().query}` : "";
  const last = useRef({ of, total: /** @type {Totals | undefined} */ (undefined) });
  if (data || last.current.of !== of) last.current = { of, total: data?.total };
  return last.current.total;
}

/**
 * What the workers cost in each hour of the range: the server meters by the hour.
 * @param {{endpoint: Endpoint, history: import("../timeline.js").History | undefined}} props
 */
function Costs({ endpoint, history }) {
  const hours = hoursOf(currentRange());
  const path = `/v1/billing/endpoints?bucketSize=hour&endpointId=${encodeURIComponent(endpoint.id)}&startTime=${hours.from}&endTime=${hours.to}`;
  const { data } = useRead(may.everyRead.value ? path : null, COSTS_MS);
  if (!data || !history) return null;
  const { t, amounts } = costsOf(data, Date.parse(hours.from), Date.parse(hours.to));
  const isPriced = amounts.some((amount) => amount > 0);
  return html`<${Chart} title="Cost an hour" t=${t.map((at) => at / 1000)} lines=${[{ name: "cost", tone: "accent", values: isPriced ? amounts : amounts.map(() => null), isStepped: true, isFilled: true }]} unit=${money}
    note="at the set prices" onZoom=${(/** @type {number} */ from, /** @type {number} */ to) => zoom(from * 1000, to * 1000)} empty="No cost in these hours: no worker ran, or no price is set." />`;
}

/** The whole hours of a range. @param {import("../timeline.js").Range} range */
function hoursOf({ ms, isLive }) {
  const { query } = place.value;
  const to = isLive ? Date.now() : Number(query.get("to"));
  const iso = (/** @type {number} */ at) => new Date(at * HOUR_MS).toISOString();
  return { from: iso(Math.floor((to - ms) / HOUR_MS)), to: iso(Math.floor(to / HOUR_MS) + 1) };
}

/** @param {string} name @returns {(total: Totals) => number | null} */
const of = (name) => (total) => total[name] ?? null;

/** @param {string} part @param {string[]} whole @returns {(total: Totals) => number | null} */
const shareOf = (part, whole) => (total) => {
  const all = whole.reduce((sum, name) => sum + (total[name] ?? 0), 0);
  return all > 0 ? (total[part] ?? 0) / all : null;
};

/** @param {number | null} value */
const share = (value) => (value === null ? "–" : `${percent(value)} %`);

const ENDED = ["completed", "failed", "timedOut"];

/** @type {Row[]} */
const ROWS = [
  { name: "Submitted", of: of("submitted"), shown: count },
  ...LIMITED.map(([name, series]) => ({ name: `Refused, ${name}`, of: of(series), shown: count, isRare: true })),
  { name: "Completed", of: of("completed"), shown: count },
  { name: "Failed", of: of("failed"), shown: count },
  { name: "Failed, of those that ended", of: shareOf("failed", ENDED), shown: share },
  ...FAILURE_KINDS.filter(([, series]) => series !== "timedOut").map(([name, series]) => ({ name: `Failed, ${name}`, of: of(series), shown: count, isRare: true })),
  { name: "Timed out", of: of("timedOut"), shown: count },
  { name: "Cancelled", of: of("cancelled"), shown: count },
  { name: "Attempts repeated", of: of("retried"), shown: count },
  { name: "Delay, p50", of: of("delayP50Ms"), shown: duration },
  { name: "Delay, p90", of: of("delayP90Ms"), shown: duration },
  { name: "Delay, p95", of: of("delayP95Ms"), shown: duration },
  { name: "Delay, p99", of: of("delayP99Ms"), shown: duration },
  { name: "Run time, p50", of: of("runP50Ms"), shown: duration },
  { name: "Run time, p90", of: of("runP90Ms"), shown: duration },
  { name: "Run time, p95", of: of("runP95Ms"), shown: duration },
  { name: "Run time, p99", of: of("runP99Ms"), shown: duration },
  { name: "Cold starts", of: of("starts"), shown: count },
  { name: "Cold start, p50", of: of("startP50Ms"), shown: duration },
  { name: "Cold start, p95", of: of("startP95Ms"), shown: duration },
  { name: "Jobs that met a cold start", of: shareOf("metColdStart", ["delivered"]), shown: share },
  { name: "Time of workers", of: of("paidMs"), shown: duration },
  { name: "Busy part of it", of: shareOf("busyMs", ["paidMs"]), shown: share },
  { name: "Time of GPUs", of: of("gpuMs"), shown: duration },
  { name: "GPU use", of: shareOf("gpuBusyMs", ["gpuReadMs"]), shown: share, needs: "gpuReadMs" },
  { name: "Bytes of inputs", of: of("bytesIn"), shown: size },
  { name: "Bytes of outputs and chunks", of: of("bytesOut"), shown: size },
  { name: "Webhooks delivered", of: of("webhooksDelivered"), shown: count },
  { name: "Webhooks given up", of: of("webhooksFailed"), shown: count },
];

/** @param {{total: Totals, before: Totals | undefined, isCompared: boolean}} props */
function Figures({ total, before, isCompared }) {
  const action = html`<${Button} kind="small" pressed=${isCompared} onClick=${() => setQuery({ compare: isCompared ? null : "1" })}>Compare with the range before<//>`;
  const either = (/** @type {(total: Totals) => number | null} */ valueOf) => valueOf(total) || (before && valueOf(before));
  const rows = ROWS.filter(({ of: valueOf, isRare, needs }) => (!isRare || either(valueOf)) && (!needs || either(of(needs))));
  return html`<${Card} title="Figures of this range" flush actions=${action}><div class="table-box" tabindex="0"><table class="table">
    <thead><tr><th scope="col">Figure</th><th scope="col" class="num">This range</th>${isCompared && html`<th scope="col" class="num">The range before</th><th scope="col" class="num">Change</th>`}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.name}><th scope="row">${row.name}</th><td class="num">${row.shown(row.of(total))}</td>
      ${isCompared && html`<td class="num dim">${before ? row.shown(row.of(before)) : "–"}</td><td class="num">${before ? change(row.of(total), row.of(before)) : "–"}</td>`}</tr>`)}</tbody>
  </table></div><//>`;
}

/** How much more or less, in percent of what was before. @param {number | null} now @param {number | null} was */
function change(now, was) {
  if (now === null || was === null || was === 0) return "–";
  const percents = Math.round((now / was - 1) * 100);
  return `${percents > 0 ? "+" : percents < 0 ? "−" : ""}${Math.abs(percents)} %`;
}
