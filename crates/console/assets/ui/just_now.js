// What happened last: changes by people, and jobs that did not complete.
import { html } from "../dom.js";
import { what } from "../audit_words.js";
import { NEWEST } from "../fleet.js";
import { Icon } from "../icons.js";
import { endpointPath, href } from "../router.js";
import { shortId } from "../format.js";
import { may } from "../session.js";
import { useRead, useReads } from "../store.js";
import { Card } from "./card.js";
import { JobState } from "./state.js";
import { Age } from "./time.js";

/** @typedef {{id: string, at: string, path: string, state: any, name: any, text: string}} News */

const NEWS_MAX = 8;
/** Sign-ins stand between the changes of the audit log. */
const CHANGES_PATH = "/v1/audit?limit=40";
const CHANGES_MS = 10000;
/** Of many endpoints, not all jobs are read. */
const FAILURES_PATH = `/v1/requests?status=FAILED,TIMED_OUT&limit=${NEWS_MAX}`;

/** The page of each kind of resource. @type {Record<string, {name: string, path: string}>} */
const KINDS = {
  apikeys: { name: "an API key", path: "/api-keys" },
  templates: { name: "a template", path: "/templates" },
  networkvolumes: { name: "a volume", path: "/volumes" },
  containerregistryauth: { name: "a registry", path: "/registries" },
  sessions: { name: "a session", path: "/api-keys" },
};

/** @param {{rows: import("../fleet.js").Row[]}} props */
export default function JustNow({ rows }) {
  const shown = [...useChanges(rows), ...useFailures(rows)].sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, NEWS_MAX);
  if (shown.length === 0) return null;
  const actions = may.everything.value && html`<a class="button quiet small" href=${href("/audit")}>Audit log</a>`;
  return html`<${Card} title="Just now" note="changes and failures" flush actions=${actions}><ul class="news">
    ${shown.map(({ id, at, path, state, name, text }) => html`<li key=${id}><a href=${href(path)}>
      ${state}<span class="news-name">${name}</span><span class="news-text dim">${text}</span><span class="dim"><${Age} at=${at} /></span></a></li>`)}
  </ul><//>`;
}

/** The newest changes that were done. @param {import("../fleet.js").Row[]} rows @returns {News[]} */
function useChanges(rows) {
  const entries = /** @type {any[]} */ (useRead(may.everything.value ? CHANGES_PATH : null, CHANGES_MS).data ?? []);
  return entries.filter(({ event, outcome }) => event === "change" && outcome === "done").slice(0, NEWS_MAX).map((entry) => {
    const [kind, id, ...part] = (entry.resource ?? "").split("/");
    const endpoint = rows.find((row) => row.endpoint.id === id)?.endpoint;
    const of = endpoint ? { name: [endpoint.name, part.join(" ")].filter(Boolean).join(", "), path: endpointPath(endpoint) } : (KINDS[kind] ?? { name: entry.resource ?? entry.path, path: `/audit?resource=${encodeURIComponent(entry.resource ?? "")}` });
    return {
      id: `change ${entry.id}`,
      at: entry.at,
      path: of.path,
      state: html`<span class="state"><${Icon} name="audit" />${what(entry)}</span>`,
      name: of.name,
      text: [`by ${entry.key?.name ?? "an unknown key"}`, ...(entry.fields ?? [])].join(", "),
    };
  });
}

/** The newest jobs that did not complete. @param {import("../fleet.js").Row[]} rows @returns {News[]} */
function useFailures(rows) {
  const listed = useRead(may.requestsAny.value && rows.length > NEWEST ? FAILURES_PATH : null, CHANGES_MS).data?.requests;
  const all = rows.flatMap(({ endpoint, times }) => (listed?.filter((/** @type {any} */ job) => job.endpointId === endpoint.id) ?? times?.jobs ?? []).map((/** @type {any} */ job) => ({ endpoint, job })));
  const failures = all.filter(({ job }) => ["FAILED", "TIMED_OUT"].includes(job.status));
  failures.sort((a, b) => (a.job.completedAt < b.job.completedAt ? 1 : -1));
  const shown = failures.slice(0, NEWS_MAX);
  // Events tell that a job failed, and not why.
  const statusOf = (/** @type {{endpoint: Endpoint, job: any}} */ { endpoint, job }) => `/v2/${encodeURIComponent(endpoint.id)}/status/${job.id}`;
  const errors = useReads(shown.filter(({ job }) => job.error === undefined).map(statusOf), Infinity);
  return shown.map(({ endpoint, job }) => ({
    id: job.id,
    at: job.completedAt,
    path: `${endpointPath(endpoint)}/requests/${job.id}`,
    state: html`<${JobState} status=${job.status} />`,
    name: html`${endpoint.name} <span class="mono dim">${shortId(job.id)}</span>`,
    text: firstLine(job.error ?? errors.get(statusOf({ endpoint, job }))?.data?.error),
  }));
}

/** What went wrong, in a line: the SDK's message or the end of the text. @param {string | undefined} error */
function firstLine(error) {
  if (!error) return "";
  try {
    const { error_message: message } = JSON.parse(error);
    if (message) return String(message).split("\n")[0];
  } catch {
    // A text of the server or of another worker.
  }
  return error.trim().split("\n").at(-1) ?? "";
}
