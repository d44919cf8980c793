// The lines of an endpoint's workers in the order of time: the newest as they come, older ones as one scrolls.
import { signal } from "./dom.js";
import * as api from "./api.js";
import { messageOf } from "./log_text.js";

/** @typedef {import("./log_text.js").LogLine} LogLine */
/** @typedef {{worker?: string, job?: string, level?: string, q?: string, after?: string, regex?: RegExp | null}} LogFilter */

const NEWS_MS = 2000;
const PAGE = 500;
/** News are read in this number of pages at most: of what workers print faster, the oldest lines are left out. */
const NEWS_PAGES_MAX = 10;
/** Lines beyond are dropped, the oldest first. */
export const LINES_MAX = 20000;

export class LogReader {
  /** @param {any} endpoint @param {LogFilter} filter */
  constructor(endpoint, filter) {
    this.endpoint = endpoint;
    this.filter = filter;
    /** In the order of time. @type {LogLine[]} */
    this.lines = [];
    /** Changes when lines came or a read failed. */
    this.version = signal(0);
    this.error = /** @type {api.ApiError | null} */ (null);
    this.isLoading = false;
    /** Where older lines begin; null when all were read. @type {string | null} */
    this.cursor = null;
    this.scanned = 0;
    /** Whether a page was read: without lines, there are none. */
    this.isBegun = false;
    this.stop = new AbortController();
    this.timer = 0;
  }

  async begin() {
    await this.older();
    this.follow();
  }

  close() {
    this.stop.abort();
    clearTimeout(this.timer);
  }

  /** @param {Record<string, string>} more @returns {Promise<{lines: LogLine[], cursor: string | null, scannedBytes: number}>} */
  ask(more) {
    const { worker, job, level, q, after } = this.filter;
    const query = new URLSearchParams({ limit: String(PAGE) });
    for (const [name, value] of Object.entries({ worker, job, level, q, since: after, ...more })) if (value) query.set(name, value);
    return api.json("GET", `/v1/endpoints/${encodeURIComponent(this.endpoint.id)}/logs?${query}`, { signal: this.stop.signal });
  }

  /** @param {LogLine[]} lines */
  wanted(lines) {
    const { regex } = this.filter;
    return regex ? lines.filter(({ text }) => regex.test(messageOf(text))) : lines;
  }

  /** Reads the lines before the first one. */
  async older() {
    if (this.isLoading || (this.isBegun && this.cursor === null)) return;
    this.isLoading = true;
    try {
      const page = await this.ask(this.cursor ? { cursor: this.cursor } : {});
      this.lines = [...this.wanted(page.lines).reverse(), ...this.lines].slice(-LINES_MAX);
      this.cursor = page.cursor;
      this.scanned += page.scannedBytes;
      this.isBegun = true;
      this.error = null;
    } catch (error) {
      if (!this.stop.signal.aborted) this.error = /** @type {api.ApiError} */ (error);
    }
    this.isLoading = false;
    this.version.value += 1;
  }

  /** Reads what was printed since the last line, again and again. */
  follow() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(async () => {
      if (!document.hidden) await this.news();
      if (!this.stop.signal.aborted) this.follow();
    }, NEWS_MS);
  }

  /** The lines that are not known as they are, the newest first. @param {Record<string, string>} after @returns {Promise<LogLine[]>} */
  async since(after) {
    const known = new Map(this.lines.slice(-2 * PAGE).map((line) => [line.id, line.text]));
    /** @type {LogLine[]} */
    const fresh = [];
    let cursor = /** @type {string | null} */ ("");
    for (let pages = 0; cursor !== null && pages < NEWS_PAGES_MAX; pages += 1) {
      const page = await this.ask(cursor ? { ...after, cursor } : after);
      fresh.push(...this.wanted(page.lines).filter(({ id, text }) => known.get(id) !== text));
      // Without lines, the newest page is enough: older ones come as one scrolls.
      cursor = after.since && !page.lines.some(({ id }) => known.has(id)) ? page.cursor : null;
    }
    return fresh;
  }

  async news() {
    if (!this.isBegun) return this.older();
    const since = this.lines.at(-1)?.at;
    try {
      const fresh = await this.since(since ? { since } : {});
      if (fresh.length === 0 && !this.error) return undefined;
      // A line that was read while it was being printed is read again, whole.
      const again = new Set(fresh.map(({ id }) => id));
      this.lines = [...this.lines.filter(({ id }) => !again.has(id)), ...fresh.reverse()].slice(-LINES_MAX);
      this.error = null;
    } catch (error) {
      if (this.stop.signal.aborted) return undefined;
      this.error = /** @type {api.ApiError} */ (error);
    }
    this.version.value += 1;
    return undefined;
  }
}
