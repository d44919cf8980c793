// What the versions of an endpoint were: when each was the present one, how its jobs ran, and how two of them differ.
import { useReads } from "./store.js";

/** @typedef {{version: number, at: string, by: string, byName?: string, codeHash: string | null, fields: Change[]}} Entry newest first, one for each change */
/** @typedef {{name: string, from: any, to: any}} Change */
/** @typedef {{from: string, to: string | null}} Span `to` is null for the present version */
/** @typedef {{failedRatio: number | null, ended: number, delayP95Ms: number | null, runP95Ms: number | null}} Ran */

const SERIES = "completed,failed,timedOut,delayP95Ms,runP95Ms";
/** The number of versions whose figures are read. */
const READ_MAX = 10;
/** The figures of the present version are read again this often. */
const READ_MS = 60000;
/** Age in ms of the oldest entry of the history. */
const KEPT_MS = 400 * 86400000;

/** When each version was the present one. @param {Entry[]} entries @returns {Map<number, Span>} newest first */
function spansOf(entries) {
  /** @type {Map<number, Span>} */
  const spans = new Map();
  let to = /** @type {string | null} */ (null);
  for (let at = 0; at < entries.length; at += 1) {
    const { version } = entries[at];
    if (entries[at + 1]?.version === version) continue;
    spans.set(version, { from: entries[at].at, to });
    to = entries[at].at;
  }
  return spans;
}

/**
 * How the jobs ran that ended while a version was the present one.
 * @param {Endpoint} endpoint
 * @param {Entry[]} entries
 * @returns {Map<number, Ran>}
 */
export function useRan(endpoint, entries) {
  const spans = [...spansOf(entries)].slice(0, READ_MAX);
  const root = `/v1/endpoints/${encodeURIComponent(endpoint.id)}/history`;
  const paths = spans.map(([, { from, to }]) => {
    const begins = Math.max(Date.parse(from), Math.floor(Date.now() / READ_MS) * READ_MS - KEPT_MS);
    // To the minute: an address that differs with each render is read with each.
    const ends = to ?? new Date(Math.ceil((Date.now() + 1) / READ_MS) * READ_MS).toISOString();
    return `${root}?from=${new Date(begins).toISOString()}&to=${ends}&series=${SERIES}`;
  });
  const reads = useReads(paths, READ_MS);
  /** @type {Map<number, Ran>} */
  const ran = new Map();
  spans.forEach(([version], at) => {
    const total = reads.get(paths[at])?.data?.total;
    if (!total) return;
    const bad = (total.failed ?? 0) + (total.timedOut ?? 0);
    const ended = bad + (total.completed ?? 0);
    ran.set(version, { failedRatio: ended > 0 ? bad / ended : null, ended, delayP95Ms: total.delayP95Ms, runP95Ms: total.runP95Ms });
  });
  return ran;
}

/**
 * How two versions differ, as they last were.
 * @param {Entry[]} entries
 * @param {number} older
 * @param {number} newer
 * @returns {Change[]}
 */
export function differences(entries, older, newer) {
  /** @type {Map<string, Change>} */
  const found = new Map();
  for (const { version, fields } of entries.toReversed()) {
    if (version <= older || version > newer) continue;
    for (const { name, from, to } of fields) found.set(name, { name, from: found.has(name) ? found.get(name)?.from : from, to });
  }
  // What was changed and changed back is the same; hidden values are not known to be.
  return [...found.values()].filter(({ from, to }) => to === "changed" || JSON.stringify(from) !== JSON.stringify(to));
}
