// The settings of an endpoint: what each means, its default, and how it is written and read in a form.
import { count, duration, size } from "./format.js";

/**
 * @typedef {"text" | "number" | "ms" | "seconds" | "bytes" | "word" | "words" | "texts"} Kind
 * @typedef {{name: string, title: string, kind: Kind, text: string, words?: string[], orNone?: string, isWorkers?: boolean}} Setting
 *   `text` says what it means · `orNone` says what no value means; without it there has to be one
 */

const SCALERS = ["QUEUE_DELAY", "REQUEST_COUNT", "IDLE_GAPS"];
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
    title: "Names",
    settings: [
      { name: "name", title: "Name", kind: "text", text: "For people." },
      { name: "slug", title: "Slug", kind: "text", text: "A second address. A change breaks clients that use it.", orNone: "none" },
      { name: "models", title: "Models", kind: "texts", text: "The names that openai clients send, between commas." },
    ],
  },
];

export const SETTINGS = GROUPS.flatMap(({ settings }) => settings);

/** The value as the text of a field. @param {Setting} setting @param {any} value */
export function written(setting, value) {
  if (value === null || value === undefined) return "";
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
  const number = Number(trimmed);
  return Number.isFinite(number) ? { value: number } : { fault: `${setting.title} takes a number.` };
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
    case "number":
      return Number.isInteger(value) ? count(value) : String(value);
    default:
      return String(value);
  }
}

/** Whether two values of a setting are the same. @param {any} a @param {any} b */
export const isSame = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

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
  else if (workers > most) sentences.push(`${workersOf(workers - most)} more than now allowed: they end after their jobs.`);
  if (most > 0 && fewest > workers) sentences.push(`${workersOf(fewest - workers)} start now.`);
  if (fewest > most) sentences.push("The fewest workers are more than the most: the server refuses that.");
  if (changes.slug !== undefined && endpoint.slug) sentences.push(`Clients that use “${endpoint.slug}” get 404.`);
  if (changes.durability === "buffered") sentences.push("Jobs are acknowledged before they are on disk.");
  return sentences;
}
