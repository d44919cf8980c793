// What is wrong, worst first, as the server says: one problem for each endpoint that needs a person.
import { may } from "./session.js";
import { useRead } from "./store.js";

/** @typedef {{id: string, code: string, severity: "bad" | "warn", endpoint: string, slug: string | null, name: string, since: string | null, title: string, text: string, evidence: string[], jobs: number, actions: {do: string, title: string}[]}} Problem */

const READ_MS = 10000;

/**
 * The problems of all endpoints that the key may read, or of one.
 * @param {string} [endpoint] the id of the one
 * @returns {Problem[]}
 */
export function useAttention(endpoint) {
  const { data } = useRead(may.readsAny.value ? "/v1/attention" : null, READ_MS);
  const all = /** @type {Problem[]} */ (data ?? []).filter((problem) => endpoint === undefined || problem.endpoint === endpoint);
  return all.sort((a, b) => (a.severity === b.severity ? b.jobs - a.jobs : a.severity === "bad" ? -1 : 1));
}
