// How numbers, durations, sizes and times are written.

const THIN = "\u2009";
/** What is not known is written so, never as 0. */
export const UNKNOWN = "–";

/** 1240118 as "1 240 118", with thin spaces. @param {number | null | undefined} value */
export function count(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return UNKNOWN;
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** A rate with three digits at most: 0.0012, 0.25, 8.5, 120. @param {number | null | undefined} value */
export function rate(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  if (value >= 100) return count(value);
  if (value < 0.1) return String(Number(value.toPrecision(2)));
  return value.toFixed(value < 1 ? 2 : 1);
}

/** @param {number | null | undefined} ratio from 0 to 1 */
export function percent(ratio) {
  if (ratio === null || ratio === undefined || !Number.isFinite(ratio)) return UNKNOWN;
  const value = ratio * 100;
  return value === 0 || value >= 10 ? value.toFixed(0) : value.toFixed(1);
}

/** 340 ms, 1.63 s, 12.4 s, 2 min 4 s, 3 h 10 min, 2 d 4 h. @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return UNKNOWN;
  const value = Math.max(0, ms);
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 10000) return `${(value / 1000).toFixed(2)} s`;
  if (value < 60000) return `${(value / 1000).toFixed(1)} s`;
  return long(Math.round(value / 1000));
}

/** @param {number} seconds at least 60 */
function long(seconds) {
  const units = /** @type {[number, string][]} */ ([[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]);
  const at = units.findIndex(([size]) => seconds >= size);
  const [size, name] = units[at];
  const first = `${Math.floor(seconds / size)} ${name}`;
  const [nextSize, nextName] = units[at + 1] ?? [1, "s"];
  const rest = Math.floor((seconds % size) / nextSize);
  return rest === 0 || size === 1 ? first : `${first} ${rest} ${nextName}`;
}

/** A duration as one number: 4 s, 12 min, 3 h. @param {number} ms */
export function coarse(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** @param {number} ms before now */
export const ago = (ms) => (ms < 1000 ? "now" : `${coarse(ms)} ago`);

/** @param {number | null | undefined} bytes */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return UNKNOWN;
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}

/** The end of an id, by which people tell jobs apart. @param {string} id */
export const shortId = (id) => id.slice(-12);

/** The moment of a time in ms, or null. @param {string | number | null | undefined} time */
export function moment(time) {
  if (time === null || time === undefined || time === "") return null;
  const at = typeof time === "number" ? time : Date.parse(time);
  return Number.isNaN(at) ? null : at;
}

const pad = (/** @type {number} */ value, width = 2) => String(value).padStart(width, "0");

/**
 * 2026-11-22 08:58:44, with ms if asked for.
 * @param {number} at ms since 1970
 * @param {{utc?: boolean, ms?: boolean}} [options]
 */
export function dateTime(at, { utc = false, ms = false } = {}) {
  const date = new Date(at);
  const [year, month, day, hour, minute, second, milli] = utc
    ? [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds(), date.getUTCMilliseconds()]
    : [date.getFullYear(), date.getMonth(), date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds(), date.getMilliseconds()];
  const clock = `${pad(hour)}:${pad(minute)}:${pad(second)}${ms ? `.${pad(milli, 3)}` : ""}`;
  return `${year}-${pad(month + 1)}-${pad(day)} ${clock}`;
}

/** The time at which a job's id was made, which its first 48 bits hold. @param {string} id */
export function timeOfId(id) {
  const digits = id.replace(/^sync-/, "").replaceAll("-", "").slice(0, 12);
  return /^[0-9a-f]{12}$/.test(digits) ? parseInt(digits, 16) : null;
}

/** Control and bidirectional characters as symbols, so that text cannot disguise itself. @param {string} text */
export const visible = (text) =>
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : "\ufffd";
  });
