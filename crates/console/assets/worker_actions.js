// Where workers are read, what one can do with one, and the words for how one ended.
import * as api from "./api.js";
import { refresh } from "./store.js";

/** Where the workers of an endpoint are read. @param {{id: string}} endpoint @param {boolean} [withEnded] */
export const workersPath = (endpoint, withEnded = false) => `/v1/endpoints/${encodeURIComponent(endpoint.id)}/workers${withEnded ? "?ended=true" : ""}`;

/** @param {Endpoint} endpoint @param {string} what a path below the endpoint */
async function post(endpoint, what) {
  const answer = await api.json("POST", `/v1/endpoints/${encodeURIComponent(endpoint.id)}/${what}`);
  refresh(`/v1/endpoints/${encodeURIComponent(endpoint.id)}/workers`);
  return answer;
}

/** Ends a worker after its jobs. @param {Endpoint} endpoint @param {string} worker */
export const drain = (endpoint, worker) => post(endpoint, `workers/${encodeURIComponent(worker)}/drain`);

/** Ends all workers that the server started, each after its jobs; answers those. @param {Endpoint} endpoint @returns {Promise<any[]>} */
export const drainAll = (endpoint) => post(endpoint, "workers/drain");

/** Ends a worker now; its jobs are queued again. @param {Endpoint} endpoint @param {string} worker */
export const stop = (endpoint, worker) => post(endpoint, `workers/${encodeURIComponent(worker)}/stop`);

/** Ends the wait after crashes. @param {Endpoint} endpoint */
export const tryNow = (endpoint) => post(endpoint, "try-now");

/** What well-known signals mean. */
const SIGNALS = /** @type {Record<number, string>} */ ({
  6: "it aborted itself",
  9: "ended by another process; the kernel's out-of-memory killer is the usual cause",
  11: "an invalid access to memory, often in a native library",
  15: "asked to end",
});

/**
 * How a worker ended, in words.
 * @param {{code: number | null, signal: number | null, because: string | null, stopped: boolean, stopReason: string | null} | undefined} exit
 * @returns {{word: string, text: string, isBad: boolean}}
 */
export function exitOf(exit) {
  if (!exit) return { word: "Ended", text: "", isBad: false };
  if (exit.stopped) return { word: "Stopped", text: exit.stopReason ?? "by the server", isBad: false };
  if (exit.because) return { word: "Crashed", text: exit.because, isBad: true };
  if (exit.signal !== null) return { word: "Crashed", text: `signal ${exit.signal}${SIGNALS[exit.signal] ? `: ${SIGNALS[exit.signal]}` : ""}`, isBad: true };
  if (exit.code === 0) return { word: "Ended", text: "by itself, with code 0", isBad: false };
  return exit.code === null ? { word: "Lost", text: "how it ended is unknown", isBad: true } : { word: "Crashed", text: `with code ${exit.code}`, isBad: true };
}

const CAUSES = /** @type {Record<string, string>} */ ({ WORKERS_MIN: "workersMin keeps it running", QUEUED_JOBS: "jobs were waiting", NEW_VERSION: "the endpoint has a new version" });

/** Why a worker was started, in words. @param {string | undefined} cause */
export const causeOf = (cause) => (cause ? (CAUSES[cause] ?? cause) : "");
