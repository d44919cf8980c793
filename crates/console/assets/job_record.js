// The record of a job, with an output of any size: a large one is neither parsed nor copied.

/** A larger input or output is read when asked: no record comes with it. */
export const READ_BYTES_MAX = 5000000;
/** A larger record is parsed without its output. */
const LARGE = 1000000;
/** The server writes the output last, and no text before it can contain this. */
const OUTPUT = ',"output":';

/** The job of a record; one with a large output is without it. @param {string} text */
export function jobOf(text) {
  const at = text.length > LARGE ? text.indexOf(OUTPUT) : -1;
  return JSON.parse(at < 0 ? text : `${text.slice(0, at)}}`);
}

/** The output of a record, as it came; null if it is an empty list, undefined if the record has none. @param {string} text */
export function outputOf(text) {
  const at = text.indexOf(OUTPUT);
  if (at < 0) return undefined;
  const output = text.slice(at + OUTPUT.length, text.lastIndexOf("}"));
  return /^\s*\[\s*\]\s*$/.test(output) ? null : output;
}
