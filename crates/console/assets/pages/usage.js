// How long workers ran, for whom, and what that cost by the prices of the settings.
import { html, useMemo, useState } from "../dom.js";
import { href, place, setQuery } from "../router.js";
import { count, percent } from "../format.js";
import { GROUPINGS, RANGES, bucketName, bucketsOf, busyOf, csv, forecast, sumsOf, workerTime } from "../billing.js";
import { useEndpointList } from "../fleet.js";
import { saveFile } from "../csv.js";
import { may, money } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Bars } from "../ui/bars.js";
import { Button } from "../ui/button.js";
import { Alert, Card, Empty, Failed, Gauge, Gauges, LoadingPage } from "../ui/card.js";

/** @typedef {import("../billing.js").BillingRecord} BillingRecord */

const ROOT = "/v1/billing/endpoints";
const READ_MS = 60000;
const MINUTE_MS = 60000;
const GAUGES = ["Cost", "Time of workers", "Busy", "Time of GPUs", "This month"];
/** Rows that are shown at first; a press shows all. */
const GROUPS = 100;
const LONGEST = RANGES[RANGES.length - 1];

export default function Usage() {
  const head = html`<div class="head"><h1>Usage and cost</h1><p class="dim">The time that workers ran, whether or not they had a job. Days and hours are those of UTC.</p></div>`;
  if (!may.everyRead.value) return html`${head}<${Empty}><p>Only a key that reads all endpoints may see the usage.</p><//>`;
  return html`${head}<${Shown} />`;
}

function Shown() {
  const { query } = place.value;
  const range = RANGES.find(({ name }) => name === query.get("range")) ?? RANGES[1];
  const grouping = GROUPINGS.find(({ name }) => name === query.get("by")) ?? GROUPINGS[0];
  // To the minute, so that the records are not read with every render.
  const now = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const buckets = bucketsOf(range, now);
  const path = (/** @type {string} */ by) => `${ROOT}?bucketSize=${range.bucket}&grouping=${by}&startTime=${new Date(buckets[0]).toISOString()}`;
  const { data, error } = useRead(path(grouping.name), READ_MS);
  // Only records by endpoint have the busy time.
  const ofEndpoints = useRead(path("endpointId"), READ_MS).data;
  // Only records by type say for which type no price is set.
  const ofTypes = useRead(path("gpuTypeId"), READ_MS).data;
  const names = useNames(grouping.name);
  const { sums, isPriced, values } = useMemo(() => shownOf(data ?? [], grouping, buckets), [data, grouping, buckets[0]]);
  const filters = html`<section class="card" aria-label="What is shown"><div class="filters">
    <div class="chips" role="group" aria-label="Time">${RANGES.map(({ name }) => html`<button type="button" key=${name} class="chip" aria-pressed=${range.name === name} onClick=${() => setQuery({ range: name })}>${name}</button>`)}</div>
    <div class="chips" role="group" aria-label="By">${GROUPINGS.map(({ name, word }) => html`<button type="button" key=${name} class="chip" aria-pressed=${grouping.name === name} onClick=${() => setQuery({ by: name })}>${word}</button>`)}</div>
    <span class="grow"></span><${Button} kind="quiet" icon="download" disabled=${!data || data.length === 0} why="Nothing was metered in this range." onClick=${() => download(data)}>CSV<//>
  </div></section>`;
  if (error && !data) return html`${filters}<${Failed} error=${error} onRetry=${() => refresh(ROOT)} />`;
  if (!data) return html`${filters}<${LoadingPage} gauges=${GAUGES} cards=${["Time of workers", titleOf(grouping)]} />`;
  const records = /** @type {BillingRecord[]} */ (data);
  const groups = sums.map(({ id }) => ({ name: names(id), values: values.get(id) ?? [] }));
  return html`${filters}
    <${Totals} records=${records} busy=${ofEndpoints ? busyOf(ofEndpoints) : null} now=${now} range=${range} />
    <${NoPrice} records=${ofTypes ?? []} />
    <${Bars} title=${isPriced ? "Cost" : "Time of workers"} buckets=${buckets.map((start) => bucketName(range, start))} groups=${groups} shown=${isPriced ? money : workerTime} empty="No worker ran in this range." />
    <${Groups} key=${grouping.name} sums=${sums} grouping=${grouping} names=${names} range=${range} />`;
}

/**
 * The sums of each group, and what each bucket has of it: the cost, or without any price the time.
 * @param {BillingRecord[]} records @param {import("../billing.js").Grouping} grouping @param {number[]} buckets
 */
function shownOf(records, grouping, buckets) {
  const sums = sumsOf(records, grouping);
  const isPriced = records.some(({ amount }) => amount > 0);
  const values = new Map(sums.map(({ id }) => [id, buckets.map(() => 0)]));
  const at = new Map(buckets.map((start, place) => [start, place]));
  for (const record of records) {
    const bucket = at.get(Date.parse(record.time));
    const own = values.get(grouping.of(record));
    if (own && bucket !== undefined) own[bucket] += isPriced ? record.amount : record.timeBilledMs;
  }
  return { sums, isPriced, values };
}

/** Names for ids of endpoints and keys. @param {string} grouping @returns {(id: string) => string} */
function useNames(grouping) {
  const endpoints = useEndpointList(30000).data ?? [];
  const keys = useRead(grouping === "key" && may.everything.value ? "/v1/apikeys" : null, READ_MS).data ?? [];
  const known = useMemo(() => new Map([...endpoints, ...keys].map(({ id, name }) => [id, name])), [endpoints, keys]);
  return (id) => (id === "" ? (grouping === "podId" ? "older workers" : "no job ended") : (known.get(id) ?? id));
}

/** @param {{records: BillingRecord[], busy: number | null, now: number, range: import("../billing.js").Range}} props */
function Totals({ records, busy, now, range }) {
  const ms = records.reduce((sum, { timeBilledMs }) => sum + timeBilledMs, 0);
  const amount = records.reduce((sum, record) => sum + record.amount, 0);
  const gpuMs = records.reduce((sum, record) => sum + (record.gpuMs ?? 0), 0);
  const monthStart = new Date(now).toISOString().slice(0, 7);
  const month = /** @type {BillingRecord[] | undefined} */ (useRead(`${ROOT}?bucketSize=day&startTime=${monthStart}-01T00:00:00.000Z`, READ_MS).data);
  const soFar = month?.reduce((sum, record) => sum + record.amount, 0);
  const expected = month && forecast(month, now);
  return html`<${Gauges}>
    <${Gauge} name="Cost" value=${money(amount)} note=${`in ${range.name}`} />
    <${Gauge} name="Time of workers" value=${workerTime(ms)} note=${`in ${range.name}`} />
    <${Gauge} name="Busy" value=${percent(busy)} unit=${busy === null ? undefined : "%"} note=${busy === null ? "not recorded yet" : "of the workers' time had a job"} />
    <${Gauge} name="Time of GPUs" value=${gpuMs > 0 ? workerTime(gpuMs) : "–"} note=${gpuMs > 0 ? `in ${range.name}` : "none recorded"} />
    <${Gauge} name="This month" value=${soFar === undefined ? "–" : money(soFar)} note=${expected ? `${money(expected)} if it goes on so` : "no forecast yet"} />
  <//>`;
}

/** The server's name for the type of workers without a GPU. */
const NO_GPU = "CPU";

/** That time was metered that cost nothing: the records do not say whether no price is set, or 0. @param {{records: BillingRecord[]}} props `records` are those by type */
function NoPrice({ records }) {
  const free = records.filter(({ amount, timeBilledMs }) => amount === 0 && timeBilledMs >= 1000);
  if (free.length === 0) return null;
  const types = [...new Set(free.map(({ gpuTypeId }) => (gpuTypeId === NO_GPU ? "workers without a GPU (cpu)" : gpuTypeId)).filter(Boolean))];
  return html`<${Alert} tone="warn" title="A part of the time costs nothing"><p>${types.length > 0 ? `The price is 0 or not set for ${types.join(", ")}.` : "The price of some workers is 0 or not set."} Prices an hour are in <span class="mono">[prices]</span> of the server's settings, by GPU type; <span class="mono">cpu</span> is a worker without a GPU.</p><//>`;
}

/** The title of the groups, such as `By endpoint` or `By GPU type`. @param {import("../billing.js").Grouping} grouping */
const titleOf = ({ word }) => `By ${word.startsWith("GPU") ? word : word.toLowerCase()}`;

/** @param {{sums: import("../billing.js").Sum[], grouping: import("../billing.js").Grouping, names: (id: string) => string, range: import("../billing.js").Range}} props */
function Groups({ sums, grouping, names, range }) {
  const isOfEndpoints = grouping.name === "endpointId";
  const [most, setMost] = useState(GROUPS);
  const all = sums.reduce((sum, { ms }) => sum + ms, 0);
  const hasJobs = grouping.name === "owner" || grouping.name === "key";
  if (sums.length === 0) return html`<${Card} title=${titleOf(grouping)} flush><${Empty}><p>No worker ran in this range. The time of those that do will be here, with its cost.</p>${range !== LONGEST && html`<${Button} onClick=${() => setQuery({ range: LONGEST.name })}>Show ${LONGEST.name}<//>`}<//><//>`;
  return html`<${Card} title=${titleOf(grouping)} note=${count(sums.length)} flush><div class="table-box" tabindex="0"><table class="table">
    <thead><tr><th scope="col">${grouping.word}</th>${hasJobs && html`<th scope="col" class="num">Jobs</th>`}<th scope="col" class="num">Time of workers</th><th scope="col" class="num opt2">Of all</th>${isOfEndpoints && html`<th scope="col" class="num opt2" title="Of the time of its workers">Busy</th>`}<th scope="col" class="num">Cost</th></tr></thead>
    <tbody>${sums.slice(0, most).map(({ id, ms, amount, jobs, busy }) => html`<tr key=${id}>
      <th scope="row">${isOfEndpoints ? html`<a href=${href(`/endpoints/${encodeURIComponent(id)}`)}>${names(id)}</a>` : names(id)}</th>
      ${hasJobs && html`<td class="num">${count(jobs)}</td>`}<td class="num">${workerTime(ms)}</td><td class="num opt2">${all > 0 ? `${percent(ms / all)} %` : "–"}</td>${isOfEndpoints && html`<td class="num opt2">${share(busy)}</td>`}<td class="num">${money(amount)}</td></tr>`)}</tbody>
  </table></div>${sums.length > most && html`<${Button} kind="small" onClick=${() => setMost(Infinity)}>${count(sums.length - most)} more<//>`}<//>`;
}

/** @param {number | null} ratio */
const share = (ratio) => (ratio === null ? "–" : `${percent(ratio)} %`);

/** @param {BillingRecord[]} records */
function download(records) {
  saveFile("longshore-usage.csv", [csv(records)], "text/csv");
}
