// Why a job failed: the SDK's error object taken apart, or the server's sentence about a lost worker.
import { html } from "../dom.js";
import { visible } from "../format.js";
import { Alert } from "./card.js";

/** What well-known signals mean, beside the number that the error names. */
const SIGNALS = /** @type {Record<string, string>} */ ({
  9: "Signal 9 ends a process immediately; the kernel's out-of-memory killer is the usual cause.",
  11: "Signal 11 is an invalid access to memory, often in a native library.",
  15: "Signal 15 asks a process to end.",
});

/** What well-known exit codes mean: containers name signals in this way. @type {Record<string, string>} */
const CODES = {
  127: "Code 127 says that a command was not found.",
  137: "Code 137 stands for signal 9; the kernel's out-of-memory killer is the usual cause.",
  139: "Code 139 stands for signal 11: an invalid access to memory, often in a native library.",
};

const LOST = "Its worker was lost";

/** What stands between the sentence of a lost worker and what it printed last. */
export const LAST_LINES = "; its last log lines:\n";

const TRACEBACK = "Traceback (most recent call last)";

/** @typedef {{title: string, message: string, trace: string, hint: string}} Failure */

/**
 * The parts of a job's error.
 * @param {string} error
 * @param {string} status
 * @returns {Failure}
 */
function failureOf(error, status) {
  const fields = objectOf(error);
  if (fields?.error_type || fields?.error_message) {
    const type = /'([^']+)'/.exec(String(fields.error_type))?.[1].split(".").at(-1) ?? String(fields.error_type ?? "an error");
    return { title: `The handler raised ${type}`, message: String(fields.error_message ?? ""), trace: relative(String(fields.error_traceback ?? "")), hint: "" };
  }
  const [sentence, last] = error.split(LAST_LINES);
  if (last !== undefined) return { title: LOST, message: sentence, trace: last.trim(), hint: hintOf(sentence) };
  return error.includes(TRACEBACK) ? raisedBy(error) : { title: untracedTitle(error, status), message: error.trim(), trace: "", hint: hintOf(error) };
}

/** The parts of a text with a traceback, as the SDK writes it for a handler that is a generator. @param {string} error @returns {Failure} */
function raisedBy(error) {
  const at = error.indexOf(TRACEBACK);
  const trace = relative(error.slice(at));
  // The exception stands after the last frame; its message may have several lines.
  const lines = trace.slice(trace.lastIndexOf("\n  File ") + 1).split("\n");
  const [, type, said] = /^([\w.]+)(?:: (.*))?$/.exec(lines.find((line) => line && !line.startsWith(" ")) ?? "") ?? [];
  const before = error.slice(0, at).replace(/traceback:\s*$/, "").replace(/^handler: /, "").trim();
  const title = type ? `The handler raised ${type.split(".").at(-1)}` : "The handler reported an error";
  return { title, message: before || said || type || "", trace, hint: "" };
}

/** @param {string} error @param {string} status */
const untracedTitle = (error, status) =>
  status === "TIMED_OUT" ? "It ran longer than it may" : /worker|exited|ended by signal/.test(error) ? LOST : "The handler reported an error";

/** What the signal or the code means that a message names. @param {string} message */
const hintOf = (message) => SIGNALS[/signal (\d+)/.exec(message)?.[1] ?? ""] ?? CODES[/exited with code (\d+)/.exec(message)?.[1] ?? ""] ?? "";

/** @param {string} text */
function objectOf(text) {
  try {
    const value = JSON.parse(text);
    return value && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

/** A traceback with paths below its packages or the folder that the others share, and without lines of markers alone. @param {string} trace */
function relative(trace) {
  const short = trace.replace(/File "[^"]*\/(?:(?:site|dist)-packages|lib\/python[\d.]+)\//g, 'File "');
  const folder = sharedFolder([...short.matchAll(/File "(\/[^"]*)"/g)].map(([, path]) => path));
  const lines = short.replaceAll(`File "${folder}`, 'File "').split("\n");
  return lines.filter((line) => !/^\s*[\^~]+\s*$/.test(line)).join("\n").trim();
}

/** The folder in which all of these files are, with a slash at its end; "" if it is none but the root. @param {string[]} paths */
function sharedFolder(paths) {
  const above = (/** @type {string} */ path) => path.slice(0, path.lastIndexOf("/", path.length - 2) + 1);
  let folder = above(paths[0] ?? "/");
  while (paths.some((path) => !path.startsWith(folder))) folder = above(folder);
  return folder === "/" ? "" : folder;
}

/** @param {{job: Job}} props */
export function FailureCard({ job }) {
  const failed = failureOf(job.error ?? "", job.status);
  return html`<${Alert} tone="bad" icon=${job.status === "TIMED_OUT" ? "timedout" : "failed"} title=${failed.title}>
    <p class="lead">${visible(failed.message) || "It ended without a message."}</p>
    ${failed.hint && html`<p>${failed.hint}</p>`}
    ${failed.trace && html`<pre tabindex="0">${visible(failed.trace)}</pre>`}
  <//>`;
}
