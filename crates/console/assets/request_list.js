// The rows of the list of requests, newest first, over one endpoint or all: loaded as one scrolls, changed in place.
import { signal } from "./dom.js";
import { conditions, isForServer, matches } from "./filter.js";
import { PAGE, jobSources, nextJob, sumOf } from "./job_source.js";
import { connection, whenTold } from "./live.js";
import { Selection } from "./selection.js";
import { areUnsure, readSeen } from "./request_check.js";
import { newer, ordered, placeBelow, placeOf, readNews } from "./request_news.js";
import { changedJob } from "./told.js";

/** @typedef {{job: any, endpoint: any, isFresh: boolean, at: number, hasLeft?: boolean}} Row `at`: when the job was read or told of, in ms · `hasLeft`: it no longer matches the filter */

/** A load ends when it has found this number of rows. */
const FIRST = 50;
/** More news are read from the beginning when one wants them. */
const NEWS_MAX = 10000;
/** At the top, rows beyond are dropped, and read again when one scrolls down. */
const ROWS_AT_TOP_MAX = 120000;
const ROWS_AT_TOP_KEPT = 100000;
/** The shortest time between two reads of news that the events do not say. */
const NEWS_MS = 2000;
/** Without events, news is read this often. */
const WITHOUT_EVENTS_MS = 5000;
export const ROWS_MAX = 400000;

/** What the list shows, and how it grows. */
export class RequestList {
  /**
   * @param {any[]} endpoints
   * @param {import("./filter.js").Token[]} tokens
   * @param {string | null} status
   * @param {boolean} isOfAll whether these are all endpoints
   * @param {string[]} columns the further columns that are shown
   */
  constructor(endpoints, tokens, status, isOfAll, columns) {
    this.endpoints = endpoints;
    this.tokens = tokens;
    this.status = status;
    /** Whether events say too little of a job to decide about it, or to show it. */
    this.isForServer = isForServer(tokens) || columns.length > 0;
    const query = conditions(tokens, status, Date.now());
    if (columns.includes("webhook")) query.set("webhooks", "true");
    // Only an endpoint's own list has versions and searches payloads.
    this.sources = jobSources(endpoints, query, isOfAll && !isForServer(tokens));
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Map<string, Row>} */
    this.byId = new Map();
    /** Rows that are newer than the first, and wait until one wants them. @type {Row[]} */
    this.news = [];
    this.isLoading = false;
    /** The search is to end where it is. */
    this.isHalted = false;
    this.isComplete = false;
    /** @type {import("./api.js").ApiError | null} */
    this.error = null;
    this.isAtTop = true;
    /** The rows that are chosen. */
    this.selection = new Selection();
    this.stop = new AbortController();
    this.timer = 0;
    this.newsAt = 0;
    /** When the last read of news began that did not fail, in ms. */
    this.readAt = 0;
    /** News are to be read. */
    this.wantsNews = false;
    /** There are more news than were read: the list begins anew when one wants them. */
    this.hasTooManyNews = false;
    /** Where jobs may be missing: from this place on, up to the newest. Null if none is. @type {string | null} */
    this.missingFrom = null;
    /** When something changed of which the events did not say what, in ms. */
    this.unsureAt = 0;
    /** The rows that are seen. */
    this.seen = { first: 0, end: 0 };
    this.isChecking = false;
    this.frame = 0;
    this.endTold = () => {};
    /** Changes with every change of the list. */
    this.version = signal(0);
  }

  /** Loads the first rows and follows the news, until `close`. */
  async begin() {
    this.endTold = whenTold((name, told) => this.onTold(name, told));
    await this.more();
    this.follow();
  }

  close() {
    this.endTold();
    this.stop.abort();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
  }

  /** Loads older rows. */
  async more() {
    if (this.isLoading || this.isComplete || this.rows.length >= ROWS_MAX) return;
    [this.isLoading, this.isHalted] = [true, false];
    const wanted = this.rows.length + FIRST;
    try {
      // A search with few hits goes on by itself until there are some, or nothing is left.
      do await this.examine();
      while (!this.isComplete && !this.isHalted && this.rows.length < wanted && !this.stop.signal.aborted);
      this.error = null;
    } catch (error) {
      if (!this.stop.signal.aborted) this.error = /** @type {import("./api.js").ApiError} */ (error);
    }
    this.isLoading = false;
    if (this.wantsNews) this.miss(false);
    this.changed();
  }

  /** Compares one page of jobs with the search. */
  async examine() {
    for (let count = 0; count < PAGE && !this.isComplete; count += 1) {
      const next = await nextJob(this.sources, this.stop.signal, () => this.changed());
      if (next) this.add(next);
      else this.isComplete = this.sources.every(({ cursor }) => cursor === null);
    }
    this.changed();
  }

  /** @param {{job: any, endpoint: any}} found */
  add({ job, endpoint }) {
    if (!endpoint || this.byId.has(job.id) || !matches(job, this.tokens, this.status, Date.now())) return;
    const row = { job, endpoint, isFresh: false, at: Date.now() };
    this.byId.set(job.id, row);
    this.rows.push(row);
  }

  /** While there are no events, reads what is new. */
  follow() {
    clearTimeout(this.timer);
    if (this.stop.signal.aborted) return;
    if (this.wantsNews) {
      this.readSoon();
      return;
    }
    this.timer = window.setTimeout(() => {
      if (!document.hidden && connection.peek().state !== "live") this.miss();
      else this.follow();
    }, WITHOUT_EVENTS_MS);
  }

  /** @param {string} name @param {any} told */
  onTold(name, told) {
    if (name === "again") {
      this.miss();
      return;
    }
    const endpoint = name === "jobs" && this.endpoints.find(({ id }) => told.endpoint === id || told.slug === id);
    if (!endpoint) return;
    // Inputs, outputs, errors, versions and sizes are not in events.
    if (told.more > 0 || (this.isForServer && told.changed.some((/** @type {any} */ job) => !job.deleted))) this.miss(told.more > 0);
    this.merge(told.changed.filter((/** @type {any} */ job) => !job.deleted).map((/** @type {any} */ job) => changedJob(this.byId.get(job.id)?.job, job)), () => endpoint, false);
    for (const { id, deleted } of told.changed) {
      const row = deleted && this.byId.get(id);
      if (row) row.job = { ...row.job, isGone: true };
    }
    // One change of the page for all events of a frame.
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.settle();
    });
  }

  /** Jobs may be missing above the known ones: reads them soon. @param {boolean} [isUnsure] whether known jobs may have changed, too */
  miss(isUnsure = true) {
    if (isUnsure) this.unsureAt = Date.now();
    this.missingFrom ??= placeBelow([...this.news, ...this.rows.slice(0, 1)]) ?? (this.isComplete ? "" : null);
    this.readSoon();
  }

  /** Reads the news, but not more often than every 2 s. */
  readSoon() {
    this.wantsNews = true;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(async () => {
      await this.readNews();
      this.follow();
    }, Math.max(0, this.newsAt + NEWS_MS - Date.now()));
  }

  async readNews() {
    this.newsAt = Date.now();
    this.wantsNews = false;
    const from = this.missingFrom;
    // An event that comes meanwhile may be about jobs that these pages do not have.
    this.missingFrom = null;
    // A job that no event named can have begun to match the filter, and be older than these pages.
    const isSure = this.unsureAt <= this.readAt || isForServer(this.tokens) || (this.tokens.length === 0 && !this.status);
    try {
      const reads = await Promise.all(this.hasTooManyNews ? [] : this.sources.map((source) => readNews(source, from, isSure, this.stop.signal)));
      reads.forEach(({ jobs }, at) => this.merge(jobs, this.sources[at].endpointOf, true));
      this.error = null;
      this.readAt = this.newsAt;
      this.dropBelow(reads.map(({ end }) => end).reduce((a, b) => (a > b ? a : b), ""));
    } catch (error) {
      if (this.stop.signal.aborted) return;
      this.error = /** @type {import("./api.js").ApiError} */ (error);
      [this.missingFrom, this.wantsNews] = [from ?? this.missingFrom, true];
    }
    this.settle();
    await this.check();
  }

  /** Jobs may be missing below this place, if it is not empty: what is there is read again. @param {string} end */
  dropBelow(end) {
    if (end && !this.isAtTop) this.hasTooManyNews = true;
    if (!end || !this.isAtTop) return;
    if (this.news.length > 0) this.showNews();
    const kept = this.rows.findIndex(({ job }) => placeOf(job) < end);
    if (kept >= 0) this.readFrom(kept);
  }

  /** Notes which rows are seen. @param {number} first @param {number} end */
  onSeen(first, end) {
    this.seen = { first, end };
    void this.check();
  }

  /** Reads the rows again that are seen, and that may have changed without an event. */
  async check() {
    if (this.isChecking || this.stop.signal.aborted || !areUnsure(this)) return;
    this.isChecking = true;
    await readSeen(this);
    this.isChecking = false;
    this.changed();
  }

  /** Shows a job anew; answers whether a row shows it. @param {any} job */
  update(job) {
    const row = this.byId.get(job.id);
    if (!row) return false;
    row.job = job;
    row.at = Date.now();
    row.hasLeft = !matches(job, this.tokens, this.status, Date.now());
    return true;
  }

  /** Shows the news if one is at the top. */
  settle() {
    if (this.isAtTop && this.news.length > 0) this.showNews();
    else this.changed();
  }

  /** How many endpoints did not answer, so that their jobs are not listed. */
  unanswered = () => sumOf(this.sources, (source) => source.unanswered);

  /** How far the search went: the number of compared jobs, and of all jobs. */
  progress = () => ({ searched: sumOf(this.sources, (source) => source.searched), of: sumOf(this.sources, (source) => source.of) });

  /** @param {any[]} jobs the newest ones @param {(job: any) => any} endpointOf @param {boolean} isFound whether the server decided about them */
  merge(jobs, endpointOf, isFound) {
    for (const job of jobs) {
      if (!this.update(job) && endpointOf(job) && (isFound || !isForServer(this.tokens)) && matches(job, this.tokens, this.status, Date.now()) && this.isWithin(job)) {
        if (this.news.length >= NEWS_MAX) {
          this.hasTooManyNews = true;
          return;
        }
        const fresh = { job, endpoint: endpointOf(job), isFresh: true, at: Date.now() };
        this.byId.set(job.id, fresh);
        this.news.push(fresh);
      }
    }
  }

  /** Whether a job belongs above the rows or between them, and not to those that older pages bring. @param {any} job */
  isWithin(job) {
    if (this.isComplete) return true;
    const last = this.rows.at(-1)?.job;
    // What the first pages have is read when they are there.
    if (!last && this.isLoading) this.wantsNews = true;
    return last ? newer(job, last) : !this.isLoading;
  }

  /** Puts the news among the rows, most of them above. */
  showNews() {
    this.rows = ordered(this.news, this.rows);
    this.news = [];
    if (this.hasTooManyNews) this.readFrom(0);
    else if (this.rows.length > ROWS_AT_TOP_MAX) this.readFrom(ROWS_AT_TOP_KEPT);
    this.changed();
  }

  /** Drops the rows from this number on, and reads on from there. @param {number} kept */
  readFrom(kept) {
    for (const { job } of this.rows.slice(kept)) this.byId.delete(job.id);
    this.rows = this.rows.slice(0, kept);
    this.hasTooManyNews = false;
    this.isComplete = false;
    for (const source of this.sources) source.restart(this.rows.at(-1)?.job.id ?? "");
    void this.more();
  }

  changed() {
    this.version.value += 1;
  }
}
