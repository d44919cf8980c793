// The search line of requests: tokens such as `worker:ab12 ran:>1min`, and whether a job satisfies them.
import { moment } from "./format.js";
import { utc } from "./prefs.js";

/** @typedef {{name: string, value: string}} Token */

/** The tokens that the search line knows, with an example each. `input.` goes on with the path of a member. */
const TOKENS = [
  { name: "state", example: "state:failed", does: "in a state" },
  { name: "error", example: "error:memory", does: "with a text in the error" },
  { name: "after", example: "after:10min", does: "submitted since" },
  { name: "before", example: "before:1h", does: "submitted earlier" },
  { name: "waited", example: "waited:>5s", does: "that waited at least" },
  { name: "ran", example: "ran:>1min", does: "that ran at least" },
  { name: "tries", example: "tries:>1", does: "with this number of attempts" },
  { name: "worker", example: "worker:jcoqxrmg", does: "of a worker" },
  { name: "version", example: "version:4", does: "started with a version" },
  { name: "webhook", example: "webhook:failed", does: "whose webhook call stands so" },
  { name: "key", example: "key:admin", does: "that a key submitted" },
  { name: "input.", example: "input.customer.id:17", does: "with a value in the input" },
];
const INPUT = "input.";
/** How a webhook call can stand. */
const WEBHOOKS = ["FAILED", "PENDING", "DELIVERED"];
/** The server takes texts of this length, in characters. */
const TEXT_MAX = 200;
/** The server takes this number of members of the input. */
const MEMBERS_MAX = 10;
const KEY_ID = /^([0-9a-f]{16}|admin)$/;
const WORKER_ID = /^[\w-][\w.:-]{0,127}$/;

/** The states by the words that the search line takes. */
const STATES = /** @type {Record<string, string>} */ ({ queued: "IN_QUEUE", running: "IN_PROGRESS", completed: "COMPLETED", failed: "FAILED", timed_out: "TIMED_OUT", cancelled: "CANCELLED" });

/** The states that a value such as `failed,timed_out` names; null if it names another. @param {string} value */
function statesOf(value) {
  const states = value.toLowerCase().split(",").map((word) => STATES[word] ?? Object.values(STATES).find((state) => state.toLowerCase() === word));
  return states.every(Boolean) ? /** @type {string[]} */ (states) : null;
}

const VALUES = /** @type {Record<string, [string, string][]>} */ ({
  state: Object.keys(STATES).map((word) => [word, ""]),
  after: [["10min", ""], ["1h", ""], ["24h", ""]],
  before: [["10min", ""], ["1h", ""], ["24h", ""]],
  waited: [[">5s", ""], [">1min", ""]],
  ran: [[">1s", ""], [">1min", ""], [">10min", ""]],
  webhook: [["failed", "given up"], ["pending", "to be tried again"], ["delivered", "accepted"]],
  tries: [[">1", "more than one attempt"], [">2", ""]],
});
const SUGGESTED_MAX = 12;

/**
 * What may come next in a line: names of tokens, or values of the token that is typed.
 * @param {string} line
 * @param {Record<string, [string, string][]>} known the values of `worker`, `version` and `key` that are here, with what each is
 * @returns {{insert: string, does: string}[]}
 */
export function suggestions(line, known) {
  const part = /\S*$/.exec(line)?.[0] ?? "";
  const at = part.indexOf(":");
  if (at < 0) return TOKENS.filter(({ name }) => name.startsWith(part.toLowerCase())).map(({ name, does, example }) => ({ insert: name === INPUT ? name : `${name}:`, does: `${does}, as ${example}` })).slice(0, SUGGESTED_MAX);
  const [name, typed] = [part.slice(0, at), part.slice(at + 1)];
  const values = VALUES[name] ?? known[name] ?? [];
  // The last of several values between commas is completed.
  const begun = typed.slice(typed.lastIndexOf(",") + 1);
  const before = part.slice(0, part.length - begun.length);
  return values.filter(([value]) => value.startsWith(begun) && value !== begun).map(([value, does]) => ({ insert: before + value, does })).slice(0, SUGGESTED_MAX);
}

/** The tokens that the server has no condition for: the browser decides them. @param {Token[]} list */
export const leftToBrowser = (list) => list.filter(({ name, value }) => name === "tries" && value !== ">1");

/** Whether only the server can decide some tokens: they are about more than a row shows. @param {Token[]} list */
export const isForServer = (list) => list.some(({ name }) => isOfPayload(name) || name === "webhook" || name === "version");

/** Whether the server reads the payloads of jobs for this token. @param {string} name */
const isOfPayload = (name) => name === "" || name === "error" || name.startsWith(INPUT);

/** Parts of the line: words between spaces, or between quotes. @param {string} line @returns {Token[]} */
export function tokens(line) {
  const parts = line.match(/(?:[^\s"]|"[^"]*")+/g) ?? [];
  return parts.map((part) => {
    const at = part.indexOf(":");
    const name = at > 0 ? part.slice(0, at) : "";
    const isKnown = TOKENS.some((token) => token.name === name) || (name.startsWith(INPUT) && name !== INPUT);
    return isKnown ? { name, value: part.slice(at + 1).replaceAll('"', "") } : { name: "", value: part.replaceAll('"', "") };
  });
}

const UNITS = /** @type {Record<string, number>} */ ({ ms: 1, s: 1000, min: 60000, h: 3600000, d: 86400000 });

/** A duration such as `>5s` or `10min`, in ms; null if it is none. @param {string} text */
function durationOf(text) {
  const found = text.match(/^>?\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)$/);
  return found ? Number(found[1]) * UNITS[found[2]] : null;
}

/** What is wrong with the tokens, as a sentence, or "". @param {Token[]} list */
export function fault(list) {
  const twice = list.find(({ name }, at) => !["", "state"].includes(name) && list.findIndex((token) => token.name === name) < at);
  if (twice) return `\`${twice.name}:\` is there twice. A job has to match all of the line.`;
  if (list.filter(({ name }) => name.startsWith(INPUT)).length > MEMBERS_MAX) return `A search has at most ${MEMBERS_MAX} values of the input.`;
  if (list.some(({ name, value }) => name.length > TEXT_MAX || value.length > TEXT_MAX) || wordsOf(list).length > TEXT_MAX) return `A text has at most ${TEXT_MAX} characters.`;
  for (const { name, value } of list) {
    const isTime = name === "after" || name === "before";
    if ((isTime && momentOf(value, Date.now()) === null) || ((name === "waited" || name === "ran") && durationOf(value) === null)) return `\`${name}:\` takes a duration, such as ${name}:10min${isTime ? ", or a time, such as 2030-01-31T12:00" : ""}.`;
    if (name === "state" && !statesOf(value)) return `\`state:\` takes ${Object.keys(STATES).join(", ")}, or several between commas.`;
    if (name === "error" && !value.replace("~", "")) return "`error:` takes a text, such as error:memory.";
    if (name === "webhook" && !WEBHOOKS.includes(value.toUpperCase())) return "`webhook:` takes failed, pending or delivered.";
    if (name === "tries" && !/^>?\d+$/.test(value)) return "`tries:` takes a number, such as tries:>1.";
    if (name === "version" && !/^[1-9]\d{0,8}$/.test(value)) return "`version:` takes the number of a version, such as version:4.";
    if (name === "worker" && !WORKER_ID.test(value)) return "`worker:` takes the whole id of a worker, such as worker:jcoqxrmg.";
    if (name === "key" && !KEY_ID.test(value)) return "`key:` takes the id of an API key, or admin.";
    if (name.startsWith(INPUT) && !value) return `\`${name}:\` takes a value, such as ${name}:17.`;
  }
  return "";
}

const TYPED = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?(Z|[+-]\d\d:\d\d)?$/;

/**
 * The moment that one typed, in ms: 2030-01-31T12:00 or a day alone, which begins at midnight. Without a zone, it is in the one that is
 * shown. Null for another text.
 * @param {string} text
 */
export function typedMoment(text) {
  const found = TYPED.exec(text.trim().toUpperCase());
  if (!found) return null;
  const [, day, clock = "00:00", zone = utc.peek() ? "Z" : ""] = found;
  const at = Date.parse(`${day}T${clock}${zone}`);
  return Number.isNaN(at) ? null : at;
}

/** Whether tokens name a time: what they find depends on the zone that is shown. @param {Token[]} list */
export const hasTimes = (list) => list.some(({ name }) => name === "after" || name === "before");

/** The words that are no tokens, as one text. @param {Token[]} list */
const wordsOf = (list) => list.filter(({ name }) => name === "").map(({ value }) => value).join(" ");

/** The server takes times of the years 1 to 9999. @param {number} at in ms */
export const isInYears = (at) => at >= -62135596800000 && at < 253402300800000;

/** A moment: a duration before now, or a time. Null for another text, or one that no year has. @param {string} value @param {number} now */
const momentOf = (value, now) => {
  const ms = durationOf(value);
  const at = ms === null ? typedMoment(value) : now - ms;
  return at !== null && isInYears(at) ? at : null;
};

/**
 * The parameters with which the server finds the jobs. What it has no parameter for, `matches` decides.
 * @param {Token[]} list
 * @param {string | null} status
 * @param {number} now
 */
export function conditions(list, status, now) {
  const named = list.filter(({ name }) => name === "state").map(({ value }) => statesOf(value) ?? []);
  // All have to hold: the chip's state, and each token.
  const states = named.reduce((all, some) => all.filter((state) => some.includes(state)), status ? [status] : Object.values(STATES));
  const query = new URLSearchParams(status || named.length > 0 ? { status: (states.length > 0 ? states : named[0]).join(",") } : {});
  const words = wordsOf(list);
  if (words) query.set("q", words);
  for (const { name, value } of list) {
    const at = name === "after" || name === "before" ? momentOf(value, now) : null;
    if (at !== null) query.set(name === "after" ? "since" : "until", new Date(at).toISOString());
    else if (name === "waited" || name === "ran") query.set(name === "waited" ? "minDelayMs" : "minExecutionMs", String(Math.round(durationOf(value) ?? 0)));
    else if (name === "tries" && /^>[1-9]/.test(value)) query.set("retried", "true");
    else if (name === "error") query.set(name, value.replace("~", ""));
    else if (name === "webhook") query.set(name, value.toUpperCase());
    else if (["worker", "key", "version"].includes(name) || name.startsWith(INPUT)) query.set(name, value);
  }
  return query;
}

/**
 * Whether a job satisfies the state and all tokens, as far as its row shows it. The server has decided the rest.
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
    case "state":
      return (statesOf(value) ?? []).includes(job.status);
    case "worker":
      return job.workerId === value;
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
      return true;
  }
}
