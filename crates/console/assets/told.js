// Which addresses the events report about, and how an event changes a response that was read before.
import { may } from "./session.js";

/** The answer has to be read again: the events do not say all of it. */
export const AGAIN = Symbol("again");

/**
 * @typedef {{topics: string[], path: RegExp, isPart?: boolean, apply: (data: any, told: any, event: string, part: string) => any}} Rule
 *   `path`: its first group is the name of an endpoint, of which the event has to be; the second one is `part` · `isPart`: some changes
 *   have no event, such as that time passes or that a key is used
 */

/** Whether an event is of the endpoint that a path names. @param {any} told @param {string} name */
const isOf = (told, name) => [told.endpoint, told.endpointId, told.id, told.slug].includes(decodeURIComponent(name));

const hasFailed = (/** @type {any} */ { status }) => status === "FAILED" || status === "TIMED_OUT";

/** The counts of workers in `stats`. */
const WORKERS = ["idle", "starting", "ready", "busy", "throttled", "unhealthy"];

/**
 * Whether a told problem is one of workers or machines, to which reasons in `/health` and workers that ended belong. Its id is that of
 * its endpoint, `/` and its code, also if it is deleted.
 */
const isOfWorkers = (/** @type {{id: string}} */ { id }) => /\/(provider|gpu|start|workers|machine)_/.test(id);

const again = () => AGAIN;

/** @type {Rule[]} */
const RULES = [
  {
    topics: ["jobs", "stats", "attention"],
    path: /^\/v2\/([^/?]+)\/health$/,
    apply: (data, told, event) => (event === "jobs" ? withCounts(data, told.counts) : event === "stats" ? withStats(data, told) : isOfWorkers(told) ? AGAIN : data),
  },
  {
    topics: ["jobs"],
    path: /^\/v2\/([^/?]+)\/requests\?limit=(\d+)$/,
    apply: (data, told, _, limit) => (told.more > 0 || movesUp(data.requests, told.changed, limit) ? AGAIN : { ...data, requests: withJobs(data.requests, told.changed, limit) }),
  },
  { topics: ["jobs"], path: /^\/v2\/([^/?]+)\/requests\?limit=1&counts=true$/, apply: (data, told) => ({ ...data, counts: told.states }) },
  { topics: ["bulk"], path: /^\/v2\/([^/?]+)\/bulk$/, apply: (data, told) => withItem(data, told) },
  { topics: ["jobs", "stats", "worker", "endpoint", "attention"], path: /^\/v2\/([^/?]+)\/explain(?:\/[^/]+)?$/, isPart: true, apply: again },
  {
    topics: ["jobs"],
    path: /^\/v2\/([^/?]+)\/jobs\/([^/]+)$/,
    apply: (data, told, _, job) => (told.more > 0 || told.changed.some((/** @type {any} */ { id }) => id === job) ? AGAIN : data),
  },
  { topics: ["jobs"], path: /^\/v1\/endpoints\/([^/]+)\/failures$/, apply: (data, told) => (told.more > 0 || told.changed.some(hasFailed) ? AGAIN : data) },
  { topics: ["endpoint"], path: /^\/v1\/endpoints\/([^/]+)\/versions$/, apply: again },
  // A member that is no longer set is missing in the event.
  { topics: ["endpoint"], path: /^\/v1\/endpoints$/, apply: (data, told) => withItem(data, told, (_old, item) => item) },
  // The slug in the path may be that of before.
  { topics: ["endpoint"], path: /^\/v1\/endpoints\/[^/]+$/, apply: (data, told) => (data.id !== told.id ? data : told.deleted ? AGAIN : told) },
  { topics: ["worker"], path: /^\/v1\/endpoints\/([^/]+)\/workers$/, apply: (data, told) => withItem(data, told) },
  {
    // A worker that ended within 2 s of its start was never told of: only the counts and the problem show that it was there.
    topics: ["worker", "stats", "attention"],
    path: /^\/v1\/endpoints\/([^/]+)\/workers\?ended=true$/,
    apply: (data, told, event) => {
      // One that is listed and goes on differs in what is told of it alone.
      if (event === "worker" && !told.deleted && data.some((/** @type {any} */ { id }) => id === told.id)) return withItem(data, told);
      return event === "worker" || (event === "attention" ? isOfWorkers(told) : WORKERS.some((one) => told[one] !== undefined)) ? AGAIN : data;
    },
  },
  // The use of a key is in no event.
  { topics: ["audit"], path: /^\/v1\/(?:apikeys|sessions)$/, isPart: true, apply: again },
  { topics: ["audit"], path: /^\/v1\/(?:templates|networkvolumes|containerregistryauth|audit\?.*)$/, apply: again },
  // A change while it is read for the first time may be missing in the answer.
  { topics: ["jobs", "stats"], path: /includeHealth=true$/, isPart: true, apply: (data) => data },
  { topics: ["webhook"], path: /^\/v(?:1|2\/([^/?]+))\/webhooks\?/, apply: again },
  // Events name no other endpoint that has the GPUs.
  { topics: ["attention"], path: /^\/v1\/attention$/, apply: (data, told) => (/\/gpu_(busy|kept)$/.test(told.id) ? AGAIN : withItem(data, told)) },
];

/** Whether events report every change of this address, so that it need not be read repeatedly. @param {string} path */
export const isTold = (path) => RULES.some(({ topics, path: of, isPart }) => of.test(path) && !isPart && (topics[0] !== "audit" || may.everything.peek()));

/**
 * The name of the endpoint whose events alone can change an address, "" if other events can, too. Those with a name are as many as
 * endpoints: events of others are not compared with them.
 * @param {string} path
 */
export const endpointOf = (path) => decodeURIComponent(path.match(/^\/v2\/([^/]+)\/(health|requests)/)?.[1] ?? "");

/** Whether an event may be about this address: its answer, which is not there yet, says it. @param {string} path @param {string} event */
export const mayConcern = (path, event) => RULES.some((rule) => rule.topics.includes(event) && rule.path.test(path));

/**
 * What an event makes of an answer: the same, a changed one, or `AGAIN`.
 * @param {string} path
 * @param {any} data
 * @param {string} event
 * @param {any} told
 */
export function applied(path, data, event, told) {
  for (const rule of RULES) {
    const found = rule.topics.includes(event) && path.match(rule.path);
    if (found) return found[1] && !isOf(told, found[1]) ? data : rule.apply(data, told, event, found[2]);
  }
  return data;
}

/** @param {Health} health @param {any} counts */
const withCounts = (health, counts) => ({
  ...health,
  jobs: { ...health.jobs, inQueue: counts.queued, inProgress: counts.running, completed: counts.completed, failed: counts.failed, retried: counts.retried },
});

/** The members of `stats`, and where `/health` has them. */
const STATS = /** @type {[string, "jobs" | "workers", string][]} */ ([
  ["queued", "jobs", "inQueue"],
  ["running", "jobs", "inProgress"],
  ["completed", "jobs", "completed"],
  ["failed", "jobs", "failed"],
  ["retried", "jobs", "retried"],
  ["idle", "workers", "idle"],
  ["starting", "workers", "initializing"],
  ["ready", "workers", "ready"],
  ["busy", "workers", "running"],
  ["throttled", "workers", "throttled"],
  ["unhealthy", "workers", "unhealthy"],
]);

/** @param {Health} health @param {any} stats */
function withStats(health, stats) {
  // The reasons are not among the numbers.
  const hasReason = (/** @type {"throttled" | "unhealthy"} */ name) => stats[name] !== undefined && stats[name] !== health.workers[name];
  if (hasReason("throttled") || hasReason("unhealthy")) return AGAIN;
  const next = /** @type {any} */ ({ ...health, jobs: { ...health.jobs }, workers: { ...health.workers } });
  let isSame = true;
  for (const [name, group, member] of STATS) {
    if (stats[name] === undefined || next[group][member] === stats[name]) continue;
    next[group][member] = stats[name];
    isSame = false;
  }
  if (stats.lb !== undefined) {
    next.lb = stats.lb;
    isSame = false;
  }
  return isSame ? health : next;
}

/**
 * A job as lists show it, after an event. Its output and error are known as long as its state is the same.
 * @param {any} before the job as it was listed, or undefined
 * @param {any} told
 */
export function changedJob(before, { at: _, worker, ...told }) {
  const job = worker === undefined ? told : { ...told, workerId: worker };
  if (before?.status === job.status) return { ...before, ...job };
  // What a job came with stays in every state.
  const { key, owner, inputBytes } = before ?? {};
  return before ? { key, owner, inputBytes, ...job } : job;
}

/** Whether older jobs, which no event names, come into a full list in place of deleted ones. @param {any[]} jobs @param {any[]} changed @param {string} limit */
const movesUp = (jobs, changed, limit) => jobs.length >= +limit && changed.some((told) => told.deleted && jobs.some(({ id }) => id === told.id));

/** The newest jobs with those that changed. @param {any[]} jobs @param {any[]} changed @param {string} limit */
function withJobs(jobs, changed, limit) {
  const byId = new Map(jobs.map((job) => [job.id, job]));
  for (const told of changed) {
    if (told.deleted) byId.delete(told.id);
    else byId.set(told.id, changedJob(byId.get(told.id), told));
  }
  return [...byId.values()].sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : a.id < b.id ? 1 : -1)).slice(0, +limit);
}

/**
 * A list with an item that was added, changed or deleted.
 * @param {any[]} list @param {any} item
 * @param {(old: any, item: any) => any} merged the item as the list has it then
 */
function withItem(list, item, merged = (old) => ({ ...old, ...item })) {
  if (item.deleted) return list.filter(({ id }) => id !== item.id);
  return list.some(({ id }) => id === item.id) ? list.map((old) => (old.id === item.id ? merged(old, item) : old)) : [...list, item];
}
