// The record of a job, with an output of any size: a large one is neither parsed nor copied.
import { member, parse, write } from "./json_text.js";

/** A larger input or output is read when asked: no record comes with it. */
export const READ_BYTES_MAX = 5000000;
/** The output of a larger record is taken as it came. */
const LARGE = 1000000;
/** The server writes the output last, and no text before it can contain this. */
const OUTPUT = ',"output":';

/** The job of a record; one with a large output is without it. @param {string} text */
export function jobOf(text) {
  const at = text.length > LARGE ? text.indexOf(OUTPUT) : -1;
  return JSON.parse(at < 0 ? text : `${text.slice(0, at)}}`);
}

/** The output of a record as JSON text; null if it is an empty list, undefined if the record has none. @param {string} text */
export function outputOf(text) {
  const record = text.length > LARGE ? null : parse(text);
  if (!record) {
    // It is large, or nested too deeply for a tree.
    const at = text.indexOf(OUTPUT);
    return at < 0 ? undefined : text.slice(at + OUTPUT.length, text.lastIndexOf("}"));
  }
  const node = member(record, "output");
  if (!node) return undefined;
  return node.kind === "array" && node.items.length === 0 ? null : write(node);
}
