// The requests of one endpoint, or of all: by state, by what one searches, live.
import { html, useEffect, useLayoutEffect, useMemo } from "../dom.js";
import { href, place, setQuery } from "../router.js";
import { count, duration } from "../format.js";
import { fault, hasTimes, tokens } from "../filter.js";
import { useEndpoint, useEndpointList } from "../fleet.js";
import { countOf, useJobCounts } from "../job_counts.js";
import { exampleInput } from "../example_input.js";
import { Ahead, Later } from "../load.js";
import { utc } from "../prefs.js";
import { columns } from "../request_columns.js";
import { SEARCHED_MAX } from "../job_source.js";
import { RequestList } from "../request_list.js";
import { may } from "../session.js";
import { refresh } from "../store.js";
import { BulkTasks } from "../ui/bulk.js";
import { Empty, Failed, Loading } from "../ui/card.js";
import { CodeLine } from "../ui/copy.js";
import { FORMS } from "../ui/copy_as.js";
import { Downloading, useDownload } from "../ui/download.js";
import { EndpointHead } from "../ui/endpoint_head.js";
import { JobPanel, useJobBeside } from "../ui/job_panel.js";
import { EndpointLoading, NoEndpoint } from "../ui/no_endpoint.js";
import { Filters } from "../ui/request_filters.js";
import { RequestGrid, Searched } from "../ui/request_grid.js";
import { useKeys } from "../ui/keys.js";

export default function Requests() {
  return place.value.params.endpoint ? html`<${OfOne} name=${place.value.params.endpoint} />` : html`<${OfAll} />`;
}

/** @param {{name: string}} props */
function OfOne({ name }) {
  const { endpoint, isReadable, error, health, healthError } = useEndpoint(name);
  // The counts change far more often than the endpoint: the list is not rendered for them.
  const endpoints = useMemo(() => (endpoint ? [endpoint] : []), [endpoint]);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<${EndpointLoading} name=${name} />`;
  const head = html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />`;
  if (!may.requests(endpoint.id)) return html`${head}<${Empty}><p>This key may not read the jobs.</p><//>`;
  return html`${head}<${List} key=${endpoint.id} endpoints=${endpoints} />`;
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
  const list = useMemo(() => new RequestList(wrong ? [] : endpoints, parsed, status, isOfAll && !wrong, shown), [parsed, status, wrong, shown, hasTimes(parsed) && utc.value]);
  // What is read, chosen and scrolled to stays when an endpoint is made or deleted.
  useEffect(() => list.setEndpoints(wrong ? [] : endpoints), [list, ids]);
  useLayoutEffect(() => {
    void list.begin();
    return () => list.close();
  }, [list]);
  void list.version.value;
  const download = useDownload(list);
  const { beside, open, close } = useJobBeside(isOfAll ? null : endpoints[0].slug || endpoints[0].id);
  const { selection } = list;
  useKeys([{ key: "Escape", does: "Choose none, or close the request", act: () => (selection.isSome() || selection.isChoosing.value ? selection.none() : close()) }]);
  return html`<div class=${beside ? "beside" : ""}><section class=${`card grid ${isOfAll ? "with-endpoint" : ""}`} aria-label="Requests">
    <${Filters} endpoints=${endpoints} list=${list} line=${line} wrong=${wrong} download=${download} />
    <ul class="tasks" aria-label="Tasks"><${Downloading} download=${download} /><${BulkTasks} endpoints=${endpoints} /></ul>
    ${list.unanswered() > 0 && html`<p class="grid-foot" role="status">${count(list.unanswered())} of ${count(endpoints.length)} endpoints did not answer. The list is without their jobs.</p>`}
    ${wrong ? html`<${Empty}><p>The search has a fault: no job was looked for.</p><button type="button" class="button" onClick=${() => setQuery({ q: null })}>Clear the search</button><//>`
      : list.rows.length > 0
      ? html`<${RequestGrid} list=${list} isOfAll=${isOfAll} columns=${shown} download=${download} openId=${beside?.id ?? null} onOpen=${open} />`
      : list.error ? html`<${Failed} error=${list.error} onRetry=${() => list.more()} />`
      : list.isComplete ? html`<${Nothing} endpoints=${endpoints} isFiltered=${Boolean(line || status)} />`
      : html`${parsed.length > 0 && html`<p class="grid-foot"><${Searched} list=${list} version=${list.version.value} /></p>`}${list.isHalted && !list.isLoading ? html`<${Empty}><p>No job was found so far.</p><//>` : html`<${Loading} rows=${10} />`}`}
  </section>
  ${beside && html`<${JobPanel} beside=${beside} onClose=${close}><${Later} key=${`${beside.endpoint} ${beside.id}`} address="./ui/job.js" props=${{ name: beside.endpoint, id: beside.id, isBeside: true }} /><//>`}<${Ahead} address="./ui/job.js" /></div>`;
}

/** @param {{endpoints: Endpoint[], isFiltered: boolean}} props */
function Nothing({ endpoints, isFiltered }) {
  /** The jobs without the filter. */
  const total = countOf(useJobCounts(endpoints), null);
  if (isFiltered && total !== 0) return html`<${Empty}><p>No job matches.${total !== null && ` ${count(total)} ${total === 1 ? "is" : "are"} here without the filter.`}</p><button type="button" class="button" onClick=${() => setQuery({ q: null, state: null })}>Show all</button><//>`;
  const kept = endpoints.length === 1 ? endpoints[0].resultRetentionMs : null;
  const sender = endpoints.find(({ id }) => may.jobs(id));
  return html`<${Empty}><p>${kept ? html`No job in the last ${duration(kept)}. Finished ones are kept ${duration(kept)}; <span class="mono">resultRetentionMs</span> changes that.` : "No job is here. Finished ones are deleted when the retention of their endpoint ends."}</p>
    ${sender && html`<p>This sends one:</p><${CodeLine} text=${FORMS[0].of({ endpoint: sender.slug ?? sender.id, input: exampleInput(sender) ?? {} })} />`}<//>`;
}
