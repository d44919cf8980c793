// What an endpoint is tried with: its example, and the last runs of the playground in this browser, for each endpoint of each server. It never holds a key.
import { exampleInput } from "./example_input.js";
import { base } from "./router.js";
import { sampleOf } from "./input_schema.js";

/**
 * @typedef {{at: number, job: string, input: string, timeoutS: string, ttlS: string, isLow: boolean}} Run
 *   `input` is the JSON text as it was sent. The address of a webhook is not kept: it can hold a secret.
 */

const RUNS_MAX = 50;
/** A longer input is not kept. */
const INPUT_BYTES_MAX = 65536;
/** Keys of this server, and the names under which clients send keys of others. */
const SECRET = /\bls_\w{16,}|"[^"]*(?:secret|password|api_?key|access_?token|authorization)[^"]*"\s*:/i;

/** @param {string} endpoint its id */
const nameOf = (endpoint) => `longshore.playground:${base}:${endpoint}`;

/** The runs, newest first. @param {string} endpoint @returns {Run[]} */
export function runsOf(endpoint) {
  try {
    const runs = JSON.parse(localStorage.getItem(nameOf(endpoint)) ?? "[]");
    return Array.isArray(runs) ? runs.filter((run) => typeof run?.input === "string" && typeof run?.job === "string") : [];
  } catch {
    return [];
  }
}

/** Why an input is not kept, or "". @param {string} input */
export function whyNotKept(input) {
  if (new Blob([input]).size > INPUT_BYTES_MAX) return "It is not in the history: its input is larger than 64 KiB.";
  return SECRET.test(input) ? "It is not in the history: its input seems to hold a secret." : "";
}

/** Adds a run, and answers all. @param {string} endpoint @param {Run} run */
export function keepRun(endpoint, run) {
  const runs = whyNotKept(run.input) ? runsOf(endpoint) : [run, ...runsOf(endpoint)].slice(0, RUNS_MAX);
  // A browser gives a page a few MB: the oldest runs go first.
  for (let count = runs.length; count > 0; count = Math.floor(count / 2)) {
    try {
      localStorage.setItem(nameOf(endpoint), JSON.stringify(runs.slice(0, count)));
      return runs.slice(0, count);
    } catch {
      // Fewer runs may have room.
    }
  }
  return [];
}

/** @param {string} endpoint */
export const clearRuns = (endpoint) => localStorage.removeItem(nameOf(endpoint));

/** The input that an endpoint is tried with first, as JSON text. @param {Endpoint} endpoint */
export const exampleOf = (endpoint) => JSON.stringify(exampleInput(endpoint) ?? sampleOf(endpoint.inputSchema) ?? (endpoint.inputSchema ? {} : { prompt: "a harbour at dawn" }), null, 2);
