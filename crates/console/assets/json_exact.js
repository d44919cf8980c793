// JSON in which whole numbers beyond 2^53 keep all their digits.

const LONG = /^-?\d{16,}$/;

/**
 * A value whose long whole numbers `JSON.stringify` writes as they were. They are objects: what calculates with them takes
 * `asNumber` of them. Browsers older than 2025 round them.
 * @param {string} text
 */
export function parseExact(text) {
  const { rawJSON } = /** @type {any} */ (JSON);
  if (!rawJSON || !/\d{16}/.test(text)) return JSON.parse(text);
  const revive = (/** @type {string} */ _, /** @type {unknown} */ value, /** @type {{source?: string} | undefined} */ context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && LONG.test(context?.source ?? "") ? rawJSON(context?.source) : value;
  return JSON.parse(text, /** @type {any} */ (revive));
}

/** A value as a number of JavaScript, if it is one that has more digits. @param {any} value */
export const asNumber = (value) => (typeof value?.rawJSON === "string" ? Number(value.rawJSON) : value);
