// The settings of an endpoint: what each means, its default, and how it is written and read in a form.
import { count, duration, size } from "./format.js";
import { firstFault } from "./json_fault.js";
import { member, parse, write, writeLine } from "./json_text.js";

/**
 * @typedef {"text" | "number" | "ms" | "seconds" | "bytes" | "share" | "flag" | "word" | "words" | "texts" | "json"} Kind
 * @typedef {{name: string, title: string, kind: Kind, text: string, words?: string[], labels?: Record<string, string>, orNone?: string, isWorkers?: boolean}} Setting
 *   `text` says what it means · `labels` are what people read in place of words · `orNone` says what no value means; without it there has to be
 *   one. A name with a point is a member of an object
 */

const SCALERS = ["QUEUE_DELAY", "REQUEST_COUNT", "IDLE_GAPS"];
/** Most characters of a JSON text in the table of changes. */
const JSON_SHOWN = 400;
const EVENTS = ["completed", "failed", "cancelled", "timed_out", "progress"];

/** @type {{title: string, settings: Setting[]}[]} */
export const GROUPS = [
  {
    title: "Scaling",
    settings: [
      { name: "workersMin", title: "Fewest workers", kind: "number", text: "They run even when nothing is queued." },
      { name: "workersMax", title: "Most workers", kind: "number", text: "0 pauses the endpoint: running jobs finish, others wait." },
      { name: "idleTimeout", title: "Idle timeout", kind: "seconds", text: "An idle worker ends after this time. In seconds." },
      { name: "idleTimeoutMax", title: "Longest idle timeout", kind: "seconds", text: "With IDLE_GAPS, an idle worker ends after this time at the latest." },
      { name: "scalerType", title: "A worker is added", kind: "word", words: SCALERS, text: "QUEUE_DELAY: when a job waits too long. REQUEST_COUNT: one for a number of jobs. IDLE_GAPS: as QUEUE_DELAY, and idle workers wait for the next job as long as pauses usually are." },
      { name: "scalerValue", title: "Threshold", kind: "number", text: "Seconds that a job may wait, or jobs per worker." },
      { name: "startPatienceMs", title: "Start patience", kind: "ms", text: "A worker that asks for no job within this time is replaced." },
    ],
  },
  {
    title: "Program",
    settings: [{ name: "templateId", title: "Template", kind: "word", words: [], text: "The command or image that workers are started from. A change makes a new version." }],
  },
  {
    title: "Hardware",
    settings: [
      { name: "computeType", title: "Hardware", kind: "word", words: ["GPU", "CPU"], text: "Workers of GPU endpoints get GPUs where the server knows any." },
      { name: "gpuCount", title: "GPUs of a worker", kind: "number", text: "They are on one machine." },
      { name: "gpuTypeIds", title: "GPU types", kind: "texts", text: "In order of preference, between commas. None: any type." },
      { name: "memoryBytes", title: "Most memory", kind: "bytes", text: "A worker above it is ended. In bytes.", orNone: "no limit" },
      { name: "vcpus", title: "Most processors", kind: "number", text: "Of one worker with all that it starts.", orNone: "no limit" },
    ],
  },
  {
    title: "Jobs",
    settings: [
      { name: "executionTimeoutMs", title: "Longest run", kind: "ms", text: "A job that runs longer has timed out." },
      { name: "maxRetries", title: "Automatic retries", kind: "number", text: "Of one job." },
      { name: "retryOn", title: "Retry after", kind: "words", words: ["workerLost", "handlerError"], text: "What causes a retry." },
      { name: "maxConcurrency", title: "Jobs of a worker", kind: "number", text: "That one worker runs concurrently." },
      { name: "maxQueueLength", title: "Longest queue", kind: "number", text: "Further jobs are refused.", orNone: "the server's limit" },
      { name: "stopGraceMs", title: "Stop grace", kind: "ms", text: "From a job's stop signal to the end of its worker.", orNone: "the server's setting" },
      { name: "durability", title: "Durability", kind: "word", words: ["synced", "buffered"], text: "buffered: a power failure can lose the last 100 ms." },
      { name: "streamShape", title: "Shape of streams", kind: "word", words: ["array", "object"], text: "What /stream answers: chunks alone, or with the status.", orNone: "the server's setting" },
    ],
  },
  {
    title: "Results and webhooks",
    settings: [
      { name: "resultRetentionMs", title: "Results are kept", kind: "ms", text: "Of jobs that were submitted with /run." },
      { name: "syncResultRetentionMs", title: "Results of /runsync", kind: "ms", text: "Of jobs whose client waited." },
      { name: "webhook", title: "Webhook", kind: "text", text: "Called for jobs that name none.", orNone: "none" },
      { name: "webhookEvents", title: "Events", kind: "words", words: EVENTS, text: "That webhooks are called for." },
    ],
  },
  {
    title: "Objectives",
    settings: [
      { name: "slo.delayMs", title: "Starts within", kind: "ms", text: "A job that waits longer started late.", orNone: "no objective for the delay" },
      { name: "slo.delayTarget", title: "Share of jobs that start in time", kind: "share", text: "In percent.", orNone: "95 % if another objective is set" },
      { name: "slo.successTarget", title: "Share of jobs that complete", kind: "share", text: "In percent, of those that end. Cancelled ones do not count.", orNone: "99 % if another objective is set" },
      { name: "slo.windowDays", title: "Window in days", kind: "number", text: "At most 30.", orNone: "30 if another objective is set" },
    ],
  },
  {
    title: "Models and examples",
    settings: [
      { name: "models", title: "Models", kind: "texts", text: "The names that openai clients send, between commas." },
      { name: "keepFailureTexts", title: "Messages of failures", kind: "flag", words: ["stored", "not stored"], text: "A message can have a part of a job's input. Types and places are always stored." },
      { name: "example", title: "Example", kind: "json", text: "A request to try the endpoint with, such as {\"input\": {\"prompt\": \"a harbour\"}}.", orNone: "none" },
      { name: "inputSchema", title: "Schema of the input", kind: "json", text: "The JSON Schema that the playground makes a form of. Requests are not checked against it.", orNone: "none" },
    ],
  },
  {
    title: "Names",
    settings: [
      { name: "name", title: "Name", kind: "text", text: "For people." },
      { name: "slug", title: "Slug", kind: "text", text: "A second address. A change breaks clients that use it.", orNone: "none" },
    ],
  },
];

/**
 * The setting with the words that the server knows now: the template is one of those that are here.
 * @param {Setting} setting @param {any[]} templates @param {string} present the id of the endpoint's template
 * @returns {Setting}
 */
export function withTemplates(setting, templates, present) {
  if (setting.name !== "templateId") return setting;
  const labels = /** @type {Record<string, string>} */ (Object.fromEntries(templates.map(({ id, name }) => [id, name])));
  return { ...setting, words: Object.keys({ [present]: "", ...labels }), labels };
}

export const SETTINGS = GROUPS.flatMap(({ settings }) => settings);

/**
 * An endpoint as its settings are: members of objects by their path, and JSON as text, in which numbers keep their digits.
 * @param {string} text the endpoint as the server answered it
 * @returns {Record<string, any>}
 */
export function readRecord(text) {
  const record = JSON.parse(text);
  const node = parse(text);
  for (const { name, kind } of SETTINGS) {
    const [outer, inner] = name.split(".");
    if (inner) record[name] = record[outer]?.[inner] ?? null;
    const value = kind === "json" ? member(node, name) : null;
    if (value) record[name] = writeLine(value);
  }
  return record;
}

/**
 * The body of a change, as JSON text. An object is sent whole, and null when it has no member.
 * @param {Record<string, any>} record as `readRecord` gives it
 * @param {Record<string, any>} changes
 */
export function patchOf(record, changes) {
  /** @type {Record<string, string>} */
  const members = {};
  for (const { name, kind } of SETTINGS) {
    if (!(name in changes)) continue;
    const [outer, inner] = name.split(".");
    members[outer] = inner ? objectOf(outer, record, changes) : kind === "json" && changes[name] !== null ? changes[name] : JSON.stringify(changes[name]);
  }
  return `{${Object.entries(members).map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

/** @param {string} outer @param {Record<string, any>} record @param {Record<string, any>} changes */
function objectOf(outer, record, changes) {
  const names = SETTINGS.map(({ name }) => name).filter((name) => name.startsWith(`${outer}.`));
  const members = names.map((name) => [name.slice(outer.length + 1), name in changes ? changes[name] : record[name]]).filter(([, value]) => value !== null);
  return members.length > 0 ? JSON.stringify(Object.fromEntries(members)) : "null";
}

/** A share with all digits that matter, in percent. @param {number} ratio */
const percents = (ratio) => Number((ratio * 100).toFixed(6));

/** The value as the text of a field. @param {Setting} setting @param {any} value */
export function written(setting, value) {
  if (value === null || value === undefined) return "";
  if (setting.kind === "share") return String(percents(value));
  if (setting.kind === "flag") return /** @type {string[]} */ (setting.words)[value ? 0 : 1];
  if (setting.kind === "json") {
    const node = parse(value);
    return node ? write(node) : value;
  }
  return setting.kind === "texts" ? value.join(", ") : String(value);
}

/**
 * The value that a field's text stands for, or what is wrong with it.
 * @param {Setting} setting
 * @param {string} text
 * @returns {{value?: any, fault?: string}}
 */
export function parsed(setting, text) {
  const trimmed = text.trim();
  if (setting.kind === "texts") return { value: trimmed ? trimmed.split(",").map((part) => part.trim()).filter(Boolean) : [] };
  if (trimmed === "") return setting.orNone ? { value: null } : { fault: `${setting.title} needs a value.` };
  if (setting.kind === "text" || setting.kind === "word") return { value: trimmed };
  if (setting.kind === "flag") return { value: trimmed === /** @type {string[]} */ (setting.words)[0] };
  if (setting.kind === "json") return json(setting, trimmed);
  const number = Number(trimmed);
  if (!Number.isFinite(number)) return { fault: `${setting.title} takes a number.` };
  return { value: setting.kind === "share" ? Number((number / 100).toFixed(8)) : number };
}

/** @param {Setting} setting @param {string} text @returns {{value?: string, fault?: string}} */
function json(setting, text) {
  try {
    JSON.parse(text);
    const node = parse(text);
    return { value: node ? writeLine(node) : text };
  } catch {
    const { at, wanted } = firstFault(text);
    const before = text.slice(0, at).split("\n");
    return { fault: `${setting.title} is not JSON: line ${before.length}, column ${before[before.length - 1].length + 1} must have ${wanted}.` };
  }
}

/** A value for people. @param {Setting} setting @param {any} value */
export function shown(setting, value) {
  if (value === null || value === undefined) return setting.orNone ?? "none";
  if (Array.isArray(value)) return value.length > 0 ? value.join(", ") : "none";
  switch (setting.kind) {
    case "ms":
      return duration(value);
    case "seconds":
      return duration(value * 1000);
    case "bytes":
      return size(value);
    case "share":
      return `${percents(value)} %`;
    case "flag":
      return written(setting, value);
    case "json":
      return value.length > JSON_SHOWN ? `${value.slice(0, JSON_SHOWN)}… (${size(value.length)})` : value;
    case "number":
      return Number.isInteger(value) ? count(value) : String(value);
    default:
      return setting.labels?.[value] ?? String(value);
  }
}

/** Whether two values of a setting are the same. @param {any} a @param {any} b */
export const isSame = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

const HARDWARE = ["computeType", "gpuCount", "gpuTypeIds", "memoryBytes", "vcpus"];

/**
 * What a change does at this moment, in sentences.
 * @param {any} endpoint as it is
 * @param {Record<string, any>} changes
 * @param {any} health
 */
export function effects(endpoint, changes, health) {
  const sentences = [];
  const workers = health ? health.workers.idle + health.workers.running + health.workers.initializing : 0;
  const most = changes.workersMax ?? endpoint.workersMax;
  const fewest = changes.workersMin ?? endpoint.workersMin;
  const workersOf = (/** @type {number} */ number) => `${count(number)} ${number === 1 ? "worker" : "workers"}`;
  if (most === 0 && endpoint.workersMax > 0) sentences.push("The endpoint is paused: running jobs finish, others wait.");
  else if (changes.workersMax !== undefined && workers > most) sentences.push(`${workersOf(workers - most)} more than now allowed: they end after their jobs.`);
  if (most > 0 && endpoint.workersMax === 0 && health?.jobs.inQueue > 0) sentences.push(`The endpoint runs again: ${count(health.jobs.inQueue)} jobs wait for workers.`);
  const isResized = changes.workersMin !== undefined || changes.workersMax !== undefined;
  // External workers are started by others.
  if (isResized && endpoint.provider !== "external" && most > 0 && fewest > workers) sentences.push(`${fewest - workers === 1 ? "1 worker starts" : `${count(fewest - workers)} workers start`} now.`);
  const idle = Math.min(health?.workers.idle ?? 0, Math.max(0, workers - fewest));
  if (most > 0 && changes.workersMin !== undefined && fewest < endpoint.workersMin && idle > 0) sentences.push(`${idle === 1 ? "1 idle worker ends" : `${count(idle)} idle workers end`} once without a job for the idle timeout.`);
  if (changes.idleTimeout < endpoint.idleTimeout && idle > 0) sentences.push(`${idle === 1 ? "1 idle worker ends" : `${count(idle)} idle workers end`} after ${duration(changes.idleTimeout * 1000)} without a job, instead of ${duration(endpoint.idleTimeout * 1000)}.`);
  if (changes.maxQueueLength && health?.jobs.inQueue >= changes.maxQueueLength) sentences.push(`${count(health.jobs.inQueue)} jobs wait: new ones are refused until fewer than ${count(changes.maxQueueLength)} do.`);
  if (HARDWARE.some((name) => name in changes) && workers > 0) sentences.push("Workers that run keep what they have; the next ones get the new hardware.");
  if (changes.templateId !== undefined && workers > 0) sentences.push("Workers of the present version end after their jobs. Those of the new one start as they go.");
  if (isResized && fewest > most) sentences.push("The fewest workers are more than the most: the server refuses that.");
  if (changes.slug !== undefined && endpoint.slug) sentences.push(`Clients that use “${endpoint.slug}” get 404.`);
  if (changes.inputSchema !== undefined) sentences.push(changes.inputSchema === null ? "The playground has no form." : "The playground has a form of this schema.");
  if (changes.keepFailureTexts === false) sentences.push("The messages of failures that are stored are removed.");
  if (changes.durability === "buffered") sentences.push("Jobs are acknowledged before they are on disk.");
  return sentences;
}
