// How many jobs are in each state: of one endpoint, or of several together.
import { JOB_STATES } from "./icons.js";
import { useReads } from "./store.js";

/** Endpoints whose counts are read one by one and added up. Those of more are read together. */
const COUNTED_MAX = 20;
const COUNTS_MS = 2000;

/**
 * The number of jobs in each state; null while it is not known. A component that calls this is rendered with every change of the counts.
 * @param {Endpoint[]} endpoints
 * @returns {Record<string, number> | null}
 */
export function useJobCounts(endpoints) {
  // The counts of few endpoints are kept up to date by events.
  const paths = endpoints.length <= COUNTED_MAX ? endpoints.map(({ id }) => `/v2/${encodeURIComponent(id)}/requests?limit=1&counts=true`) : ["/v1/requests?limit=1&counts=true"];
  const reads = useReads(paths, COUNTS_MS);
  const all = paths.map((path) => reads.get(path)?.data?.counts);
  if (all.length === 0 || all.some((counts) => !counts)) return null;
  return Object.fromEntries(Object.keys(JOB_STATES).map((state) => [state, all.reduce((total, counts) => total + counts[state], 0)]));
}

/**
 * The number of jobs in this state, or in all states; null while it is not known.
 * @param {Record<string, number> | null} counts
 * @param {string | null} status
 */
export const countOf = (counts, status) => counts && (status ? counts[status] : Object.values(counts).reduce((sum, number) => sum + number, 0));
