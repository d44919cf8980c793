// The rows of the list of requests that are seen: read again when they may have changed without an event.
import { ENDED } from "./icons.js";
import { PAGE } from "./job_source.js";
import { PAGE_MAX } from "./request_news.js";

/** @typedef {import("./request_list.js").RequestList} RequestList */

/** The rows that are seen. @param {RequestList} list */
const seenOf = ({ rows, seen }) => rows.slice(seen.first, seen.end);

/** Whether a row that is seen may have changed without an event. @param {RequestList} list */
export const areUnsure = (list) => seenOf(list).some(({ job, at }) => at < list.following.unsureAt && !ENDED.includes(job.status));

/** Reads the rows again that are seen. @param {RequestList} list */
export async function readSeen(list) {
  const { first, end } = list.seen;
  const before = first > 0 ? list.rows[first - 1].job.id : "";
  try {
    for (const source of list.sources) {
      const { requests } = await source.page(Math.min(PAGE_MAX, end - first + PAGE), before, list.stop.signal, false);
      for (const job of requests) list.update(job);
    }
    // What the pages did not reach is not asked for again and again.
    for (const row of seenOf(list)) row.at = Math.max(row.at, list.following.unsureAt);
  } catch (error) {
    if (!list.stop.signal.aborted) list.error = /** @type {import("./api.js").ApiError} */ (error);
  }
}
