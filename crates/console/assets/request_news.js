// News of the list of requests: pages from the newest job on, down to what the list has, and rows put in order.

/** @typedef {import("./job_source.js").JobSource} JobSource */
/** @typedef {import("./request_list.js").Row} Row */

/** The largest page that the server gives. */
export const PAGE_MAX = 1000;
/** The jobs of each page that is read to reach what the list has. Of more jobs, the older ones are read when one scrolls. */
const PAGES = [100, PAGE_MAX, PAGE_MAX, PAGE_MAX];
/** Most jobs change three times. After more changes, the pages would not reach what the list has. */
const CHANGES_MAX = 3 * PAGES.reduce((sum, limit) => sum + limit, 0);
/** Events of endpoints, and of jobs that were submitted concurrently, do not come in the order of the jobs' times. */
const DISORDER_MS = 2000;
const UUID_LENGTH = 36;
/** Of more news together than this, none glows: where all rows are new, none stands out. */
const GLOWING_MAX = 20;

/** Where a job is in a list: the greater the text, the newer the job. Ids of `/runsync` have a prefix. @param {{id: string}} job */
export const placeOf = ({ id }) => id.slice(-UUID_LENGTH);

/** Whether a job is above another in a list. @param {{id: string}} job @param {{id: string}} other */
export const newer = (job, other) => placeOf(job) > placeOf(other);

/** A place below all jobs that were submitted about as late as the newest of these rows; null without rows. @param {Row[]} rows */
export function placeBelow(rows) {
  if (rows.length === 0) return null;
  const newest = rows.reduce((ms, { job }) => Math.max(ms, Date.parse(job.createdAt)), 0);
  const hex = Math.max(0, newest - DISORDER_MS).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/**
 * The newest jobs of a source.
 * @param {JobSource} source
 * @param {string | null} from the place down to which jobs may be missing; null reads the newest page only
 * @param {boolean} isSure whether no job below `from` can be missing
 * @param {number} changes the number of changes since the last read that events did not name
 * @param {AbortSignal} stop
 * @returns {Promise<{jobs: any[], end: string}>} `end`: the place below which jobs may still be missing; empty if none is
 */
export async function readNews(source, from, isSure, changes, stop) {
  /** @type {any[]} */
  const jobs = [];
  let cursor = "";
  for (const limit of changes > CHANGES_MAX ? PAGES.slice(0, 1) : PAGES) {
    const { requests, cursor: next, searched } = await source.page(limit, cursor, stop);
    jobs.push(...requests);
    // What is news for another source was compared before, or came since.
    if (source.unreadFrom !== null) source.searched += searched;
    if (next === null || from === null) return { jobs, end: "" };
    cursor = next;
    if (placeOf({ id: cursor }) < from) return { jobs, end: isSure ? "" : placeOf({ id: cursor }) };
  }
  return { jobs, end: placeOf({ id: cursor }) };
}

/** The rows with those that came, newest first. @param {Row[]} news @param {Row[]} rows newest first */
export function ordered(news, rows) {
  if (news.length > GLOWING_MAX) for (const row of news) row.isFresh = false;
  const sorted = [...news].sort((a, b) => (newer(a.job, b.job) ? -1 : 1));
  const oldest = sorted.at(-1);
  const found = oldest ? rows.findIndex(({ job }) => newer(oldest.job, job)) : 0;
  const end = found < 0 ? rows.length : found;
  if (end === 0) return sorted.concat(rows);
  return sorted.concat(rows.slice(0, end)).sort((a, b) => (newer(a.job, b.job) ? -1 : 1)).concat(rows.slice(end));
}
