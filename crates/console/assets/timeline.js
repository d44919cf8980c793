// The time range of a page, which its address holds, and what the server recorded in it.
import { place, setQuery } from "./router.js";
import { useRead } from "./store.js";

/** @typedef {{from: string, to: string, stepMs: number, t: number[], series: Record<string, any[]>, total: Record<string, any>, marks: Mark[], missingBefore: string | null}} History */
/** @typedef {{at: string, kind: "version" | "restart", text: string}} Mark */
/** @typedef {{name: string, ms: number, query: string, isLive: boolean}} Range */

const MINUTE_MS = 60000;
const HOUR_MS = 60 * MINUTE_MS;

/** The ranges that end now. */
export const RANGES = [
  { name: "15 min", ms: 15 * MINUTE_MS },
  { name: "1 h", ms: HOUR_MS },
  { name: "6 h", ms: 6 * HOUR_MS },
  { name: "24 h", ms: 24 * HOUR_MS },
  { name: "7 d", ms: 168 * HOUR_MS },
  { name: "30 d", ms: 720 * HOUR_MS },
];
const USUAL = RANGES[0];
/** A shorter range has too few points. */
const ZOOM_MS_MIN = 20000;

/** The pages with charts of what the server recorded. */
export const CHART_PAGES = ["overview", "endpoint", "metrics"];

/** The path of a page with charts: from another one, with the range that is shown there. @param {string} path */
export function withRange(path) {
  const { page, query } = place.value;
  const kept = new URLSearchParams([...query].filter(([name]) => CHART_PAGES.includes(page) && ["range", "from", "to"].includes(name)));
  return kept.size > 0 ? `${path}?${kept}` : path;
}

/** The range in the address: `range=6+h`, or `from` and `to` in ms. @returns {Range} */
export function currentRange() {
  const { query } = place.value;
  const [from, to] = [Number(query.get("from")), Number(query.get("to"))];
  if (from > 0 && to - from >= ZOOM_MS_MIN) {
    const iso = (/** @type {number} */ ms) => new Date(ms).toISOString();
    return { name: "", ms: to - from, query: `from=${iso(from)}&to=${iso(to)}`, isLive: false };
  }
  const chosen = RANGES.find(({ name }) => name === query.get("range")) ?? USUAL;
  return { ...chosen, query: `last=${chosen.ms}`, isLive: true };
}

/** Shows a range that ends now. @param {string} name */
export const showRange = (name) => setQuery({ range: name === USUAL.name ? null : name, from: null, to: null });

/** Shows the time between two moments, in ms. @param {number} from @param {number} to */
export function zoom(from, to) {
  const missing = Math.max(0, ZOOM_MS_MIN - (to - from)) / 2;
  setQuery({ from: String(Math.floor(from - missing)), to: String(Math.ceil(to + missing)) });
}

/** How often new points are read, in ms: those of a longer range come less often. @param {Range} range */
const periodOf = ({ ms, isLive }) => (!isLive ? Infinity : ms > USUAL.ms ? MINUTE_MS : 4000);

/**
 * The history of one endpoint, or of all that the key may read.
 * @param {string | null} endpoint its id; null for all
 * @param {string[]} series
 * @param {boolean} [isAsked] false reads nothing
 * @returns {{data: History | undefined, error: any, range: Range, path: string}}
 */
export function useHistory(endpoint, series, isAsked = true) {
  const range = currentRange();
  const root = endpoint ? `/v1/endpoints/${encodeURIComponent(endpoint)}/history` : "/v1/history";
  const path = `${root}?${range.query}&series=${series.join(",")}`;
  const { data, error } = useRead(isAsked ? path : null, periodOf(range));
  return { data, error, range, path };
}

/**
 * The history of the time before the current range, of the same length.
 * @param {string | null} endpoint its id; null for all
 * @param {string[]} series
 * @param {boolean} isAsked false reads nothing
 */
export function useHistoryBefore(endpoint, series, isAsked) {
  const range = currentRange();
  const { query } = place.value;
  // To the minute, so that a range that ends now is not read with every render.
  const now = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const to = range.isLive ? now - range.ms : Number(query.get("from"));
  const iso = (/** @type {number} */ ms) => new Date(ms).toISOString();
  const root = endpoint ? `/v1/endpoints/${encodeURIComponent(endpoint)}/history` : "/v1/history";
  const path = `${root}?from=${iso(to - range.ms)}&to=${iso(to)}&series=${series.join(",")}`;
  return useRead(isAsked ? path : null, Infinity);
}

/** Counts of steps as numbers a second. @param {History} history @param {string} name */
export const perSecond = (history, name) => history.series[name].map((value) => (value === null ? null : value / (history.stepMs / 1000)));
