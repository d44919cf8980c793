// The jobs of a list as a file: as JSON lines with all that the list of the API has, or as a table.
import * as api from "./api.js";
import { csvLine, csvOf, saveFile } from "./csv.js";
import { matches } from "./filter.js";
import { member, parse, writeLine } from "./json_text.js";

/** @typedef {"jsonl" | "csv"} Form */
/** @typedef {{found: number, isCut: boolean}} Outcome */

/** A file has at most this number of jobs. */
export const JOBS_MAX = 100000;
const PAGE = 1000;
const COLUMNS = ["id", "endpoint", "status", "createdAt", "startedAt", "completedAt", "delayTime", "executionTime", "workerId", "retries", "key", "owner", "error"];

/**
 * Reads the jobs that a list finds, newest first, endpoint by endpoint, and saves them.
 * @param {import("./request_list.js").RequestList} list
 * @param {Form} form
 * @param {Set<string> | null} chosen only these; null for all that match
 * @param {AbortSignal} stop
 * @param {(found: number) => void} onProgress
 * @returns {Promise<Outcome>}
 */
export async function downloadJobs(list, form, chosen, stop, onProgress) {
  const wanted = Math.min(chosen?.size ?? JOBS_MAX, JOBS_MAX);
  const lines = form === "csv" ? [csvOf(COLUMNS, [])] : [];
  let found = 0;
  let isCut = false;
  for (const source of list.sources) {
    let cursor = /** @type {string | null} */ ("");
    while (cursor !== null && found < wanted) {
      const text = await api.text("GET", source.address(PAGE, cursor), { signal: stop });
      const page = JSON.parse(text);
      // As text, so that numbers in outputs keep all their digits.
      const nodes = form === "jsonl" ? member(parse(text), "requests") : null;
      for (const [at, job] of page.requests.entries()) {
        const endpoint = source.endpointOf(job);
        const isWanted = chosen ? chosen.has(job.id) : matches(job, list.tokens, list.status, Date.now());
        if (!endpoint || !isWanted || found >= wanted) continue;
        found += 1;
        lines.push(form === "csv" ? csvLine(COLUMNS, { ...job, endpoint: endpoint.name }) : `${nodes?.kind === "array" ? writeLine(nodes.items[at]) : JSON.stringify(job)}\n`);
      }
      cursor = page.cursor;
      onProgress(found);
    }
    isCut ||= cursor !== null && found >= JOBS_MAX;
  }
  saveFile(`jobs.${form}`, lines, form === "csv" ? "text/csv" : "application/jsonl");
  return { found, isCut };
}
