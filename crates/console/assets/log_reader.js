// The lines of an endpoint's workers in the order of time: the newest as they are printed, older ones as one scrolls.
import { signal } from "./dom.js";
import * as api from "./api.js";
import { fieldsOf, partsOf } from "./event_stream.js";
import { takeTurn } from "./live.js";
import { LogBlocks } from "./log_blocks.js";

/** @typedef {import("./log_text.js").LogLine} LogLine */
/** @typedef {{worker?: string, job?: string, level?: string, q?: string, after?: string, regex?: string}} LogFilter */
/** @typedef {{lines: LogLine[], cursor: string | null, scannedBytes: number}} Page the newest line is the first */

/** How long a response that failed is not sent again, and how often lines are read without one. */
const AGAIN_MS = 2000;
/** The newest lines, and older ones that are read together. */
const [PAGE, OLDER_PAGE] = [500, 2000];
/** More lines are not held. */
const LINES_MAX = 200000;

export class LogReader {
  /** @param {Endpoint} endpoint @param {LogFilter} filter @param {boolean} isLow whether other long responses come first */
  constructor(endpoint, filter, isLow = false) {
    this.endpoint = endpoint;
    this.filter = filter;
    this.isLow = isLow;
    this.lines = new LogBlocks();
    /** Changes when lines came or a read failed. */
    this.version = signal(0);
    this.error = /** @type {api.ApiError | null} */ (null);
    this.isLoading = false;
    /** Where older lines begin; null when all were read. @type {string | null} */
    this.cursor = null;
    this.scanned = 0;
    /** Whether a page was read: without lines, there are none. */
    this.isBegun = false;
    /** Whether older lines are read by a press only: the last read of them failed, or gave none. */
    this.needsPress = false;
    /** Whether one reads the newest lines. Otherwise what is read stays where it is. */
    this.isAtEnd = true;
    /** Whether newer lines are left out, as older ones are read. */
    this.isBehind = false;
    /** The ids of the lines that came last. */
    this.lastIds = /** @type {Set<string>} */ (new Set());
    /** Ends with the page. */
    this.opened = new AbortController();
    /** Ends when newer lines are not wanted. */
    this.run = new AbortController();
    /** Ends one response of newer lines. */
    this.stream = new AbortController();
    this.hasTurn = false;
    this.frame = 0;
    this.giveBack = () => {};
  }

  /** Reads the newest lines, and goes on with those that are printed. */
  begin() {
    this.isBehind = false;
    this.run = new AbortController();
    this.giveBack = takeTurn((isOn) => {
      this.stream.abort();
      this.stream = new AbortController();
      this.hasTurn = isOn;
      if (isOn) void this.follow(this.stream.signal);
    }, { isLow: this.isLow });
    void this.poll(this.run.signal);
  }

  /** Reads no newer lines, until `restart`. */
  halt() {
    this.isBehind = true;
    this.run.abort();
    this.stream.abort();
    this.giveBack();
    this.hasTurn = false;
  }

  close() {
    this.halt();
    this.opened.abort();
    cancelAnimationFrame(this.frame);
  }

  /** Goes back to the newest lines. */
  restart() {
    this.halt();
    [this.lines, this.cursor, this.isBegun, this.isAtEnd, this.needsPress] = [new LogBlocks(), null, false, true, false];
    this.begin();
    this.changed();
  }

  /** @param {Record<string, string>} [more] */
  path(more) {
    const { worker, job, level, q, after, regex } = this.filter;
    const query = new URLSearchParams({ limit: String(PAGE) });
    for (const [name, value] of Object.entries({ worker, job, level, q, regex, since: after, ...more })) if (value) query.set(name, value);
    return `/v1/endpoints/${encodeURIComponent(this.endpoint.id)}/logs?${query}`;
  }

  /** Draws what has changed with the next frame. */
  changed() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.version.value += 1;
    });
  }

  /** @param {unknown} error @param {AbortSignal} stop */
  fail(error, stop) {
    if (stop.aborted) return;
    this.error = error instanceof api.ApiError ? error : new api.ApiError(String(error));
    this.changed();
  }

  /** Reads what is printed, as long as this tab has a turn. @param {AbortSignal} stop */
  async follow(stop) {
    while (!stop.aborted) {
      try {
        for await (const events of partsOf(await api.open(this.path(), { signal: stop }))) {
          if (stop.aborted) return;
          for (const event of events) this.accept(fieldsOf(event));
        }
      } catch (error) {
        this.fail(error, stop);
        if (error instanceof api.ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) return;
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** Reads the newest lines again and again while this tab has no turn. @param {AbortSignal} stop */
  async poll(stop) {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      if (stop.aborted) return;
      if (this.hasTurn || document.hidden) continue;
      try {
        const page = await api.json("GET", this.path(), { signal: stop });
        if (!this.hasTurn && !stop.aborted) this.accept({ event: "page", data: page });
      } catch (error) {
        this.fail(error, stop);
      }
    }
  }

  /** @param {{event?: string, data?: any}} fields an event, whose data is JSON text or its value */
  accept({ event, data }) {
    if (data === undefined) return;
    const value = typeof data === "string" ? JSON.parse(data) : data;
    if (event === "page") this.begun(value);
    else this.add(value.lines);
    this.lastIds = new Set(value.lines.map((/** @type {LogLine} */ { id }) => id));
    this.error = null;
    this.changed();
  }

  /** The newest lines: at the begin, after a response that ended, and where lines were left out. @param {Page} page */
  begun(page) {
    const lines = [...page.lines].reverse();
    const isGap = page.cursor !== null && !page.lines.some(({ id }) => this.lastIds.has(id));
    if (this.isBegun && !isGap) return this.add(lines);
    if (this.isBegun && !this.isAtEnd) return this.halt();
    this.lines = new LogBlocks();
    this.lines.append(lines);
    [this.cursor, this.isBegun] = [page.cursor, true];
    this.scanned += page.scannedBytes;
    return undefined;
  }

  /** @param {LogLine[]} lines in the order of time */
  add(lines) {
    if (this.isBehind) return;
    // What one reads is not dropped.
    if (!this.isAtEnd && this.lines.count + lines.length > LINES_MAX) return this.halt();
    this.lines.append(lines);
    if (this.lines.dropOldest(LINES_MAX)) this.cursor = this.lines.first()?.id ?? null;
  }

  /** Reads the lines before the first one. */
  async older() {
    if (this.isLoading || this.cursor === null) return;
    this.isLoading = true;
    const { lines, cursor } = this;
    try {
      const page = /** @type {Page} */ (await api.json("GET", this.path({ cursor, limit: String(OLDER_PAGE) }), { signal: this.opened.signal }));
      // Meanwhile lines may have been dropped, or read anew.
      if (lines === this.lines && cursor === this.cursor) {
        this.needsPress = page.lines.length === 0;
        lines.prepend(page.lines.reverse());
        this.cursor = page.cursor;
        this.scanned += page.scannedBytes;
        if (lines.dropNewest(LINES_MAX)) this.halt();
      }
      this.error = null;
    } catch (error) {
      this.needsPress = true;
      this.fail(error, this.opened.signal);
    }
    this.isLoading = false;
    this.changed();
  }
}
