// The audit log: who changed what, from where, and what came of it. Newest first.
import { html, useComputed, useMemo, useRef, useState } from "../dom.js";
import * as api from "../api.js";
import { what } from "../audit_words.js";
import { href, place, setQuery } from "../router.js";
import { count } from "../format.js";
import { Icon } from "../icons.js";
import { may } from "../session.js";
import { now, refresh, useRead } from "../store.js";
import { Button } from "../ui/button.js";
import { Empty, Failed, Loading } from "../ui/card.js";
import { Age } from "../ui/time.js";
import { attempt, toast } from "../ui/toast.js";
import { useTyped } from "../ui/typed.js";

const READ_MS = 10000;
const PAGE = 100;
/** Most entries that are listed until older ones are asked for. */
const LISTED_MAX = 200;
/** How often the list loses what has become older than the range, in ms. */
const RANGE_MS = 10000;
/** Most entries in one response of the server. */
const PAGE_MAX = 1000;
/** A download ends here. */
const DOWNLOAD_MAX = 100000;
const RANGES = /** @type {[string, string | null, number][]} */ ([["All", null, 0], ["1 hour", "1h", 3600000], ["24 hours", "24h", 86400000], ["7 days", "7d", 604800000], ["30 days", "30d", 2592000000]]);
/** The kinds of resources that the server has, for the list of what one can search. */
const KINDS = ["endpoints", "apikeys", "templates", "networkvolumes", "containerregistryauth", "sessions"];

export default function Audit() {
  const head = html`<div class="head"><h1>Audit log</h1><p class="dim">Who changed what. It has names of fields, never their values.</p></div>`;
  if (!may.everything.value) return html`${head}<${Empty}><p>Only a key that manages all endpoints may read the audit log.</p><//>`;
  return html`${head}<${Log} />`;
}

/** The range of the page's address in ms, or 0 for all. */
const rangeMs = () => RANGES.find(([, name]) => name === place.value.query.get("range"))?.[2] ?? 0;

/** The address of the entries that the page's address asks for, without a limit. */
function useAsked() {
  const { query } = place.value;
  const [key, resource, range] = ["key", "resource", "range"].map((name) => query.get(name));
  return useMemo(() => {
    const asked = new URLSearchParams();
    if (key) asked.set("key", key);
    if (resource) asked.set("resource", resource);
    const ms = rangeMs();
    if (ms) asked.set("since", new Date(Date.now() - ms).toISOString());
    return asked;
  }, [key, resource, range]);
}

/** @param {URLSearchParams} asked @param {number} limit @param {number} [cursor] */
const pathOf = (asked, limit, cursor) => `/v1/audit?${new URLSearchParams({ limit: String(limit), ...(cursor !== undefined && { cursor: String(cursor) }), ...Object.fromEntries(asked) })}`;

function Log() {
  const asked = useAsked();
  const path = pathOf(asked, PAGE);
  return html`<section class="card" aria-label="Entries"><${Filters} asked=${asked} /><${Entries} key=${path} asked=${asked} path=${path} /></section>`;
}

/** @param {{asked: URLSearchParams}} props */
function Filters({ asked }) {
  const { query } = place.value;
  const keys = useRead("/v1/apikeys", READ_MS).data ?? [];
  const [key, resource, range] = [query.get("key") ?? "", query.get("resource") ?? "", query.get("range")];
  const { text, setText } = useTyped(resource, (typed) => setQuery({ resource: typed }));
  const known = [{ id: "admin", name: "the operator's key" }, ...keys.filter((/** @type {any} */ { id }) => id !== "admin")];
  // A key that was deleted is still in the log.
  if (key && known.every(({ id }) => id !== key)) known.push({ id: key, name: key });
  return html`<div class="filters audit-filters">
    <select aria-label="Key" value=${key} onChange=${(/** @type {any} */ event) => setQuery({ key: event.target.value })}><option value="">All keys</option>${known.map(({ id, name }) => html`<option key=${id} value=${id}>${name}</option>`)}</select>
    <input type="search" aria-label="Resource" list="audit-kinds" spellcheck=${false} autocomplete="off" placeholder="Resource: endpoints, or endpoints/ID" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    <datalist id="audit-kinds">${KINDS.map((kind) => html`<option key=${kind} value=${kind}></option>`)}</datalist>
    <div class="chips" role="group" aria-label="Time">${RANGES.map(([word, name]) => html`<button type="button" key=${word} class="chip" aria-pressed=${range === name} onClick=${() => setQuery({ range: name })}>${word}</button>`)}</div>
    <${Button} kind="quiet" icon="download" onClick=${() => attempt(() => download(asked), "")}>JSONL<//>
  </div>`;
}

/** The time from which on entries are listed: it advances with the clock. */
function useOldest() {
  const ms = rangeMs();
  const step = useComputed(() => Math.floor(now.value / RANGE_MS));
  return ms ? step.value * RANGE_MS - ms : -Infinity;
}

/** @param {{asked: URLSearchParams, path: string}} props */
function Entries({ asked, path }) {
  const { data, error } = useRead(path, READ_MS);
  const seen = useRef(/** @type {any[]} */ ([]));
  /** The id of the oldest entry of the log, once it was read. */
  const end = useRef(/** @type {number | null} */ (null));
  const isExtended = useRef(false);
  const oldest = useOldest();
  const [, redraw] = useState({});
  if (error && !data) return html`<${Failed} error=${error} onRetry=${() => refresh(path)} />`;
  if (!data) return html`<${Loading} rows=${8} />`;
  // News moves entries out of the newest page; what was read once stays in the list.
  seen.current = merged(data, seen.current);
  if (seen.current.length <= PAGE) isExtended.current = false;
  if (!isExtended.current) seen.current = seen.current.slice(0, LISTED_MAX);
  const entries = seen.current.filter(({ at }) => Date.parse(at) >= oldest);
  if (entries.length === 0) return html`<${NoEntry} isFiltered=${[...asked].length > 0} />`;
  const last = entries[entries.length - 1].id;
  const hasMore = data.length === PAGE && entries.length === seen.current.length && last !== end.current;
  const more = () => attempt(async () => {
    isExtended.current = true;
    const page = await api.json("GET", pathOf(asked, PAGE, last));
    // Meanwhile news can have replaced the list: this page would come after a gap.
    if (seen.current[seen.current.length - 1].id !== last) return;
    if (page.length < PAGE) end.current = page[page.length - 1]?.id ?? last;
    seen.current = [...seen.current, ...page];
    redraw({});
  }, "");
  return html`<div class="table-box"><table class="table audit-table">
      <thead><tr><th scope="col">When</th><th scope="col" class="opt2">Who</th><th scope="col">What</th><th scope="col" class="opt2">Fields</th><th scope="col" class="opt2">From</th><th scope="col">Outcome</th></tr></thead>
      <tbody>${entries.map((entry) => html`<${Entry} key=${entry.id} entry=${entry} />`)}</tbody>
    </table></div>
    <div class="grid-foot"><span>${count(entries.length)} ${entries.length === 1 ? "entry" : "entries"}${hasMore ? " so far" : ""}</span>${hasMore && html`<${Button} kind="small" onClick=${more}>Older entries<//>`}</div>`;
}

/** @param {{isFiltered: boolean}} props */
function NoEntry({ isFiltered }) {
  if (!isFiltered) return html`<${Empty}><p>Nothing has happened yet. Each change and each sign-in will be here, with who did it.</p><//>`;
  return html`<${Empty}><p>Nothing in this range.</p><${Button} onClick=${() => setQuery({ key: null, resource: null, range: null })}>Show all<//><//>`;
}

/**
 * The newest page and what was read before, newest first. A gap between them leaves the newest page alone.
 * @param {any[]} newest
 * @param {any[]} before
 */
function merged(newest, before) {
  const first = newest[newest.length - 1]?.id ?? Infinity;
  const hasGap = newest.length === PAGE && before.every(({ id }) => id < first);
  const byId = new Map([...(hasGap ? [] : before), ...newest].map((entry) => [entry.id, entry]));
  return [...byId.values()].sort((a, b) => b.id - a.id);
}

const OUTCOMES = /** @type {Record<string, {icon: string, word: string, tone: string}>} */ ({
  done: { icon: "completed", word: "Done", tone: "completed" },
  opened: { icon: "completed", word: "Opened", tone: "completed" },
  ended: { icon: "cancelled", word: "Ended", tone: "cancelled" },
  replaced: { icon: "cancelled", word: "Replaced", tone: "cancelled" },
  expired: { icon: "cancelled", word: "Expired", tone: "cancelled" },
  refused: { icon: "cancelled", word: "Refused", tone: "timedout" },
  failed: { icon: "failed", word: "Failed", tone: "failed" },
});

/** @param {{entry: any}} props */
function Entry({ entry }) {
  const outcome = OUTCOMES[entry.outcome] ?? { icon: "warn", word: entry.outcome, tone: "cancelled" };
  const asked = entry.method ? `${entry.method} ${entry.path}${entry.requestId ? `\nRequest ${entry.requestId}` : ""}` : undefined;
  const fields = (entry.fields ?? []).join(", ");
  const who = entry.key?.name ?? (entry.event === "session" ? "unknown key" : "–");
  return html`<tr>
    <td class="dim"><${Age} at=${entry.at} /></td>
    <td class="wraps opt2"><span class="row-link">${who}</span>${entry.via === "console" && html` <span class="dim">console</span>`}</td>
    <th scope="row" class="wraps" title=${asked}>${what(entry)}${entry.resource && html` <${Resource} resource=${entry.resource} />`}<span class="audit-who dim">${who}${entry.address && `, ${entry.address}`}${fields && `: ${fields}`}</span></th>
    <td class="mono opt2 wraps">${fields || html`<span class="dim">–</span>`}</td>
    <td class="mono dim opt2">${entry.address ?? "–"}</td>
    <td><span class=${`state tone-${outcome.tone}`}><${Icon} name=${outcome.icon} />${outcome.word}${entry.status >= 400 ? ` ${entry.status}` : ""}</span></td>
  </tr>`;
}

/** @param {{resource: string}} props */
function Resource({ resource }) {
  const [kind, id] = resource.split("/");
  return kind === "endpoints" && id ? html`<a class="mono audit-link" href=${href(`/endpoints/${encodeURIComponent(id)}`)}>${resource}</a>` : html`<span class="mono">${resource}</span>`;
}

/** All entries of the filter as a file: one entry a line. @param {URLSearchParams} asked */
async function download(asked) {
  /** @type {string[]} */
  const lines = [];
  /** @type {number | undefined} */
  let cursor;
  let isComplete = false;
  while (!isComplete && lines.length < DOWNLOAD_MAX) {
    const page = /** @type {any[]} */ (await api.json("GET", pathOf(asked, PAGE_MAX, cursor)));
    lines.push(...page.map((entry) => JSON.stringify(entry)));
    cursor = page[page.length - 1]?.id;
    isComplete = page.length < PAGE_MAX;
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.map((line) => `${line}\n`).join("")], { type: "application/jsonl" }));
  link.download = "longshore-audit.jsonl";
  link.click();
  URL.revokeObjectURL(link.href);
  toast(isComplete ? `${count(lines.length)} entries are in the file.` : `The newest ${count(lines.length)} entries are in the file; older ones are not.`);
}
