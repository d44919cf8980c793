// The search line of requests: tokens such as `worker:ab12 ran:>1min`, and whether a job satisfies them.
import { moment } from "./format.js";

/** @typedef {{name: string, value: string}} Token */

/** The tokens that the search line knows, with an example each. */
export const TOKENS = [
  { name: "worker", example: "worker:jcoqxrmg" },
  { name: "key", example: "key:admin" },
  { name: "after", example: "after:10min" },
  { name: "before", example: "before:1h" },
  { name: "waited", example: "waited:>5s" },
  { name: "ran", example: "ran:>1min" },
  { name: "tries", example: "tries:>1" },
];

/** Parts of the line: words between spaces, or between quotes. @param {string} line @returns {Token[]} */
export function tokens(line) {
  const parts = line.match(/(?:[^\s"]|"[^"]*")+/g) ?? [];
  return parts.map((part) => {
    const at = part.indexOf(":");
    const name = at > 0 ? part.slice(0, at) : "";
    const isKnown = TOKENS.some((token) => token.name === name);
    return isKnown ? { name, value: part.slice(at + 1).replaceAll('"', "") } : { name: "", value: part.replaceAll('"', "") };
  });
}

const UNITS = /** @type {Record<string, number>} */ ({ ms: 1, s: 1000, min: 60000, h: 3600000, d: 86400000 });

/** A duration such as `>5s` or `10min`, in ms; null if it is none. @param {string} text */
export function durationOf(text) {
  const found = text.match(/^>?\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)$/);
  return found ? Number(found[1]) * UNITS[found[2]] : null;
}

/** What is wrong with the tokens, as a sentence, or "". @param {Token[]} list */
export function fault(list) {
  for (const { name, value } of list) {
    const isDuration = ["waited", "ran", "after", "before"].includes(name);
    if (isDuration && durationOf(value) === null && moment(value) === null) return `\`${name}:\` takes a duration, such as ${name}:10min.`;
    if (name === "tries" && !/^>?\d+$/.test(value)) return "`tries:` takes a number, such as tries:>1.";
  }
  return "";
}

/** A moment: a duration before now, or a time. @param {string} value @param {number} now */
const momentOf = (value, now) => {
  const ms = durationOf(value);
  return ms === null ? moment(value) : now - ms;
};

/**
 * The parameters with which the server finds the jobs. What it has no parameter for, `matches` decides.
 * @param {Token[]} list
 * @param {string | null} status
 * @param {number} now
 */
export function conditions(list, status, now) {
  const query = new URLSearchParams(status ? { status } : {});
  const words = list.filter(({ name }) => name === "").map(({ value }) => value);
  if (words.length > 0) query.set("q", words.join(" "));
  for (const { name, value } of list) {
    const at = name === "after" || name === "before" ? momentOf(value, now) : null;
    if (at !== null) query.set(name === "after" ? "since" : "until", new Date(at).toISOString());
    else if (name === "waited" || name === "ran") query.set(name === "waited" ? "minDelayMs" : "minExecutionMs", String(durationOf(value) ?? 0));
    else if (name === "tries" && /^>[1-9]/.test(value)) query.set("retried", "true");
    else if (name === "key" && /^([0-9a-f]{16}|admin)$/.test(value)) query.set("key", value);
  }
  return query;
}

/**
 * Whether a job satisfies the state and all tokens. Other words are looked for in its id, error and output.
 * @param {any} job
 * @param {Token[]} list
 * @param {string | null} status
 * @param {number} now
 */
export function matches(job, list, status, now) {
  if (status && job.status !== status) return false;
  return list.every(({ name, value }) => decided(job, name, value, now));
}

/** @param {any} job @param {string} name @param {string} value @param {number} now */
function decided(job, name, value, now) {
  const created = moment(job.createdAt) ?? now;
  switch (name) {
    case "worker":
      return (job.workerId ?? "").includes(value);
    case "key":
      return job.key === value;
    case "after":
      return created >= (momentOf(value, now) ?? 0);
    case "before":
      return created <= (momentOf(value, now) ?? Infinity);
    case "waited":
      return (job.delayTime ?? now - created) >= (durationOf(value) ?? 0);
    case "ran":
      return (job.executionTime ?? 0) >= (durationOf(value) ?? 0);
    case "tries": {
      const tries = (job.retries ?? 0) + 1;
      const number = Number(value.replace(">", ""));
      return value.startsWith(">") ? tries > number : tries === number;
    }
    default:
      return hasText(job, value);
  }
}

/** @param {any} job @param {string} text */
function hasText(job, text) {
  const wanted = text.toLowerCase();
  const output = job.output === undefined ? "" : JSON.stringify(job.output);
  return job.id.includes(wanted) || `${job.error ?? ""}\n${output}`.toLowerCase().includes(wanted);
}
