// The requests of one endpoint, or of all: by state, by what one searches, live.
import { html, useEffect, useMemo, useState } from "../dom.js";
import { href, place, setQuery } from "../router.js";
import { count, duration } from "../format.js";
import { fault, tokens } from "../filter.js";
import { healthPath, useEndpoint, useEndpointList } from "../fleet.js";
import { JOB_STATES } from "../icons.js";
import { RequestList, SEARCHED_MAX } from "../request_list.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Empty, Failed, Loading } from "../ui/card.js";
import { CodeLine } from "../ui/copy.js";
import { FORMS } from "../ui/copy_as.js";
import { EndpointHead, NoEndpoint } from "../ui/endpoint_head.js";
import { RequestGrid } from "../ui/request_grid.js";
import { useKeys } from "../ui/keys.js";

const TYPING_MS = 300;

export default function Requests() {
  return place.value.params.endpoint ? html`<${OfOne} name=${place.value.params.endpoint} />` : html`<${OfAll} />`;
}

/** @param {{name: string}} props */
function OfOne({ name }) {
  const { endpoint, isReadable, error, health } = useEndpoint(name);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<h1>${name}</h1><${Loading} rows=${8} />`;
  return html`<${EndpointHead} endpoint=${endpoint} health=${health} isReadable=${isReadable} /><${List} key=${endpoint.id} endpoints=${[endpoint]} />`;
}

function OfAll() {
  const { data, error } = useEndpointList(10000);
  const head = html`<div class="head"><h1>Requests</h1><p class="dim">Of all endpoints, newest first.${data && data.length > SEARCHED_MAX ? ` A text is searched in the first ${SEARCHED_MAX} of ${count(data.length)}.` : ""}</p></div>`;
  if (error && !data) return html`${head}<${Failed} error=${error} onRetry=${() => refresh("/v1/endpoints")} />`;
  if (!data) return html`${head}<${Loading} rows=${8} />`;
  if (data.length === 0) return html`${head}<${Empty}><p>No endpoint is here yet, so no request is.</p><a class="button" href=${href("/endpoints")}>Endpoints</a><//>`;
  return html`${head}<${List} endpoints=${data} isOfAll />`;
}

/** @param {{endpoints: any[], isOfAll?: boolean}} props */
function List({ endpoints, isOfAll = false }) {
  const { query } = place.value;
  const line = query.get("q") ?? "";
  const status = query.get("state");
  const parsed = useMemo(() => tokens(line), [line]);
  const wrong = fault(parsed);
  const ids = endpoints.map(({ id }) => id).join();
  const list = useMemo(() => new RequestList(wrong ? [] : endpoints, parsed, status, isOfAll && !wrong), [ids, parsed, status, wrong]);
  useEffect(() => {
    void list.begin();
    return () => list.close();
  }, [list]);
  void list.version.value;
  return html`<section class=${`card grid ${isOfAll ? "with-endpoint" : ""}`} aria-label="Requests">
    <${Filters} endpoints=${endpoints} line=${line} status=${status} wrong=${wrong} />
    ${list.unanswered() > 0 && html`<p class="grid-foot" role="status">${count(list.unanswered())} of ${count(endpoints.length)} endpoints did not answer. The list is without their jobs.</p>`}
    ${list.rows.length > 0
      ? html`<${RequestGrid} list=${list} isOfAll=${isOfAll} />`
      : list.error ? html`<${Failed} error=${list.error} onRetry=${() => list.more()} />`
      : list.isComplete ? html`<${Nothing} endpoint=${isOfAll ? null : endpoints[0]} isFiltered=${Boolean(line || status)} />`
      : html`${parsed.length > 0 && html`<p class="grid-foot">searched ${count(list.progress().searched)} of ${count(list.progress().of)} jobs so far</p>`}<${Loading} rows=${10} />`}
  </section>`;
}

/** @param {{endpoints: any[], line: string, status: string | null, wrong: string}} props */
function Filters({ endpoints, line, status, wrong }) {
  const [text, setText] = useState(line);
  useEffect(() => setText(line), [line]);
  useEffect(() => {
    const timer = setTimeout(() => text !== line && setQuery({ q: text }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  useKeys([{ key: "/", does: "Search", act: () => document.getElementById("search")?.focus() }]);
  const one = useRead(endpoints.length === 1 ? healthPath(endpoints[0].id) : null, 2000).data?.jobs;
  const known = /** @type {Record<string, number>} */ (one ? { IN_QUEUE: one.inQueue, IN_PROGRESS: one.inProgress } : {});
  return html`<div class="filters">
    <input id="search" type="search" aria-label="Search requests" spellcheck=${false} autocomplete="off" aria-invalid=${wrong ? "true" : undefined} aria-describedby=${wrong ? "search-fault" : undefined}
      placeholder="Id or text, worker:… after:10min ran:>1min" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
    <div class="chips" role="group" aria-label="State">
      <button type="button" class="chip" aria-pressed=${!status} onClick=${() => setQuery({ state: null })}>All</button>
      ${Object.entries(JOB_STATES).map(([state, { word }]) => html`<button type="button" key=${state} class="chip" aria-pressed=${status === state} onClick=${() => setQuery({ state: status === state ? null : state })}>${word}${known[state] !== undefined && html` <b>${count(known[state])}</b>`}</button>`)}
    </div>
    ${wrong && html`<p id="search-fault" class="field-error">${wrong}</p>`}
  </div>`;
}

/** @param {{endpoint: any, isFiltered: boolean}} props */
function Nothing({ endpoint, isFiltered }) {
  if (isFiltered) return html`<${Empty}><p>No job matches.</p><button type="button" class="button" onClick=${() => setQuery({ q: null, state: null })}>Show all</button><//>`;
  const kept = endpoint?.resultRetentionMs;
  return html`<${Empty}><p>No job is here.${kept ? ` Finished ones are kept ${duration(kept)}; \`resultRetentionMs\` changes that.` : ""}</p>
    ${endpoint && may.jobs(endpoint.id) && html`<p>This sends one:</p><${CodeLine} text=${FORMS[0].of({ endpoint: endpoint.slug ?? endpoint.id, input: endpoint.example ?? {} })} />`}<//>`;
}
