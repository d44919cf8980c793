// Printed lines taken apart: the SDK's own lines, escapes that colour terminals, and tracebacks.
import { visible } from "./format.js";

/** @typedef {{id: string, at: string | null, worker: string, job: string | null, level: string | null, text: string}} LogLine */
/** @typedef {{text: string, tone: string}} Piece */

const SDK = /^\{"requestId": (?:null|"[^"]*"), "message": ("(?:[^"\\]|\\.)*"), "level": "\w+"\}$/;

/** The text that a line says: of the SDK's own lines, the message. @param {string} text */
export function messageOf(text) {
  const found = SDK.exec(text);
  if (!found) return text;
  try {
    return String(JSON.parse(found[1]));
  } catch {
    return text;
  }
}

/** The colours of terminals, as the tones of states. @type {Record<number, string>} */
const TONES = { 31: "failed", 91: "failed", 32: "completed", 92: "completed", 33: "queued", 93: "queued", 34: "running", 94: "running", 35: "timedout", 95: "timedout", 36: "accent", 96: "accent", 90: "cancelled" };

/** A text with colours of terminals as pieces of one tone; other escapes are dropped. @param {string} text @returns {Piece[]} */
export function pieces(text) {
  /** @type {Piece[]} */
  const found = [];
  let tone = "";
  for (const part of text.split(/(\u001b\[[0-9;]*m)/)) {
    const colour = /^\u001b\[([0-9;]*)m$/.exec(part);
    if (colour) {
      tone = toneAfter(tone, colour[1].split(";").map(Number));
    } else if (part) {
      found.push({ text: visible(part.replace(/\u001b(?:\[[0-9;?]*[A-Za-z]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|.)/g, "")), tone });
    }
  }
  return found;
}

/** The tone after these parameters of an escape. Of the 256 colours, the first 16 have one; a colour of three parts has none. @param {string} tone @param {number[]} codes */
function toneAfter(tone, codes) {
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at];
    if (code === 38 || code === 48) {
      const [kind, number] = [codes[at + 1], codes[at + 2]];
      if (code === 38) tone = (kind === 5 && TONES[number < 8 ? 30 + number : 82 + number]) || "";
      at += kind === 5 ? 2 : 4;
    } else tone = code === 0 || code === 39 ? "" : (TONES[code] ?? tone);
  }
  return tone;
}

/**
 * Lines in the order of time, where the lines of a traceback follow the first one.
 * @param {LogLine[]} lines
 * @returns {{line: LogLine, rest: LogLine[]}[]}
 */
export function joined(lines) {
  /** @type {{line: LogLine, rest: LogLine[]}[]} */
  const groups = [];
  /** The last group of each worker: lines of others come between. @type {Map<string, {line: LogLine, rest: LogLine[]}>} */
  const lasts = new Map();
  for (const line of lines) {
    const last = lasts.get(line.worker);
    if (last && isWithin(last, line.text)) {
      last.rest.push(line);
      continue;
    }
    const group = { line, rest: [] };
    groups.push(group);
    lasts.set(line.worker, group);
  }
  return groups;
}

/** @param {{line: LogLine, rest: LogLine[]}} group @param {string} text */
function isWithin({ line, rest }, text) {
  if (!line.text.startsWith("Traceback (most recent call last)")) return false;
  // The line with the exception ends a traceback.
  const isOver = rest.some((one) => !/^\s/.test(one.text));
  return !isOver && text !== "";
}
