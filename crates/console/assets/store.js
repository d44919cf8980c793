// What pages show of the server: each address is read once for all that show it, and then follows the events.
//
// This is the only file that decides when something is read. A page asks with `useRead`; a change calls `refresh`. What no
// event reports is read again while it is seen.
import { signal, useLayoutEffect, useMemo } from "./dom.js";
import * as api from "./api.js";
import { connection, whenTold } from "./live.js";
import { parseExact } from "./json_exact.js";
import { AGAIN, applied, endpointOf, isTold, mayConcern } from "./told.js";

/**
 * @template T
 * @typedef {{data: T | undefined, error: api.ApiError | null, at: number, askedAt?: number}} Read
 * What an address answered last, and when it was asked; `data` stays while a later read fails.
 */

/** The shortest time between two reads of an address that events cause. */
const AGAIN_MS = 2000;
/** That of one with the counts of all endpoints. */
const ALL_AGAIN_MS = 5000;
/** The interval in ms of reading what events report, while there is no stream of events. */
const WITHOUT_EVENTS_MS = 5000;

/** The time now, in ms, for ages: it advances once a second while the page is seen. */
export const now = signal(Date.now());

/** What is shown although its last read failed, in a way that may pass; null if nothing is. */
export const unread = signal(/** @type {Entry | null} */ (null));

/** Called with every answer of the job counts of an endpoint. @type {Set<(path: string, data: any, at: number) => void>} */
const listeners = new Set();

/** @param {(path: string, data: any, at: number) => void} listener */
export const whenRead = (listener) => void listeners.add(listener);

/** Reads begin after this. @type {Promise<void>} */
let begun = Promise.resolve();

/** Lets all reads wait. @param {Promise<void>} until */
export const waitFor = (until) => void (begun = until);

/** An address that is shown somewhere. */
class Entry {
  /** @param {string} path */
  constructor(path) {
    this.path = path;
    this.value = signal(/** @type {Read<any>} */ ({ data: undefined, error: null, at: 0 }));
    /** The periods of those that show it, in ms. @type {number[]} */
    this.periods = [];
    this.timer = 0;
    /** Ends the read in flight. @type {AbortController | null} */
    this.reading = null;
    /** An event came while the address was read: the answer may be older than the event. */
    this.isOvertaken = false;
    /** An event came after the last answer, and does not say what changed. */
    this.isStale = false;
    this.readAt = 0;
    this.lastText = "";
    this.isTold = isTold(path);
    /** The answer of another address has it, which is read in its place. @type {Entry | null} */
    this.source = null;
    this.isSource = path.endsWith("?includeHealth=true");
    /** A component has asked for it, and has not been put into the document yet. */
    this.isNew = true;
  }

  /** Reads the address now, unless a read is in flight. */
  async read() {
    if (this.reading) return;
    const { signal } = (this.reading = new AbortController());
    this.isStale = false;
    this.readAt = Date.now();
    clearTimeout(this.timer);
    try {
      await begun;
      // What came before the request is in its answer.
      this.isOvertaken = false;
      const text = await api.text("GET", this.path, { signal });
      if (!signal.aborted) this.accept(text);
    } catch (error) {
      if (!signal.aborted) this.fail(error);
    }
    // A read that was ended says nothing; a later one may be in flight.
    if (signal.aborted) return;
    this.reading = null;
    if (this.isOvertaken) this.readSoon();
    else this.schedule();
  }

  /** Ends the read in flight, for which nothing waits. The next component that shows the address reads it. */
  stop() {
    if (!this.reading) return;
    this.reading.abort();
    this.reading = null;
    this.isStale = true;
  }

  /** Reads the address again, but not more often than every 2 s or 5 s. Until one shows it, it is only noted as stale. */
  readSoon() {
    if (this.reading) {
      this.isOvertaken = true;
      return;
    }
    this.isStale = true;
    this.schedule();
  }

  /** @param {string} name @param {any} told */
  tell(name, told) {
    const { data, error } = this.value.peek();
    if (data === undefined || this.reading) {
      this.isOvertaken ||= this.reading !== null && (data === undefined ? mayConcern(this.path, name) : applied(this.path, data, name, told) !== data);
      return;
    }
    const next = applied(this.path, data, name, told);
    if (next === AGAIN) (this.source ?? this).readSoon();
    else if (next !== data) this.put(next, error);
  }

  /** @param {any} data @param {api.ApiError | null} error @param {number} [at] */
  put(data, error, at = Date.now()) {
    this.lastText = "";
    for (const listener of listeners) listener(this.path, data, at);
    this.value.value = { data, error, at };
  }

  /** @param {string} text */
  accept(text) {
    this.heal();
    const at = Date.now();
    const isSame = text === this.lastText && !this.value.peek().error;
    const data = isSame ? this.value.peek().data : parseExact(text);
    for (const listener of listeners) listener(this.path, data, at);
    this.lastText = text;
    // The same answer renders nothing. What it seeds may have changed since.
    if (!isSame || this.isSource) this.value.value = { data, error: null, at, askedAt: this.readAt };
  }

  /** @param {unknown} error */
  fail(error) {
    const failed = error instanceof api.ApiError ? error : new api.ApiError(String(error));
    this.value.value = { ...this.value.peek(), error: failed };
    if (this.value.peek().data !== undefined && this.periods.length > 0 && (failed.status === 0 || failed.status === 429 || failed.status >= 500)) unread.value = this;
  }

  /** It is new again, or no longer shown. */
  heal() {
    if (unread.peek() === this) unread.value = null;
  }

  /** Whether the answer is as the server would give it now. */
  isFresh() {
    return this.isTold && !this.isStale && this.value.peek().data !== undefined && !this.value.peek().error && connection.peek().state === "live";
  }

  schedule() {
    clearTimeout(this.timer);
    if (this.isStale && this.periods.length > 0 && !document.hidden) {
      this.timer = window.setTimeout(() => this.read(), Math.max(0, this.readAt + (this.isSource ? ALL_AGAIN_MS : AGAIN_MS) - Date.now()));
      return;
    }
    const period = this.period();
    if (!Number.isFinite(period) || document.hidden) return;
    this.timer = window.setTimeout(() => this.read(), period);
  }

  /** When the address is read again without an event, in ms. */
  period() {
    const wanted = Math.min(...this.periods);
    const { error } = this.value.peek();
    // The server may be back soon. What is not shown, with the period Infinity, is not read.
    if (!this.isTold) return wanted < Infinity && error && (error.status === 0 || error.status >= 500) ? Math.min(wanted, WITHOUT_EVENTS_MS) : wanted;
    const isKept = connection.peek().state === "live" && !error;
    return isKept ? Infinity : Math.max(wanted, WITHOUT_EVENTS_MS);
  }
}

/** @type {Map<string, Entry>} */
const entries = new Map();
/** The same, by `endpointOf`. @type {Map<string, Set<Entry>>} */
const concerned = new Map();
/** Addresses that are no longer shown stay this number, so that going back shows them immediately. */
const KEPT_MAX = 200;

/** @param {string} path */
function entryOf(path) {
  let entry = entries.get(path);
  if (!entry) {
    entry = new Entry(path);
    entries.set(path, entry);
    const name = endpointOf(path);
    concerned.set(name, (concerned.get(name) ?? new Set()).add(entry));
  }
  return entry;
}

let trimming = 0;

/** Ends the reads of addresses that are no longer shown, and forgets those of too many; the oldest first. */
function trim() {
  for (const [path, entry] of entries) {
    if (entry.periods.length > 0 || entry.isNew) continue;
    entry.stop();
    if (entries.size <= KEPT_MAX) continue;
    entries.delete(path);
    concerned.get(endpointOf(path))?.delete(entry);
  }
}

/** What an address answers, read now and then every `everyMs` while a component shows it; Infinity reads once, a null path nothing. @param {string | null} path @param {number} everyMs @returns {Read<any>} */
export function useRead(path, everyMs) {
  return useReads(path ? [path] : [], everyMs).get(path ?? "") ?? { data: undefined, error: null, at: 0 };
}

/**
 * As `useRead`, for several addresses.
 * @param {string[]} paths
 * @param {number} everyMs
 * @param {Map<string, {data: any, at: number, of: string}>} [seeds] what the address `of` has answered of these, and when it was asked
 * @returns {Map<string, Read<any>>}
 */
export function useReads(paths, everyMs, seeds) {
  const key = paths.join("\n");
  const shown = useMemo(() => paths.map((path) => Object.assign(entryOf(path), { isNew: true })), [key]);
  // The requests are on their way before the page is drawn.
  useLayoutEffect(() => {
    for (const entry of shown) {
      entry.isNew = false;
      entry.periods.push(everyMs);
      const seed = seeds?.get(entry.path);
      entry.source = seed?.data === undefined ? null : entryOf(seed.of);
      // What events have kept up to date since it was read is not read again, and what one has changed since is newer than a seed.
      if (!entry.source && !entry.isFresh()) void entry.read();
      else if (seed && entry.source && entry.value.peek().at < seed.at) entry.put(seed.data, null, seed.at);
    }
    return () => {
      for (const entry of shown) {
        entry.source = null;
        entry.periods.splice(entry.periods.indexOf(everyMs), 1);
        if (entry.periods.length === 0) entry.heal();
        entry.schedule();
      }
      clearTimeout(trimming);
      trimming = window.setTimeout(trim);
    };
  }, [shown, everyMs, seeds]);
  return new Map(shown.map((entry) => [entry.path, entry.value.value]));
}

/** What an address has answered that is shown, or was lately. Nothing is read for it. @param {string} path @returns {any} */
export const known = (path) => entries.get(path)?.value.peek().data;

/** Reads again what is shown and begins with this path, after a change. What another address has is read only by its whole path. @param {string} prefix */
export function refresh(prefix) {
  for (const entry of entries.values()) {
    if (!entry.path.startsWith(prefix) || entry.periods.length === 0 || (entry.source && entry.path !== prefix)) continue;
    // A response to a request in flight may be from before the change.
    if (entry.reading) entry.isOvertaken = true;
    else void entry.read();
  }
}

/** Forgets everything, for the next session. */
export function forget() {
  for (const entry of entries.values()) {
    clearTimeout(entry.timer);
    entry.stop();
  }
  entries.clear();
  concerned.clear();
  unread.value = null;
}

/** @param {string} name @param {any} told */
function onTold(name, told) {
  if (name === "again") {
    for (const entry of entries.values()) if (!entry.source) entry.readSoon();
    return;
  }
  for (const endpoint of new Set(["", told.endpoint, told.slug])) concerned.get(endpoint)?.forEach((entry) => entry.tell(name, told));
}

/** Starts the clock, follows the events, and stops all other reading while the page is hidden. */
export function start() {
  whenTold(onTold);
  let before = "";
  connection.subscribe(({ state }) => {
    if (state !== before) entries.forEach((entry) => !entry.reading && entry.schedule());
    before = state;
  });
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return entries.forEach((entry) => entry.schedule());
    now.value = Date.now();
    for (const entry of entries.values()) if (entry.periods.length > 0 && !entry.source && !entry.isFresh()) void entry.read();
  });
}
