// The pages of a list of jobs, of one endpoint or of all.
import * as api from "./api.js";
import { newer, placeOf } from "./request_news.js";

/** The jobs of one page. */
export const PAGE = 200;
/** A text is searched in the jobs of this number of endpoints: each has a request of its own. */
export const SEARCHED_MAX = 20;

/** The jobs of one address, from the newest on. */
export class JobSource {
  /**
   * @param {string} path
   * @param {URLSearchParams} query
   * @param {(job: any) => any} endpointOf the endpoint of a job; undefined if it is not among those that are shown
   * @param {string | null} endpointId the endpoint whose jobs these are; null for those of all
   */
  constructor(path, query, endpointOf, endpointId) {
    this.path = path;
    this.query = query;
    this.endpointOf = endpointOf;
    this.endpointId = endpointId;
    /** @type {any[]} */
    this.buffer = [];
    /** @type {string | null} */
    this.cursor = "";
    /** How often it was begun anew. */
    this.starts = 0;
    /** The number of jobs that the server compared with the search, and of all that it has. */
    this.searched = 0;
    this.of = 0;
    /** The endpoints that did not answer when the last page was read. */
    this.unanswered = 0;
    /** The place above which its jobs are yet to be read as news; null if they were read. @type {string | null} */
    this.unreadFrom = null;
  }

  /** @param {number} limit @param {string} cursor @param {boolean} isFiltered whether only jobs in the wanted state are listed */
  address(limit, cursor, isFiltered = true) {
    const query = new URLSearchParams(this.query);
    if (!isFiltered) query.delete("status");
    query.set("limit", String(limit));
    if (cursor) query.set("cursor", cursor);
    return `${this.path}?${query}`;
  }

  /** @param {number} limit @param {string} cursor @param {AbortSignal} stop @param {boolean} isFiltered */
  page = (limit, cursor, stop, isFiltered = true) => api.json("GET", this.address(limit, cursor, isFiltered), { signal: stop });

  /** Goes on from another place. @param {string} cursor */
  restart(cursor) {
    this.buffer = [];
    this.cursor = cursor;
    this.starts += 1;
  }

  /** Joins a list that has rows: what belongs below the last one is read as pages, and the rest as news. @param {string} last its id, or "" */
  join(last) {
    this.restart(last);
    this.unreadFrom = last ? placeOf({ id: last }) : null;
  }

  /** Fills an empty buffer. @param {AbortSignal} stop @param {() => void} onProgress called after each page */
  async fill(stop, onProgress) {
    while (this.buffer.length === 0 && this.cursor !== null) {
      const { starts } = this;
      const { requests, cursor, searched, of, unanswered = 0 } = await this.page(PAGE, this.cursor, stop);
      // The page is of a place that is no longer wanted.
      if (starts !== this.starts) continue;
      this.buffer.push(...requests);
      this.cursor = cursor;
      this.searched += searched;
      this.of = of;
      this.unanswered = unanswered;
      onProgress();
    }
  }
}

/**
 * The sources of a list: those that it has, without those of other endpoints, and new ones.
 * @param {Map<string, Endpoint>} byId the endpoints; with one request for all, their jobs are told apart by it from now on
 * @param {URLSearchParams} query
 * @param {boolean} isOneList whether one request lists the jobs of all endpoints; otherwise each endpoint is asked, and SEARCHED_MAX at most
 * @param {JobSource[]} [known] the sources that it has
 */
export function jobSources(byId, query, isOneList, known = []) {
  if (isOneList) return [known[0] ?? new JobSource("/v1/requests", query, (job) => byId.get(job.endpointId), null)];
  const kept = known.filter(({ endpointId }) => byId.has(endpointId ?? ""));
  const others = [...byId.keys()].filter((id) => !kept.some(({ endpointId }) => endpointId === id));
  const added = others.slice(0, Math.max(0, SEARCHED_MAX - kept.length));
  return [...kept, ...added.map((id) => new JobSource(`/v2/${encodeURIComponent(id)}/requests`, query, () => byId.get(id), id))];
}

/**
 * The newest job of all sources that was not answered yet; null if there is none.
 * @param {JobSource[]} sources
 * @param {AbortSignal} stop
 * @param {() => void} onProgress called after each page
 */
export async function nextJob(sources, stop, onProgress) {
  await Promise.all(sources.map((source) => source.fill(stop, onProgress)));
  const filled = sources.filter(({ buffer }) => buffer.length > 0);
  if (filled.length === 0) return null;
  const best = filled.reduce((a, b) => (newer(b.buffer[0], a.buffer[0]) ? b : a));
  const job = best.buffer.shift();
  return { job, endpoint: best.endpointOf(job) };
}

/** A number of each source, in total. @param {JobSource[]} sources @param {(source: JobSource) => number} of */
export const sumOf = (sources, of) => sources.reduce((total, source) => total + of(source), 0);
