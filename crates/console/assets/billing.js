// What the server metered of workers, as the page of usage shows it: time ranges, groups, and sums of records.
import { csvOf } from "./csv.js";
import { duration } from "./format.js";

/** @typedef {{time: string, timeBilledMs: number, gpuMs?: number, busyMs: number | null, amount: number, endpointId?: string, gpuTypeId?: string, podId?: string, owner?: string, key?: string, jobs?: number}} BillingRecord */
/** @typedef {{name: string, bucket: string, ms: number}} Range */
/** @typedef {{name: string, word: string, of: (record: BillingRecord) => string}} Grouping */
/** @typedef {{id: string, ms: number, amount: number, jobs: number, busy: number | null}} Sum */

const HOUR_MS = 3600000;
const DAY_MS = 24 * HOUR_MS;

/** @type {Range[]} */
export const RANGES = [
  { name: "24 hours", bucket: "hour", ms: 24 * HOUR_MS },
  { name: "7 days", bucket: "day", ms: 7 * DAY_MS },
  { name: "30 days", bucket: "day", ms: 30 * DAY_MS },
  { name: "12 months", bucket: "month", ms: 365 * DAY_MS },
];

/** @type {Grouping[]} */
export const GROUPINGS = [
  { name: "endpointId", word: "Endpoint", of: ({ endpointId }) => endpointId ?? "" },
  { name: "gpuTypeId", word: "GPU type", of: ({ gpuTypeId }) => gpuTypeId ?? "" },
  { name: "podId", word: "Worker", of: ({ podId }) => podId ?? "" },
  { name: "owner", word: "Owner", of: ({ owner }) => owner ?? "" },
  { name: "key", word: "Key", of: ({ key }) => key ?? "" },
];

/** The part of the workers' time in which they ran jobs, as far as it is known. @param {BillingRecord[]} records */
export function busyOf(records) {
  const known = records.filter(({ busyMs }) => busyMs !== null);
  const ms = known.reduce((sum, { timeBilledMs }) => sum + timeBilledMs, 0);
  return ms > 0 ? known.reduce((sum, { busyMs }) => sum + Number(busyMs), 0) / ms : null;
}

/** The sums of each group, the dearest first, then the longest. @param {BillingRecord[]} records @param {Grouping} grouping @returns {Sum[]} */
export function sumsOf(records, grouping) {
  /** @type {Map<string, BillingRecord[]>} */
  const groups = new Map();
  for (const record of records) {
    const id = grouping.of(record);
    const own = groups.get(id);
    if (own) own.push(record);
    else groups.set(id, [record]);
  }
  const sums = [...groups].map(([id, own]) => ({
    id,
    ms: own.reduce((sum, { timeBilledMs }) => sum + timeBilledMs, 0),
    amount: own.reduce((sum, { amount }) => sum + amount, 0),
    jobs: own.reduce((sum, { jobs }) => sum + (jobs ?? 0), 0),
    busy: busyOf(own),
  }));
  return sums.sort((a, b) => b.amount - a.amount || b.ms - a.ms);
}

/** The first hour, day or month of each bucket of a range, in UTC, oldest first. @param {Range} range @param {number} now */
export function bucketsOf(range, now) {
  const size = range.bucket === "hour" ? HOUR_MS : DAY_MS;
  if (range.bucket !== "month") {
    const last = Math.floor(now / size) * size;
    return Array.from({ length: Math.round(range.ms / size) }, (_, at) => last - (Math.round(range.ms / size) - 1 - at) * size);
  }
  const date = new Date(now);
  return Array.from({ length: 12 }, (_, at) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - 11 + at, 1));
}

/** The name of a bucket. @param {Range} range @param {number} at */
export const bucketName = (range, at) => new Date(at).toISOString().slice(...(range.bucket === "hour" ? [11, 16] : range.bucket === "month" ? [0, 7] : [5, 10])).replace("T", " ");

/** What the month costs if it goes on as it began; null on its first day. @param {BillingRecord[]} records of days @param {number} now */
export function forecast(records, now) {
  const date = new Date(now);
  const start = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
  const end = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  if (now - start < DAY_MS) return null;
  const soFar = records.filter(({ time }) => Date.parse(time) >= start).reduce((sum, { amount }) => sum + amount, 0);
  return (soFar / (now - start)) * (end - start);
}

/**
 * What each hour costs, from records of hours, with its end as one more point: a line of steps ends there.
 * @param {BillingRecord[]} records @param {number} from @param {number} to whole hours, in ms
 */
export function costsOf(records, from, to) {
  const t = Array.from({ length: Math.round((to - from) / HOUR_MS) + 1 }, (_, at) => from + at * HOUR_MS);
  const amounts = t.map(() => 0);
  for (const { time, amount } of records) amounts[Math.round((Date.parse(time) - from) / HOUR_MS)] += amount;
  amounts[t.length - 1] = amounts[t.length - 2];
  return { t, amounts };
}

/** Worker time: hours where it is long. @param {number} ms */
export const workerTime = (ms) => (ms >= 10 * HOUR_MS ? `${(ms / HOUR_MS).toFixed(1)} h` : duration(ms));

/** The records as CSV, with a row for each group and bucket. @param {BillingRecord[]} records */
export function csv(records) {
  return csvOf(["time", "endpointId", "gpuTypeId", "podId", "owner", "key", "jobs", "timeBilledMs", "gpuMs", "busyMs", "amount"], records);
}
