// The settings of an endpoint: how each is written and read in a form, and what a change of it does.
import * as api from "./api.js";
import { count, duration, size } from "./format.js";
import { firstFault } from "./json_fault.js";
import { member, parse, write, writeLine } from "./json_text.js";
import { SETTINGS } from "./settings_fields.js";

/** @typedef {import("./settings_fields.js").Setting} Setting */

/**
 * @typedef {{record: any, tag: string | null, text: string}} Tagged the settings as they were read, with their `ETag`; `tag` is null for those
 *   that a change has answered
 */

/** Most characters of a JSON text in the table of changes. */
const JSON_SHOWN = 400;

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

/** Reads the settings. @param {string} path @returns {Promise<Tagged>} */
export async function readTagged(path) {
  const { text, tag } = await api.tagged("GET", path);
  return { record: readRecord(text), tag, text };
}

/**
 * The body of a change, as JSON text.
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

/**
 * The server keeps the members of `lb` that are left out. Another object is sent whole, and null when it has no member.
 * @param {string} outer @param {Record<string, any>} record @param {Record<string, any>} changes
 */
function objectOf(outer, record, changes) {
  const names = SETTINGS.map(({ name }) => name).filter((name) => name.startsWith(`${outer}.`));
  const inner = (/** @type {string} */ name) => name.slice(outer.length + 1);
  if (outer === "lb") return JSON.stringify(Object.fromEntries(names.filter((name) => name in changes).map((name) => [inner(name), changes[name]])));
  const members = names.map((name) => [inner(name), name in changes ? changes[name] : record[name]]).filter(([, value]) => value !== null);
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
  if (Array.isArray(value)) return value.length > 0 ? value.map((word) => setting.labels?.[word] ?? word).join(", ") : "none";
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

/**
 * What a new endpoint has, for people, or an empty text.
 * @param {Setting} setting
 * @param {Record<string, any>} fields those of a new endpoint in the API's document
 */
export function defaultOf(setting, fields) {
  const [outer, inner] = setting.name.split(".");
  const field = inner ? fields[outer]?.properties?.[inner] : fields[outer];
  const value = field?.default ?? setting.unset;
  return value === undefined ? (setting.orNone ?? "") : shown(setting, value);
}

/** Whether two values of a setting are the same. @param {any} a @param {any} b */
export const isSame = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

/** What workers are started with. */
const VERSIONED = ["templateId", "networkVolumeId", "networkVolumeIds", "lb.port", "lb.healthPort"];
const HARDWARE = ["computeType", "gpuCount", "gpuTypeIds", "memoryBytes", "vcpus"];

/**
 * What a change does at this moment, in sentences.
 * @param {Endpoint} endpoint as it is
 * @param {Record<string, any>} changes
 * @param {Health | undefined} health
 */
export function effects(endpoint, changes, health) {
  const sentences = [];
  const work = endpoint.type === "LB" ? "requests" : "jobs";
  const workers = health ? health.workers.idle + health.workers.running + health.workers.initializing : 0;
  const most = changes.workersMax ?? endpoint.workersMax;
  const fewest = changes.workersMin ?? endpoint.workersMin;
  const workersOf = (/** @type {number} */ number) => `${count(number)} ${number === 1 ? "worker" : "workers"}`;
  if (most === 0 && endpoint.workersMax > 0) sentences.push(`The endpoint is paused: running ${work} finish, others wait.`);
  else if (changes.workersMax !== undefined && workers > most) sentences.push(`${workersOf(workers - most)} more than now allowed: they end after their ${work}.`);
  if (most > 0 && endpoint.workersMax === 0 && health?.jobs.inQueue) sentences.push(`The endpoint runs again: ${count(health.jobs.inQueue)} ${work} wait for workers.`);
  const isResized = changes.workersMin !== undefined || changes.workersMax !== undefined;
  // External workers are started by others.
  if (isResized && endpoint.provider !== "external" && most > 0 && fewest > workers) sentences.push(`${fewest - workers === 1 ? "1 worker starts" : `${count(fewest - workers)} workers start`} now.`);
  const idle = Math.min(health?.workers.idle ?? 0, Math.max(0, workers - fewest));
  if (most > 0 && changes.workersMin !== undefined && fewest < endpoint.workersMin && idle > 0) sentences.push(`${idle === 1 ? "1 idle worker ends" : `${count(idle)} idle workers end`} once without a job for the idle timeout.`);
  if (changes.idleTimeout < endpoint.idleTimeout && idle > 0) sentences.push(`${idle === 1 ? "1 idle worker ends" : `${count(idle)} idle workers end`} after ${duration(changes.idleTimeout * 1000)} without a job, instead of ${duration(endpoint.idleTimeout * 1000)}.`);
  if (changes.maxQueueLength && health && health.jobs.inQueue >= changes.maxQueueLength) sentences.push(`${count(health.jobs.inQueue)} jobs wait: new ones are refused until fewer than ${count(changes.maxQueueLength)} do.`);
  if (HARDWARE.some((name) => name in changes) && workers > 0) sentences.push("Workers that run keep what they have; the next ones get the new hardware.");
  if (VERSIONED.some((name) => name in changes) && workers > 0) sentences.push(`Workers of the present version end after their ${work}. Those of the new one start as they go.`);
  if (isResized && fewest > most) sentences.push("The fewest workers are more than the most: the server refuses that.");
  if (changes.slug !== undefined && endpoint.slug) sentences.push(`Clients that use “${endpoint.slug}” get 404.`);
  if (changes.inputSchema !== undefined) sentences.push(changes.inputSchema === null ? "The playground has no form." : "The playground has a form of this schema.");
  if (changes["lb.public"] === true) sentences.push("Every client of this server reaches the workers, without a key.");
  if (changes.keepFailureTexts === false) sentences.push("The messages of failures that are stored are removed.");
  if (changes.durability === "buffered") sentences.push("Jobs are acknowledged before they are on disk.");
  return sentences;
}
