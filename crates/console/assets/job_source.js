// The pages of a list of jobs, of one endpoint or of all.
import * as api from "./api.js";

/** The jobs of one page. */
export const PAGE = 200;

/** The jobs of one address, from the newest on. */
export class JobSource {
  /** @param {string} path @param {URLSearchParams} query @param {(job: any) => any} endpointOf the endpoint of a job; undefined if it is not among those that are shown */
  constructor(path, query, endpointOf) {
    this.path = path;
    this.query = query;
    this.endpointOf = endpointOf;
    /** @type {any[]} */
    this.buffer = [];
    /** @type {string | null} */
    this.cursor = "";
    /** The jobs that the server compared with the search, of so many. */
    this.searched = 0;
    this.of = 0;
    /** The endpoints that did not answer when the last page was read. */
    this.unanswered = 0;
  }

  /** @param {number} limit @param {string} cursor @param {AbortSignal} stop @param {boolean} isFiltered whether only jobs in the wanted state are listed */
  async page(limit, cursor, stop, isFiltered = true) {
    const query = new URLSearchParams(this.query);
    if (!isFiltered) query.delete("status");
    query.set("limit", String(limit));
    if (cursor) query.set("cursor", cursor);
    return api.json("GET", `${this.path}?${query}`, { signal: stop });
  }

  /** Fills an empty buffer. @param {AbortSignal} stop @param {() => void} onProgress called after each page */
  async fill(stop, onProgress) {
    while (this.buffer.length === 0 && this.cursor !== null) {
      const { requests, cursor, searched, of, unanswered = 0 } = await this.page(PAGE, this.cursor, stop);
      this.buffer.push(...requests);
      this.cursor = cursor;
      this.searched += searched;
      this.of = of;
      this.unanswered = unanswered;
      onProgress();
    }
  }
}
