// Why a job waits: the server's cause as a card, its place in the line, and when it will start.
import { html } from "../dom.js";
import { said } from "../api.js";
import { count, duration } from "../format.js";
import { EXPLAINED, leadTo } from "../endpoint_actions.js";
import { href } from "../router.js";
import { may } from "../session.js";
import { useRead } from "../store.js";
import { Button } from "./button.js";
import { Alert } from "./card.js";
import { attempt } from "./toast.js";

const READ_MS = 2000;

/** @param {{endpoint: Endpoint, job: Job}} props */
export function WhyWaits({ endpoint, job }) {
  const path = `/v2/${encodeURIComponent(endpoint.id)}/explain/${encodeURIComponent(job.id)}`;
  const { data, error } = useRead(path, READ_MS);
  const { data: place } = useRead(data ? null : `/v2/${encodeURIComponent(endpoint.id)}/status/${job.id}?position=true`, READ_MS);
  const cause = data?.cause;
  const position = data?.position ?? place?.position;
  if (!cause && position === undefined) return null;
  if (cause?.code === "not_waiting") return null;
  const isBad = cause?.blocking === true;
  const ahead = data?.ahead ?? Math.max(0, (position ?? 1) - 1);
  const actions = (cause?.actions ?? []).filter((/** @type {any} */ action) => EXPLAINED[action.do] && may.change(endpoint.id));
  const leads = (cause?.actions ?? []).filter((/** @type {any} */ action) => leadTo(endpoint, action.do));
  return html`<${Alert} tone=${isBad ? "bad" : "warn"} icon=${isBad ? "warn" : "queued"} title=${cause?.title ?? (data || !error ? "It waits for its turn" : "Why it waits is not known")}>
    ${!data && error && html`<p>${said(error)}</p>`}
    ${cause?.text && html`<p>${cause.text}</p>`}
    ${cause?.logTail?.length > 0 && html`<pre tabindex="0">${cause.logTail.join("\n")}</pre>`}
    <dl class="kv">
      <dt>Place in the line</dt><dd>${count(position)}${ahead > 0 ? `, ${count(ahead)} ahead` : ", next"}</dd>
      <dt>Starts in about</dt><dd>${estimate(data?.estimate, isBad)}</dd>
    </dl>
    ${(data?.also ?? []).map((/** @type {any} */ other) => html`<p key=${other.code}>${other.text}</p>`)}
    ${actions.length + leads.length > 0 && html`<p class="acts">${actions.map((/** @type {any} */ action) => html`<${Button} key=${action.do} kind="primary" onClick=${() => attempt(() => EXPLAINED[action.do].act(endpoint), EXPLAINED[action.do].done)}>${action.title}<//>`)}${leads.map((/** @type {any} */ action) => html`<a key=${action.do} class="button" href=${href(leadTo(endpoint, action.do))}>${action.title}</a>`)}</p>`}
  <//>`;
}

/** @param {{minMs: number, maxMs: number} | null | undefined} range @param {boolean} isBad */
function estimate(range, isBad) {
  if (range) return `${duration(range.minMs)} to ${duration(range.maxMs)}`;
  return isBad ? "unknown until this is solved" : "unknown: too few jobs ended lately";
}
