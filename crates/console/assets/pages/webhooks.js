// The webhook calls of one endpoint, or of all: what became of them, their attempts, and delivering them again.
import { html, useEffect, useRef, useState } from "../dom.js";
import { endpointPath, href, place, setQuery } from "../router.js";
import { count, duration, shortId, visible } from "../format.js";
import { useEndpoint, useEndpointList } from "../fleet.js";
import { exampleInput } from "../example_input.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Button } from "../ui/button.js";
import { Alert, Card, Empty, Failed, Loading } from "../ui/card.js";
import { CodeLine } from "../ui/copy.js";
import { FORMS } from "../ui/copy_as.js";
import { Dialog } from "../ui/dialog.js";
import { EndpointHead } from "../ui/endpoint_head.js";
import { EndpointLoading, NoEndpoint } from "../ui/no_endpoint.js";
import { mayRedeliver, RedeliverMenu } from "../ui/redeliver.js";
import { Age, Due, Moment } from "../ui/time.js";
import { answerOf, asDelivered, CallState, deliver, LATE } from "../ui/webhook_call.js";
import { WebhookSecrets } from "../ui/webhook_secrets.js";

const READ_MS = 5000;
/** The calls of a page. */
const PAGE = 200;
const STATES = /** @type {[string, string | null][]} */ ([["All", null], ["Failed", "FAILED"], ["Pending", "PENDING"], ["Delivered", "DELIVERED"]]);

const UNREAD = "This key may not read the jobs, so neither their webhooks.";

export default function Webhooks() {
  const name = place.value.params.endpoint;
  return name ? html`<${OfOne} name=${name} />` : html`<${OfAll} />`;
}

/** @param {{name: string}} props */
function OfOne({ name }) {
  const { endpoint, isReadable, error, health, healthError } = useEndpoint(name);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<${EndpointLoading} name=${name} />`;
  const path = `/v2/${encodeURIComponent(endpoint.id)}/webhooks`;
  return html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />
    ${may.requests(endpoint.id) ? html`<${Calls} path=${path} endpointOf=${() => endpoint} endpoints=${[endpoint]} again=${may.jobs(endpoint.id) ? endpoint.name : ""} />` : html`<${Empty}><p>${UNREAD}</p><//>`}
    ${may.change(endpoint.id) && html`<${WebhookSecrets} endpoint=${endpoint} />`}`;
}

function OfAll() {
  const endpoints = useEndpointList(10000).data ?? [];
  const endpointOf = (/** @type {any} */ call) => endpoints.find(({ id }) => id === call.endpoint) ?? { id: call.endpoint, name: call.endpoint };
  const head = html`<div class="head"><h1>Webhooks</h1><p class="dim">The calls that tell other servers how jobs ended.</p></div>`;
  if (!may.requestsAny.value) return html`${head}<${Empty}><p>${UNREAD}</p><//>`;
  return html`${head}<${Calls} path="/v1/webhooks" endpointOf=${endpointOf} endpoints=${endpoints} again=${mayRedeliver() ? "all endpoints" : ""} isOfAll />`;
}

/**
 * The page of calls that the address names: `state`, and `cursor` for one of older calls.
 * @param {string} path
 */
function useCalls(path) {
  const [state, cursor] = ["state", "cursor"].map((name) => place.value.query.get(name));
  const asked = new URLSearchParams({ limit: String(PAGE), ...(state && { state }), ...(cursor && { cursor }) });
  const { data: answered, error } = useRead(`${path}?${asked}`, READ_MS);
  // What is listed stays until the next page is read.
  const listed = useRef({ state, data: answered });
  if (answered || error || listed.current.state !== state) listed.current = { state, data: answered };
  return { state, cursor, data: listed.current.data, error, isRead: answered !== undefined };
}

/** @param {{path: string, endpointOf: (call: WebhookCall) => any, endpoints: any[], again: string, isOfAll?: boolean}} props `endpoints`: whose calls these are · `again` is whose failed calls the key may deliver again, or "" */
function Calls({ path, endpointOf, endpoints, again, isOfAll = false }) {
  const { state, cursor, data, error, isRead } = useCalls(path);
  const [opened, setOpened] = useState(/** @type {WebhookCall | null} */ (null));
  // The dialog shows what comes; when the call leaves the list, what came last.
  const present = opened && (data?.webhooks.find((/** @type {WebhookCall} */ call) => call.id === opened.id) ?? opened);
  useEffect(() => setOpened(present), [present]);
  const chips = html`<div class="chips" role="group" aria-label="State">${STATES.map(([word, value]) => html`<button type="button" key=${word} class="chip" aria-pressed=${state === value} onClick=${() => setQuery({ state: value, cursor: null })}>${word}</button>`)}</div>`;
  // Those that failed can be older than this page, or in another state's list.
  const hasCalls = data && (data.webhooks.length > 0 || state || cursor);
  const actions = html`${chips}${again && hasCalls && html`<${RedeliverMenu} path=${path} name=${again} />`}`;
  return html`<${Paused} receivers=${data?.pausedReceivers ?? []} />
    <${Card} title="Calls" note=${data && note(data, cursor)} flush actions=${actions}>
      <${Turned} key=${state} cursor=${cursor} isRead=${isRead}>
        ${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(path)} />` : !data ? html`<${Loading} rows=${6} />` : data.webhooks.length === 0 ? html`<${NoCall} endpoints=${endpoints} state=${state} cursor=${cursor} />` : html`<${Table} calls=${data.webhooks} endpointOf=${endpointOf} isOfAll=${isOfAll} onOpen=${setOpened} />`}
      <//>
      ${(cursor || data?.cursor) && html`<div class="grid-foot">
        ${data && html`<span>${count(data.webhooks.length)} ${cursor ? "older calls" : "calls so far"}</span>`}
        ${cursor && html`<${Button} kind="small" onClick=${() => setQuery({ cursor: null }, { replace: false })}>Newest calls<//>`}
        ${data?.cursor && html`<${Button} kind="small" disabled=${!isRead} onClick=${() => setQuery({ cursor: data.cursor }, { replace: false })}>Older calls<//>`}
      </div>`}
    <//>
    ${present && html`<${Attempts} call=${present} endpoint=${endpointOf(present)} onClose=${() => setOpened(null)} />`}`;
}

/** A page of the list: when another one is read, it is shown from its top, and has the focus. @param {{cursor: string | null, isRead: boolean, children?: any}} props */
function Turned({ cursor, isRead, children }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const shown = useRef(cursor);
  useEffect(() => {
    if (!isRead || shown.current === cursor) return;
    shown.current = cursor;
    window.scrollTo(0, 0);
    box.current?.focus({ preventScroll: true });
  }, [cursor, isRead]);
  return html`<div ref=${box} tabindex="-1" role="group" aria-label=${cursor ? "Older calls" : "Newest calls"}>${children}</div>`;
}

/** How many calls are listed, and what is not. @param {any} data @param {string | null} cursor */
function note(data, cursor) {
  const shown = count(data.webhooks.length);
  const which = cursor ? `${shown} older` : data.cursor ? `the newest ${shown}` : shown;
  const of = data.of && (cursor || data.cursor) ? ` of ${count(data.of)}` : "";
  return which + of + (data.unread ? ` The log of ${count(data.unread)} endpoints could not be read in time.` : "");
}

/** Receivers to which calls pause. @param {{receivers: any[]}} props */
function Paused({ receivers }) {
  if (receivers.length === 0) return null;
  return html`<${Alert} tone="warn" title=${receivers.length === 1 ? "A receiver does not respond" : `${count(receivers.length)} receivers do not respond`}>
    ${receivers.map(({ receiver, since, until }) => html`<p key=${receiver}><span class="mono">${visible(receiver)}</span> has not responded since <${Age} at=${since} />. Calls to it wait; the next try is at <${Moment} at=${until} />.</p>`)}
  <//>`;
}

/** @param {{endpoints: any[], state: string | null, cursor: string | null}} props */
function NoCall({ endpoints, state, cursor }) {
  if (cursor) return html`<${Empty}><p>No older call is in the log.</p><//>`;
  if (state) return html`<${Empty}><p>No call is in this state.</p><${Button} onClick=${() => setQuery({ state: null })}>Show all<//><//>`;
  const sender = endpoints.find(({ id }) => may.jobs(id));
  const input = (sender && exampleInput(sender)) ?? {};
  return html`<${Empty}><p>No call was made so far. Send <span class="mono">"webhook": "https://…"</span> beside <span class="mono">input</span>, or set one for all jobs in the endpoint's settings.</p>
    ${sender && html`<p>This sends one, with the address of your program in place of the three points:</p><${CodeLine} text=${FORMS[0].of({ endpoint: sender.slug ?? sender.id, input, body: JSON.stringify({ input, webhook: "https://…" }) })} />`}<//>`;
}

/** @param {{calls: WebhookCall[], endpointOf: (call: WebhookCall) => any, isOfAll: boolean, onOpen: (call: WebhookCall) => void}} props */
function Table({ calls, endpointOf, isOfAll, onOpen }) {
  return html`<div class="table-box"><table class="table">
    <thead><tr><th scope="col">State</th>${isOfAll && html`<th scope="col">Endpoint</th>`}<th scope="col">Job</th><th scope="col" class=${isOfAll ? "opt" : "opt2"}>Event</th><th scope="col" class="opt2">Receiver</th><th scope="col" class="num opt">Attempts</th><th scope="col" class="opt">Last answer</th><th scope="col" class=${isOfAll ? "opt" : ""}>Last try</th><th scope="col" class="opt">Next try</th><th scope="col"><span class="offscreen">Actions</span></th></tr></thead>
    <tbody>${calls.map(asDelivered).map((call) => html`<${Row} key=${call.id} call=${call} endpoint=${endpointOf(call)} isOfAll=${isOfAll} onOpen=${onOpen} />`)}</tbody>
  </table></div>`;
}

/** @param {{call: WebhookCall, endpoint: Endpoint, isOfAll: boolean, onOpen: (call: WebhookCall) => void}} props */
function Row({ call, endpoint, isOfAll, onOpen }) {
  const last = call.attempts.at(-1);
  return html`<tr>
    <th scope="row"><${CallState} call=${call} /></th>
    ${isOfAll && html`<td><a class="row-link" href=${href(endpointPath(endpoint))}>${endpoint.name}</a></td>`}
    <td class="mono" data-leads><a class="row-link" href=${href(`${endpointPath(endpoint)}/requests/${call.job}`)}>${shortId(call.job)}</a></td>
    <td class=${isOfAll ? "opt mono" : "opt2 mono"}>${call.event}</td><td class="opt2 mono one-line" title=${visible(call.receiver)}>${visible(call.receiver)}</td>
    <td class="num opt">${count(last?.attempt ?? 0)}</td><td class="opt one-line" title=${last?.error ? visible(last.error) : undefined}>${answerOf(last)}</td>
    <td class=${isOfAll ? "dim opt" : "dim"}><${Age} at=${last?.at} /></td><td class="dim opt"><${Due} at=${call.nextAttemptAt} late=${LATE} /></td>
    <td class="acts"><${Button} kind="quiet small" label=${`Show the attempts for ${shortId(call.job)}`} onClick=${() => onOpen(call)}>Attempts<//>${may.jobs(endpoint.id) && call.state !== "PENDING" && html`<${Button} kind="quiet small" label=${`Deliver again ${shortId(call.job)}`} onClick=${() => deliver(endpoint, call)}>Deliver again<//>`}</td>
  </tr>`;
}

/** @param {{call: WebhookCall, endpoint: Endpoint, onClose: () => void}} props */
function Attempts({ call, endpoint, onClose }) {
  return html`<${Dialog} title=${`Attempts for job ${shortId(call.job)}`} onClose=${onClose} actions=${html`<${Button} kind="primary" onClick=${onClose}>Close<//>`}>
    <p class="dim">${endpoint.name}, <span class="mono">${call.event}</span>, to <span class="mono">${visible(call.receiver)}</span></p>
    ${call.attempts.map((/** @type {any} */ one) => html`<dl class="kv" key=${one.at}>
      <dt>Attempt ${one.attempt}</dt><dd><${Moment} at=${one.at} /></dd><dt>Took</dt><dd>${duration(one.latencyMs)}</dd><dt>Answer</dt><dd>${answerOf(one)}</dd>
      ${one.answer && html`<dt>It said</dt><dd><pre class="mono wrapped">${visible(one.answer)}</pre></dd>`}
    </dl>`)}
    ${call.nextAttemptAt && html`<p>Next attempt: <${Due} at=${call.nextAttemptAt} late=${LATE} />.</p>`}
  <//>`;
}
