// What keeps the list of requests current: the events, and pages of the newest jobs where events do not say enough.
import { isForServer } from "./filter.js";
import { connection, whenTold } from "./live.js";
import { placeBelow, readNews } from "./request_news.js";
import { changedJob } from "./told.js";

/** The shortest time between two reads of news that the events do not say. */
const NEWS_MS = 2000;
/** Without events, news is read this often. */
const WITHOUT_EVENTS_MS = 5000;
/**
 * The shortest time between two changes of the rows while more jobs change than events name: no one reads faster. Events come every
 * 250 ms, and the second one is not always after 500.
 */
const CROWDED_MS = 450;
/** Without a further event, crowded rows are changed this much later. */
const WITHOUT_EVENT_MS = 150;

/** Brings the news to a list until `close`. */
export class RequestFollow {
  /** @param {import("./request_list.js").RequestList} list */
  constructor(list) {
    this.list = list;
    this.timer = 0;
    this.newsAt = 0;
    /** When the last read of news began that did not fail, in ms. */
    this.readAt = 0;
    /** News are to be read. */
    this.wantsNews = false;
    /** Where jobs may be missing: from this place on, up to the newest. Null if none is. @type {string | null} */
    this.missingFrom = null;
    /** When something changed of which the events did not say what, in ms. */
    this.unsureAt = 0;
    /** The number of changes since the last read of news that events did not name. */
    this.unnamed = 0;
    /** The timer and the frame that will change the rows; 0 if none will. */
    this.settling = 0;
    this.frame = 0;
    /** When they were changed last, in ms by the clock that is never set. */
    this.settledAt = -CROWDED_MS;
    this.endTold = () => {};
  }

  listen() {
    this.endTold = whenTold((name, told) => this.onTold(name, told));
  }

  close() {
    this.endTold();
    this.endSettling();
    clearTimeout(this.timer);
  }

  /** While there are no events, reads what is new. */
  wait() {
    const { list } = this;
    clearTimeout(this.timer);
    if (list.stop.signal.aborted) return;
    if (this.wantsNews) {
      this.readSoon();
      return;
    }
    this.timer = window.setTimeout(() => {
      if (!document.hidden && connection.peek().state !== "live") this.miss();
      else this.wait();
    }, WITHOUT_EVENTS_MS);
  }

  /** @param {string} name @param {any} told */
  onTold(name, told) {
    const { list } = this;
    if (name === "again") {
      this.miss();
      return;
    }
    const endpoint = name === "jobs" && list.endpoints.find(({ id }) => told.endpoint === id || told.slug === id);
    if (!endpoint) return;
    this.unnamed += told.more;
    // Inputs, outputs, errors, versions and sizes are not in events.
    if (told.more > 0 || (list.isForServer && told.changed.some((/** @type {any} */ job) => !job.deleted))) this.miss(told.more > 0);
    list.merge(told.changed.filter((/** @type {any} */ job) => !job.deleted).map((/** @type {any} */ job) => changedJob(list.byId.get(job.id)?.job, job)), () => endpoint, false);
    for (const { id, deleted } of told.changed) {
      const row = deleted && list.byId.get(id);
      if (row) row.job = { ...row.job, isGone: true };
    }
    this.settleSoon(told.more > 0);
  }

  /**
   * Changes the rows with the next frame. While jobs are crowded, it is the first event after CROWDED_MS that changes them, so that
   * the counts and the rows are drawn in one frame.
   * @param {boolean} isCrowded whether more jobs change than events name
   */
  settleSoon(isCrowded) {
    if (!isCrowded) {
      this.frame ||= requestAnimationFrame(() => this.settle());
      return;
    }
    const wait = this.settledAt + CROWDED_MS - performance.now();
    // A hidden page has no frames, and needs none.
    if (document.hidden) this.settleSoon(false);
    else if (wait > 0) this.settling ||= window.setTimeout(() => this.settle(), wait + WITHOUT_EVENT_MS);
    else this.settle();
  }

  /** Changes the rows. */
  settle() {
    this.endSettling();
    this.settledAt = performance.now();
    if (!this.list.stop.signal.aborted) this.list.settle();
  }

  /** Takes back what will change the rows. */
  endSettling() {
    clearTimeout(this.settling);
    cancelAnimationFrame(this.frame);
    [this.settling, this.frame] = [0, 0];
  }

  /** Jobs may be missing above the known ones: reads them soon. @param {boolean} [isUnsure] whether known jobs may have changed, too */
  miss(isUnsure = true) {
    const { list } = this;
    if (isUnsure) this.unsureAt = Date.now();
    this.missingFrom ??= placeBelow([...list.news, ...list.rows.slice(0, 1)]) ?? (list.isComplete ? "" : null);
    this.readSoon();
  }

  /** Reads the news, but not more often than every 2 s. */
  readSoon() {
    this.wantsNews = true;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(async () => {
      await this.readNews();
      this.wait();
    }, Math.max(0, this.newsAt + NEWS_MS - Date.now()));
  }

  async readNews() {
    const { list } = this;
    this.newsAt = Date.now();
    this.wantsNews = false;
    const from = this.missingFrom;
    // An event that comes meanwhile may be about jobs that these pages do not have.
    this.missingFrom = null;
    const changes = this.unnamed;
    this.unnamed = 0;
    // A job that no event named can have begun to match the filter, and be older than these pages.
    const isSure = this.unsureAt <= this.readAt || isForServer(list.tokens) || (list.tokens.length === 0 && !list.status);
    const { sources } = list;
    try {
      const reads = await Promise.all(list.hasTooManyNews ? [] : sources.map((source) => readNews(source, source.unreadFrom ?? from, isSure, changes, list.stop.signal)));
      reads.forEach(({ jobs }, at) => {
        sources[at].unreadFrom = null;
        list.merge(jobs, sources[at].endpointOf, true);
      });
      list.error = null;
      this.readAt = this.newsAt;
      list.missBelow(reads.map(({ end }) => end).reduce((a, b) => (a > b ? a : b), ""));
    } catch (error) {
      if (list.stop.signal.aborted) return;
      list.error = /** @type {import("./api.js").ApiError} */ (error);
      [this.missingFrom, this.wantsNews] = [from ?? this.missingFrom, true];
    }
    this.settleSoon(changes > 0);
    await list.check();
  }
}
