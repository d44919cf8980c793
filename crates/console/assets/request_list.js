// The rows of the list of requests, newest first, over one endpoint or all: loaded as one scrolls, changed in place.
import { signal } from "./dom.js";
import { conditions, isForServer, matches } from "./filter.js";
import { PAGE, jobSources, nextJob, sumOf } from "./job_source.js";
import { Selection } from "./selection.js";
import { areUnsure, readSeen } from "./request_check.js";
import { RequestFollow } from "./request_follow.js";
import { newer, ordered, placeOf } from "./request_news.js";

/** @typedef {{job: any, endpoint: Endpoint, isFresh: boolean, at: number, hasLeft?: boolean}} Row `at`: when the job was read or told of, in ms · `hasLeft`: it no longer matches the filter */

/** A load ends when it has found this number of rows. */
const FIRST = 50;
/** More news are read from the beginning when one wants them. */
const NEWS_MAX = 10000;
/** At the top, rows beyond are dropped, and read again when one scrolls down. */
const ROWS_AT_TOP_MAX = 120000;
const ROWS_AT_TOP_KEPT = 100000;
/** Browsers limit the height of an element. */
const ROWS_MAX = 400000;

/** What the list shows, and how it grows. */
export class RequestList {
  /**
   * @param {Endpoint[]} endpoints
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
    this.query = conditions(tokens, status, Date.now());
    if (columns.includes("webhook")) this.query.set("webhooks", "true");
    // Only an endpoint's own list has versions and searches payloads.
    this.isOneList = isOfAll && !isForServer(tokens);
    /** The endpoints by their ids. It stays the same object. */
    this.endpointsById = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]));
    this.sources = jobSources(this.endpointsById, this.query, this.isOneList);
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
    /** Brings the news. */
    this.following = new RequestFollow(this);
    /** There are more news than were read: the list begins anew when one wants them. */
    this.hasTooManyNews = false;
    /** Below this place, jobs may be missing that came meanwhile; empty if none is. */
    this.missingBelow = "";
    /** The rows that are seen. */
    this.seen = { first: 0, end: 0 };
    this.isChecking = false;
    /** Changes with every change of the list. */
    this.version = signal(0);
  }

  /** Loads the first rows and follows the news, until `close`. */
  async begin() {
    this.following.listen();
    await this.more();
    this.following.wait();
  }

  /** Goes on with other endpoints: some may be new, and some deleted. @param {Endpoint[]} endpoints */
  setEndpoints(endpoints) {
    const known = this.endpointsById;
    const isSame = endpoints.length === known.size && endpoints.every(({ id }) => known.has(id));
    const hasNew = endpoints.some(({ id }) => !known.has(id));
    this.endpoints = endpoints;
    known.clear();
    for (const endpoint of endpoints) known.set(endpoint.id, endpoint);
    if (isSame) return;
    const before = this.sources;
    this.sources = jobSources(known, this.query, this.isOneList, before);
    // Not only those of new endpoints: where not all are searched, another one takes the place of one that was deleted.
    const added = this.sources.filter((source) => !before.includes(source));
    for (const source of added) source.join(this.rows.at(-1)?.job.id ?? "");
    for (const row of this.byId.values()) if (!known.has(row.endpoint.id)) row.job = { ...row.job, isGone: true };
    if (hasNew || added.length > 0) this.following.miss(false);
    if (added.length > 0 && this.isComplete) this.readOn();
    this.changed();
  }

  close() {
    this.following.close();
    this.stop.abort();
  }

  /** Whether older jobs have no place in the list. */
  isFull = () => !this.isComplete && this.rows.length >= ROWS_MAX;

  /** Loads older rows. */
  async more() {
    if (this.isLoading || this.isComplete || this.isFull()) return;
    [this.isLoading, this.isHalted] = [true, false];
    const wanted = this.rows.length + FIRST;
    try {
      // A search with few hits goes on by itself until there are some, or nothing is left.
      do await this.examine();
      while (!this.isComplete && !this.isFull() && !this.isHalted && this.rows.length < wanted && !this.stop.signal.aborted);
      this.error = null;
    } catch (error) {
      if (!this.stop.signal.aborted) this.error = /** @type {import("./api.js").ApiError} */ (error);
    }
    this.isLoading = false;
    if (this.following.wantsNews) this.following.miss(false);
    this.changed();
  }

  /** Compares one page of jobs with the search. */
  async examine() {
    for (let count = 0; count < PAGE && !this.isComplete && !this.isFull(); count += 1) {
      const next = await nextJob(this.sources, this.stop.signal, () => this.changed());
      if (next) this.add(next);
      else this.isComplete = this.sources.every(({ cursor }) => cursor === null);
    }
    this.changed();
  }

  /** @param {{job: any, endpoint: Endpoint}} found */
  add({ job, endpoint }) {
    if (!endpoint || this.byId.has(job.id) || !matches(job, this.tokens, this.status, Date.now())) return;
    const row = { job, endpoint, isFresh: false, at: Date.now() };
    this.byId.set(job.id, row);
    const last = this.rows.at(-1);
    // A source that joined while an older job was looked for goes on above that one.
    if (last && newer(job, last.job)) this.rows = ordered([row], this.rows);
    else this.rows.push(row);
  }

  /** Jobs may be missing below this place, if it is not empty. @param {string} end */
  missBelow(end) {
    if (end > this.missingBelow) this.missingBelow = end;
  }

  /** Reads again what is below the place where jobs may be missing, or all when one wants the news. */
  dropMissing() {
    const end = this.missingBelow;
    this.missingBelow = "";
    if (!this.isAtTop) {
      this.hasTooManyNews = true;
      return;
    }
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
    if (this.missingBelow) this.dropMissing();
    if (this.isAtTop && this.news.length > 0) this.showNews();
    else this.changed();
  }

  /** How many endpoints did not answer, so that their jobs are not listed. */
  unanswered = () => sumOf(this.sources, (source) => source.unanswered);

  /** How far the search went: the number of compared jobs, and of all jobs. */
  progress = () => ({ searched: sumOf(this.sources, (source) => Math.min(source.searched, source.of)), of: sumOf(this.sources, (source) => source.of) });

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
    if (!last && this.isLoading) this.following.wantsNews = true;
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
    for (const source of this.sources) source.restart(this.rows.at(-1)?.job.id ?? "");
    this.readOn();
  }

  /** Reads what there is below the rows. */
  readOn() {
    this.isComplete = false;
    void this.more();
  }

  changed() {
    this.version.value += 1;
  }
}
