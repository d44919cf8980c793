// The endpoints with what pages show of them: counts, rates, times of the newest jobs, and what is wrong.
import { useMemo } from "./dom.js";
import { oldest, rates } from "./history.js";
import { may, me } from "./session.js";
import { known, now, useRead, useReads } from "./store.js";

const LIST_MS = 5000;
const COUNTS_MS = 2000;
const UNLISTED_MS = 30000;
/** Events follow the counts, but for reasons and what was missed. */
const ALL_MS = 60000;
const NEWEST_MS = 10000;
const PAST_PATH = "/v1/history?by=endpoint&last=1800000&step=30000&series=completed,oldestMs";
const PAST_MORE = ",failed,timedOut,delayP95Ms,runP50Ms";
const PAST_MS = 30000;
const BILL_MS = 60000;
const PRICED_MS = 15000;
const ATTENTION_MS = 10000;
/** The newest jobs of an endpoint, from which its times are taken, for this number of endpoints. */
export const NEWEST = 50;

/**
 * @typedef {{endpoint: Endpoint, health: Health | undefined, error: any, rate: {completed: number, failed: number} | null, times: Times | null, past: Past | undefined}} Row
 * @typedef {{delayP50: number | null, delayP95: number | null, runP50: number | null, runP95: number | null, failed: number, ended: number, jobs: any[]}} Times
 * @typedef {{completed: (number | null)[], oldestMs: number | null, total: any}} Past
 */

/** @typedef {{id: string, code: string, severity: "bad" | "warn", endpoint: string, slug: string | null, name: string, since: string | null, title: string, text: string, evidence: string[], jobs: number, actions: {do: string, title: string}[]}} Problem */

/** @param {string} id */
export const healthPath = (id) => `/v2/${encodeURIComponent(id)}/health`;

/** @param {string} name */
const recordPath = (name) => `/v1/endpoints/${encodeURIComponent(name)}`;

/** @param {string} id */
export const newestPath = (id) => `/v2/${encodeURIComponent(id)}/requests?limit=${NEWEST}`;

/**
 * The endpoints that the key may see. Of one whose settings it may not read, it sees the names of the address.
 * @returns {{data: any[] | undefined, error: any}}
 */
export function useEndpointList(everyMs = LIST_MS) {
  const read = useRead(may.readsAny.value ? "/v1/endpoints" : null, everyMs);
  const unlisted = useUnlisted();
  const data = useMemo(() => (may.readsAny.value ? read.data && [...read.data, ...unlisted] : unlisted), [read.data, unlisted]);
  return { data, error: read.error };
}

/** The endpoints that the key may use, and whose settings it may not read. @returns {any[]} */
function useUnlisted() {
  const { data = me.value } = useRead(may.everyRead.value ? null : "/v1/me", UNLISTED_MS);
  return useMemo(() => (data?.endpoints ?? []).map((/** @type {{id: string, slug: string | null}} */ { id, slug }) => ({ id, slug, name: id })), [data]);
}

/**
 * All endpoints that the key may see, with their figures.
 * @returns {{rows: Row[] | undefined, error: any}}
 */
export function useFleet() {
  const list = useEndpointList();
  const endpoints = /** @type {any[]} */ (list.data ?? []);
  const counted = endpoints.filter(({ id }) => may.requests(id));
  const { health, unread } = useHealths(counted.map(({ id }) => id));
  const newest = useReads(counted.slice(0, NEWEST).map(({ id }) => newestPath(id)), NEWEST_MS);
  const past = useLastHalfHour(counted.length > NEWEST);
  const rows = endpoints.map((endpoint) => ({
    endpoint,
    health: health.get(healthPath(endpoint.id))?.data,
    error: health.get(healthPath(endpoint.id))?.error ?? unread,
    rate: rates(endpoint.id),
    times: newest.has(newestPath(endpoint.id)) ? times(newest.get(newestPath(endpoint.id))?.data) : pastTimes(past.get(endpoint.id)?.total),
    past: past.get(endpoint.id),
  }));
  return { rows: list.data && rows, error: list.error };
}

/** The counts of each endpoint. Those of many are read in one request, or in two by a key that may not list all. @param {string[]} ids */
function useHealths(ids) {
  const isMany = ids.length > NEWEST;
  const paths = [...(may.readsAny.value ? ["/v1/endpoints"] : []), ...(may.everyRead.value ? [] : ["/v1/me"])];
  const sources = [...useReads(isMany ? paths.map((path) => `${path}?includeHealth=true`) : [], ALL_MS)];
  const reads = sources.map(([, read]) => read);
  const isKnown = reads.every(({ data }) => data);
  const seeds = useMemo(
    () => (isMany && isKnown ? new Map(sources.flatMap(([of, { data, askedAt = 0 }]) => (data.endpoints ?? data).map((/** @type {any} */ { id, health }) => [healthPath(id), { data: health, at: askedAt, of }]))) : undefined),
    [isMany, reads.map(({ askedAt }) => askedAt).join()],
  );
  const health = useReads(isKnown ? ids.map(healthPath) : [], isMany ? Infinity : COUNTS_MS, seeds);
  return { health, unread: reads.find(({ error }) => error)?.error };
}

/**
 * What each endpoint did in the last half hour, by its id: the jobs that completed in each step, and how long the oldest
 * waiting job had waited at the end of the last step, in ms.
 * @param {boolean} [withTimes] in the total
 * @returns {Map<string, Past>}
 */
export function useLastHalfHour(withTimes = false) {
  const { data } = useRead(may.readsAny.value ? PAST_PATH + (withTimes ? PAST_MORE : "") : null, PAST_MS);
  return useMemo(() => new Map((data?.endpoints ?? []).map((/** @type {any} */ { id, series, total }) => [id, { completed: series.completed, oldestMs: series.oldestMs.at(-1) ?? null, total }])), [data]);
}

/** How long the oldest waiting job has waited, in ms: as it was told, or at the end of the last step; null if it is not known. @param {string} id @param {Health | undefined} health @param {Past | undefined} past */
export function oldestOf(id, health, past) {
  if (!health?.jobs.inQueue) return null;
  const at = oldest.get(id);
  return at ? now.value - at : (past?.oldestMs ?? null);
}

/** The times of the last half hour, where they were asked for. @param {any} total @returns {any} */
const pastTimes = (total) => total?.failed >= 0 && { delayP95: total.delayP95Ms, runP50: total.runP50Ms, failed: total.failed + total.timedOut, ended: total.failed + total.timedOut + total.completed };

/** What the time of all workers since midnight, in UTC, costs; undefined while it is not known. @returns {any[] | undefined} */
export function useBillOfToday() {
  const today = new Date().toISOString().slice(0, 10);
  return useRead(may.everyRead.value ? `/v1/billing/endpoints?bucketSize=day&startTime=${today}T00:00:00Z` : null, BILL_MS).data;
}

/**
 * What the workers that run cost in an hour, by the ids of their endpoints; null where no price is set.
 * @returns {Map<string, number> | null}
 */
export function useHourlyCosts() {
  const hasPrices = useBillOfToday()?.some(({ amount }) => amount > 0);
  const { data } = useRead(hasPrices ? "/v1/pods" : null, PRICED_MS);
  return useMemo(() => {
    if (!data) return null;
    const costs = new Map();
    for (const { endpointId, costPerHr } of data) costs.set(endpointId, (costs.get(endpointId) ?? 0) + (costPerHr ?? 0));
    return costs;
  }, [data]);
}

/**
 * One endpoint with its figures. A key with `jobs` alone sees no settings: its record is the id.
 * @param {string} name its id or slug
 */
export function useEndpoint(name) {
  const { record, isAsked, unlisted } = useRecord(name);
  const endpoint = record.data ?? (record.error?.status === 401 || !isAsked ? (unlisted ?? { id: name, name }) : null);
  const health = useRead(endpoint && (may.requests(endpoint.id) || record.data === undefined) ? healthPath(endpoint.id) : null, COUNTS_MS);
  // What was deleted is not shown any longer.
  if (record.error?.status === 404) return { endpoint: null, isReadable: false, error: record.error, health: undefined, healthError: null, rate: null };
  return { endpoint, isReadable: record.data !== undefined, error: record.error?.status === 401 ? null : record.error, health: health.data, healthError: health.error, rate: endpoint && rates(endpoint.id) };
}

/**
 * What is wrong, worst first, as the server says: one problem for each endpoint that the key may read and that needs a person, or of one.
 * @param {string} [endpoint] the id of the one
 * @returns {Problem[]}
 */
export function useAttention(endpoint) {
  const { data } = useRead(may.readsAny.value ? "/v1/attention" : null, ATTENTION_MS);
  const all = /** @type {Problem[]} */ (data ?? []).filter((problem) => endpoint === undefined || problem.endpoint === endpoint);
  return all.sort((a, b) => (a.severity === b.severity ? b.jobs - a.jobs : a.severity === "bad" ? -1 : 1));
}

/**
 * The settings of an endpoint, also after its slug has changed.
 * @param {string} [name]
 * @returns {{record: import("./store.js").Read<any>, isAsked: boolean, unlisted: any}} `unlisted`: its names, if the key may not read them
 */
export function useRecord(name = "") {
  const unlisted = useUnlisted().find(({ id, slug }) => id === name || slug === name);
  const isAsked = may.readsAny.value && !unlisted;
  // Until it is read, it is shown as the list has it.
  const listed = useMemo(() => known("/v1/endpoints")?.find((/** @type {Endpoint} */ { id, slug }) => id === name || slug === name), [name]);
  const read = useRead(isAsked && name ? recordPath(name) : null, LIST_MS);
  const named = isAsked && listed && !read.data && !read.error ? { ...read, data: listed } : read;
  const id = named.error?.status === 404 && named.data?.id;
  const isMoved = id && id !== name;
  const found = useRead(isMoved ? recordPath(id) : null, LIST_MS);
  return { record: isMoved ? { ...found, data: found.data ?? named.data } : named, isAsked, unlisted };
}

/**
 * The times of the newest jobs.
 * @param {{requests: any[]} | undefined} page
 * @returns {Times | null}
 */
export function times(page) {
  if (!page) return null;
  const jobs = page.requests;
  const delays = jobs.map((job) => job.delayTime).filter((ms) => ms !== undefined);
  const ended = jobs.filter((job) => ["COMPLETED", "FAILED", "TIMED_OUT"].includes(job.status));
  const runs = ended.map((job) => job.executionTime).filter((ms) => ms !== undefined);
  return {
    delayP50: quantile(delays, 0.5),
    delayP95: quantile(delays, 0.95),
    runP50: quantile(runs, 0.5),
    runP95: quantile(runs, 0.95),
    failed: ended.filter((job) => job.status !== "COMPLETED").length,
    ended: ended.length,
    jobs,
  };
}

/** The smallest value that this share of the values does not exceed. @param {number[]} values @param {number} share */
function quantile(values, share) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}
