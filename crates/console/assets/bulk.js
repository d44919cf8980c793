// Tasks that change many jobs: which jobs they are for, and the tasks of endpoints as they go on.
import * as api from "./api.js";
import { signal } from "./dom.js";
import { conditions, leftToBrowser } from "./filter.js";
import { moment } from "./format.js";
import { now, refresh, useReads } from "./store.js";

/** @typedef {"cancel" | "retry" | "delete"} Verb */
/** @typedef {{ids: string[]} | {filter: Record<string, any>}} Jobs */
/** @typedef {{endpoint: Endpoint, jobs: Jobs}} Part jobs of one endpoint, for one task */
/** @typedef {{id: string, endpoint: string, do: Verb, state: string, matches: number, done: number, failed: number, counted?: boolean, createdAt: string, endedAt: string | null}} Task */

/** The ids of one task. */
const IDS_MAX = 1000;
/** The server's code for a task that cannot begin before another has ended, and how long to wait then. */
const TOO_MANY = "too_many_bulk_tasks";
const AGAIN_MS = 5000;
const WITHOUT_EVENTS_MS = 5000;
/** A task that ended earlier is not shown. */
const SHOWN_MS = 600000;
/** The first of many endpoints whose tasks are read, also those that others began. */
const READ_MAX = 20;

/** The ids of endpoints on which this tab has begun a task: it is shown, too. */
const begunOn = signal(/** @type {Set<string>} */ (new Set()));

/** @param {string} endpoint its id */
const bulkPath = (endpoint) => `/v2/${encodeURIComponent(endpoint)}/bulk`;

/** What each task does, in words, and the states of the jobs that it is for. */
export const VERBS = /** @type {Record<Verb, {word: string, done: string, going: string, does: string, text: string, states: string[]}>} */ ({
  cancel: { word: "Cancel", done: "cancelled", going: "Cancelling", does: "Cancel the jobs", text: "Those that run are stopped. It cannot be undone.", states: ["IN_QUEUE", "IN_PROGRESS"] },
  retry: { word: "Retry", done: "queued again", going: "Queueing again", does: "Retry the jobs", text: "They get the same input and the same id; their outputs so far are removed.", states: ["FAILED", "TIMED_OUT"] },
  delete: { word: "Delete", done: "deleted", going: "Deleting", does: "Delete the jobs", text: "Their inputs, outputs and errors are removed. It cannot be undone.", states: ["COMPLETED", "FAILED", "TIMED_OUT", "CANCELLED"] },
});

/**
 * All jobs that a list finds, for a task: null if the server has no condition for a token; no part if no job can be in a state for it.
 * @param {Endpoint[]} endpoints
 * @param {import("./filter.js").Token[]} tokens
 * @param {string | null} status
 * @param {Verb} verb
 * @returns {Part[] | null}
 */
export function partsOfAll(endpoints, tokens, status, verb) {
  if (leftToBrowser(tokens).length > 0) return null;
  const query = conditions(tokens, status, Date.now());
  const states = query.get("status")?.split(",");
  if (states && !states.some((state) => VERBS[verb].states.includes(state))) return [];
  const filter = /** @type {Record<string, any>} */ ({});
  for (const [name, value] of query) {
    if (name.startsWith("input.")) filter.input = { ...filter.input, [name.slice("input.".length)]: value };
    else if (name === "retried") filter[name] = true;
    else filter[name] = name.startsWith("min") || name === "version" ? Number(value) : value;
  }
  return endpoints.map((endpoint) => ({ endpoint, jobs: { filter } }));
}

/** The rows that are in a state for a task, by endpoint, in tasks of the size that the server takes. @param {{job: any, endpoint: Endpoint}[]} rows @param {Verb} verb @returns {Part[]} */
export function partsOfRows(rows, verb) {
  const parts = /** @type {Map<any, string[]>} */ (new Map());
  for (const { job, endpoint } of rows) {
    if (VERBS[verb].states.includes(job.status)) parts.set(endpoint, [...(parts.get(endpoint) ?? []), job.id]);
  }
  return [...parts].flatMap(([endpoint, ids]) => Array.from({ length: Math.ceil(ids.length / IDS_MAX) }, (_, at) => ({ endpoint, jobs: { ids: ids.slice(at * IDS_MAX, (at + 1) * IDS_MAX) } })));
}

/** How many jobs tasks would change; `isCounted` is false if there may be more. @param {Verb} verb @param {Part[]} parts @param {AbortSignal} signal @returns {Promise<{number: number, isCounted: boolean}>} */
export async function countJobs(verb, parts, signal) {
  const counted = /** @type {Task[]} */ (await Promise.all(parts.map(({ endpoint, jobs }) => api.json("POST", bulkPath(endpoint.id), { body: { do: verb, ...jobs, dryRun: true }, signal }))));
  return { number: counted.reduce((sum, { matches }) => sum + matches, 0), isCounted: counted.every((task) => task.counted !== false) };
}

/**
 * Begins a task for each part, one after the other. While too many run, it waits.
 * @param {Verb} verb @param {Part[]} parts
 * @param {{signal: AbortSignal, onBegun: (left: Part[]) => void, onWait: () => void}} told `signal` ends it before the next task
 */
export async function startTasks(verb, parts, { signal, onBegun, onWait }) {
  let left = parts;
  while (left.length > 0) {
    signal.throwIfAborted();
    if (await hasBegun(verb, left[0])) {
      left = left.slice(1);
      onBegun(left);
    } else {
      onWait();
      await pause(AGAIN_MS, signal);
    }
  }
}

/** Begins a task; false if too many run. @param {Verb} verb @param {Part} part */
async function hasBegun(verb, { endpoint, jobs }) {
  try {
    await api.json("POST", bulkPath(endpoint.id), { body: { do: verb, ...jobs } });
  } catch (failed) {
    if (/** @type {import("./api.js").ApiError} */ (failed).code === TOO_MANY) return false;
    throw failed;
  }
  begunOn.value = new Set([...begunOn.value, endpoint.id]);
  refresh(bulkPath(endpoint.id));
  return true;
}

/** @param {number} ms @param {AbortSignal} signal */
const pause = (ms, signal) => new Promise((resolve, reject) => {
  setTimeout(resolve, ms);
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
});

/** Stops a task that runs; forgets one that has ended. @param {Task} task */
export async function endTask(task) {
  await api.json("DELETE", `${bulkPath(task.endpoint)}/${encodeURIComponent(task.id)}`);
  refresh(bulkPath(task.endpoint));
}

/** The tasks that run or ended lately, newest first, of endpoints; of many, of the first ones and those on which one was begun here. @param {Endpoint[]} endpoints @returns {Task[]} */
export function useTasks(endpoints) {
  const read = endpoints.filter(({ id }, at) => at < READ_MAX || begunOn.value.has(id));
  const reads = useReads(read.map(({ id }) => bulkPath(id)), WITHOUT_EVENTS_MS);
  const tasks = /** @type {Task[]} */ ([...reads.values()].flatMap(({ data }) => data ?? []));
  const isShown = (/** @type {Task} */ { endedAt }) => endedAt === null || now.value - (moment(endedAt) ?? 0) < SHOWN_MS;
  return tasks.filter(isShown).sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
}
