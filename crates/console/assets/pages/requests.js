// The requests of one endpoint, or of all: by state, by what one searches, live.
import { html, useEffect, useMemo, useState } from "../dom.js";
import { href, place, setQuery } from "../router.js";
import { count, duration } from "../format.js";
import { fault, tokens } from "../filter.js";
import { useEndpoint, useEndpointList } from "../fleet.js";
import { JOB_STATES } from "../icons.js";
import { COLUMNS, columns, switchColumn } from "../prefs.js";
import { SEARCHED_MAX } from "../job_source.js";
import { RequestList } from "../request_list.js";
import { may } from "../session.js";
import { refresh, useReads } from "../store.js";
import { BulkTasks } from "../ui/bulk.js";
import { Empty, Failed, Loading } from "../ui/card.js";
import { CodeLine } from "../ui/copy.js";
import { FORMS } from "../ui/copy_as.js";
import { Downloading, downloadItems, useDownload } from "../ui/download.js";
import { EndpointHead, EndpointLoading, NoEndpoint } from "../ui/endpoint_head.js";
import { JobPanel, useJobBeside } from "../ui/job_panel.js";
import { Purge } from "../ui/purge.js";
import { RequestGrid, Searched } from "../ui/request_grid.js";
import { SearchLine } from "../ui/search_line.js";
import { useKeys } from "../ui/keys.js";
import { Menu } from "../ui/menu.js";
import { Job } from "./request.js";

/** Endpoints whose counts are read one by one and added up, and whose tasks are shown. */
const COUNTED_MAX = 20;
const COUNTS_MS = 2000;
/** The number of rows whose workers are suggested. */
const WORKERS_OF = 200;

export default function Requests() {
  return place.value.params.endpoint ? html`<${OfOne} name=${place.value.params.endpoint} />` : html`<${OfAll} />`;
}

/** @param {{name: string}} props */
function OfOne({ name }) {
  const { endpoint, isReadable, error, health, healthError } = useEndpoint(name);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<${EndpointLoading} name=${name} />`;
  const head = html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />`;
  if (!may.requests(endpoint.id)) return html`${head}<${Empty}><p>This key may not read the jobs.</p><//>`;
  return html`${head}<${List} key=${endpoint.id} endpoints=${[endpoint]} />`;
}

function OfAll() {
  const { data: all, error } = useEndpointList(10000);
  const data = all?.filter(({ id }) => may.requests(id));
  const head = html`<div class="head"><h1>Requests</h1><p class="dim">Of all endpoints, newest first.${data && data.length > SEARCHED_MAX ? ` A text is searched in the first ${SEARCHED_MAX} of ${count(data.length)}.` : ""}</p></div>`;
  if (error && !data) return html`${head}<${Failed} error=${error} onRetry=${() => refresh("/v1/endpoints")} />`;
  if (!data) return html`${head}<${Loading} rows=${8} />`;
  if (data.length === 0 && all?.length) return html`${head}<${Empty}><p>This key may not read the jobs.</p><//>`;
  if (data.length === 0) return html`${head}<${Empty}><p>No endpoint is here yet, so no request is.</p><a class="button" href=${href("/endpoints")}>Endpoints</a><//>`;
  return html`${head}<${List} endpoints=${data} isOfAll />`;
}

/** @param {{endpoints: Endpoint[], isOfAll?: boolean}} props */
function List({ endpoints, isOfAll = false }) {
  const { query } = place.value;
  const line = query.get("q") ?? "";
  const status = query.get("state");
  const parsed = useMemo(() => tokens(line), [line]);
  const wrong = fault(parsed);
  const ids = endpoints.map(({ id }) => id).join();
  const shown = columns.value;
  const list = useMemo(() => new RequestList(wrong ? [] : endpoints, parsed, status, isOfAll && !wrong, shown), [ids, parsed, status, wrong, shown]);
  useEffect(() => {
    void list.begin();
    return () => list.close();
  }, [list]);
  void list.version.value;
  const known = useCounts(endpoints);
  const download = useDownload(list);
  const { beside, open, close } = useJobBeside(isOfAll ? null : endpoints[0].slug || endpoints[0].id);
  const { selection } = list;
  useKeys([{ key: "Escape", does: "Choose none, or close the request", act: () => (selection.isSome() || selection.isChoosing.value ? selection.none() : close()) }]);
  const total = known && Object.values(known).reduce((sum, number) => sum + number, 0);
  const inState = known && (status ? known[status] : total);
  const matching = parsed.length === 0 ? (inState ?? null) : list.isComplete ? list.rows.filter(({ hasLeft, job }) => !hasLeft && !job.isGone).length : null;
  return html`<div class=${beside ? "beside" : ""}><section class=${`card grid ${isOfAll ? "with-endpoint" : ""}`} aria-label="Requests">
    <${Filters} endpoints=${endpoints} list=${list} line=${line} status=${status} wrong=${wrong} known=${known} download=${download} />
    <ul class="tasks" aria-label="Tasks"><${Downloading} download=${download} /><${BulkTasks} endpoints=${endpoints.slice(0, COUNTED_MAX)} /></ul>
    ${list.unanswered() > 0 && html`<p class="grid-foot" role="status">${count(list.unanswered())} of ${count(endpoints.length)} endpoints did not answer. The list is without their jobs.</p>`}
    ${wrong ? html`<${Empty}><p>The search has a fault: no job was looked for.</p><button type="button" class="button" onClick=${() => setQuery({ q: null })}>Clear the search</button><//>`
      : list.rows.length > 0
      ? html`<${RequestGrid} list=${list} isOfAll=${isOfAll} columns=${shown} matching=${matching} download=${download} openId=${beside?.id ?? null} onOpen=${open} />`
      : list.error ? html`<${Failed} error=${list.error} onRetry=${() => list.more()} />`
      : list.isComplete ? html`<${Nothing} endpoints=${endpoints} isFiltered=${Boolean(line || status)} total=${total} />`
      : html`${parsed.length > 0 && html`<p class="grid-foot"><${Searched} list=${list} version=${list.version.value} /></p>`}${list.isHalted && !list.isLoading ? html`<${Empty}><p>No job was found so far.</p><//>` : html`<${Loading} rows=${10} />`}`}
  </section>
  ${beside && html`<${JobPanel} beside=${beside} onClose=${close}><${Job} key=${`${beside.endpoint} ${beside.id}`} name=${beside.endpoint} id=${beside.id} isBeside /><//>`}</div>`;
}

/**
 * @param {{endpoints: Endpoint[], list: RequestList, line: string, status: string | null, wrong: string,
 *   known: Record<string, number> | null, download: ReturnType<typeof useDownload>}} props `known`: the jobs in each state
 */
function Filters({ endpoints, list, line, status, wrong, known, download }) {
  const [isPurging, setPurging] = useState(false);
  useKeys([{ key: "/", does: "Search", act: () => document.getElementById("search")?.focus() }]);
  const one = endpoints.length === 1 ? endpoints[0] : null;
  const workers = [...new Set(list.rows.slice(0, WORKERS_OF).map(({ job }) => job.workerId).filter(Boolean))];
  const purge = one && may.jobs(one.id) ? [{ name: "Purge the queue", act: () => setPurging(true), why: known?.IN_QUEUE ? "" : "No job waits." }] : [];
  const choose = { name: "Choose jobs", act: () => (list.selection.isChoosing.value = true), why: list.rows.length > 0 ? "" : "No job is here." };
  const columnItems = COLUMNS.map((name) => ({ name: `Column: ${name}`, isOn: columns.value.includes(name), act: () => switchColumn(name) }));
  const items = [choose, ...downloadItems(download), ...columnItems, ...purge];
  return html`<div class="filters">
    <${SearchLine} line=${line} wrong=${wrong} workers=${workers} version=${one?.version ?? 0} onLine=${(/** @type {string} */ q) => setQuery({ q: q.trim() })} />
    <div class="chips" role="group" aria-label="State">
      <button type="button" class="chip" aria-pressed=${!status} onClick=${() => setQuery({ state: null })}>All</button>
      ${Object.entries(JOB_STATES).map(([state, { word }]) => html`<button type="button" key=${state} class="chip" aria-pressed=${status === state} onClick=${() => setQuery({ state: status === state ? null : state })}>${word}${known && html` <b>${count(known[state])}</b>`}</button>`)}
    </div>
    <${Menu} label="More" kind="quiet" items=${items} />
    ${isPurging && html`<${Purge} endpoint=${one} waiting=${known?.IN_QUEUE ?? 0} running=${known?.IN_PROGRESS ?? 0} onClose=${() => setPurging(false)} />`}
    ${wrong && html`<p id="search-fault" class="field-error">${wrong}</p>`}
  </div>`;
}

/** How many jobs are in each state; null while it is not known. @param {Endpoint[]} endpoints @returns {Record<string, number> | null} */
function useCounts(endpoints) {
  // The counts of few endpoints are kept up to date by events.
  const paths = endpoints.length <= COUNTED_MAX ? endpoints.map(({ id }) => `/v2/${encodeURIComponent(id)}/requests?limit=1&counts=true`) : ["/v1/requests?limit=1&counts=true"];
  const reads = useReads(paths, COUNTS_MS);
  const all = paths.map((path) => reads.get(path)?.data?.counts);
  if (all.length === 0 || all.some((counts) => !counts)) return null;
  return Object.fromEntries(Object.keys(JOB_STATES).map((state) => [state, all.reduce((total, counts) => total + counts[state], 0)]));
}

/** @param {{endpoints: Endpoint[], isFiltered: boolean, total: number | null}} props `total`: the jobs without the filter; null while it is not known */
function Nothing({ endpoints, isFiltered, total }) {
  if (isFiltered && total !== 0) return html`<${Empty}><p>No job matches.${total !== null && ` ${count(total)} ${total === 1 ? "is" : "are"} here without the filter.`}</p><button type="button" class="button" onClick=${() => setQuery({ q: null, state: null })}>Show all</button><//>`;
  const kept = endpoints.length === 1 ? endpoints[0].resultRetentionMs : null;
  const sender = endpoints.find(({ id }) => may.jobs(id));
  return html`<${Empty}><p>${kept ? html`No job in the last ${duration(kept)}. Finished ones are kept ${duration(kept)}; <span class="mono">resultRetentionMs</span> changes that.` : "No job is here. Finished ones are deleted when the retention of their endpoint ends."}</p>
    ${sender && html`<p>This sends one:</p><${CodeLine} text=${FORMS[0].of({ endpoint: sender.slug ?? sender.id, input: sender.example ?? {} })} />`}<//>`;
}
