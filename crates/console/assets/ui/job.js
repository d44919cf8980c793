// One request, as a page or beside the list: why it waits or failed, its life, its stream, what went in and came out, and its worker's log.
import { html } from "../dom.js";
import * as api from "../api.js";
import { endpointPath, href } from "../router.js";
import { duration, timeOfId } from "../format.js";
import { useEndpoint } from "../fleet.js";
import { ENDED } from "../icons.js";
import { may } from "../session.js";
import { Button } from "./button.js";
import { Empty, Failed, Loading, LoadingPage } from "./card.js";
import { CopyButton } from "./copy.js";
import { CopyAs } from "./copy_as.js";
import { useOne } from "./dialog.js";
import { Details } from "./job_details.js";
import { JobLog } from "./job_log.js";
import { JobView, useFollow, useLife, useLifeAhead } from "./job_view.js";
import { Webhooks } from "./job_webhooks.js";
import { Payload } from "./payload.js";
import { NoEndpoint } from "./no_endpoint.js";
import { JobState } from "./state.js";
import { Age } from "./time.js";
import { attempt } from "./toast.js";
import { useKeys } from "./keys.js";
import { SureButton } from "./sure_button.js";

/** A larger input is not copied: it is in a file by `Download`. */
const COPIED_BYTES_MAX = 1000000;
/** How long a job without a policy is kept. */
const TTL_MS_DEFAULT = 86400000;

/** A job as a page, or beside the list. @param {{name: string, id: string, isBeside?: boolean}} props `name`: the id or slug of its endpoint */
export default function Job({ name, id, isBeside = false }) {
  const { endpoint, error } = useEndpoint(name);
  // A key for some endpoints knows their ids: of which one this is the slug, its record says. A key for jobs reads no record.
  const isNameless = may.requestsAny.value && !may.readsAny.value;
  if (may.requests(endpoint?.id ?? name) || isNameless) return html`<${Followed} name=${name} id=${id} isBeside=${isBeside} />`;
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  return html`<${Title} id=${id} isBeside=${isBeside} />${endpoint ? html`<${Empty}><p>This key may not read the jobs.</p><//>` : html`<${Loading} rows=${8} />`}`;
}

/** @param {{id: string, isBeside: boolean}} props */
const Title = ({ id, isBeside }) => html`<${isBeside ? "h2" : "h1"} class="job-title">${id}<//>`;

/** A job that the key may read. @param {{name: string, id: string, isBeside: boolean}} props */
function Followed({ name, id, isBeside }) {
  const { endpoint, isReadable } = useEndpoint(name);
  const { follow, again } = useFollow(name, id);
  const record = follow.record.value;
  const error = follow.error.value;
  useLifeAhead(error && !record ? undefined : endpoint, id);
  const title = html`<${Title} id=${id} isBeside=${isBeside} />`;
  if (!record && error) return html`${title}${error.status === 404 ? html`<${Gone} name=${name} id=${id} endpoint=${endpoint} />` : html`<${Failed} error=${error} onRetry=${again} />`}`;
  if (!record || !endpoint) return html`${title}<div class="wide"><div class="stack"><${LoadingPage} cards=${["Life", "Output", "Input"]} /></div><div class="stack"><${LoadingPage} cards=${["Details"]} /></div></div>`;
  return html`<${Shown} title=${title} endpoint=${endpoint} isReadable=${isReadable} record=${record} follow=${follow} onAgain=${again} />`;
}

/** A job that the server no longer has. @param {{name: string, id: string, endpoint: Endpoint}} props */
function Gone({ name, id, endpoint }) {
  const made = timeOfId(id);
  const kept = endpoint?.resultRetentionMs ? ` Finished jobs of this endpoint are kept ${duration(endpoint.resultRetentionMs)}.` : " Finished jobs are deleted when their retention ends.";
  return html`<${Empty}><h2>This job is not here</h2><p>No job of ${endpoint?.name ?? name} has this id: it was deleted, or never existed.${kept}</p>${made !== null && made <= Date.now() && html`<p>By its id, it was made <${Age} at=${made} />.</p>`}<a class="button" href=${href(`${endpointPath({ id: name })}/requests`)}>Requests of this endpoint</a><//>`;
}

/** @param {{title: any, endpoint: Endpoint, isReadable: boolean, record: {text: string, job: Job}, follow: import("../job_follow.js").JobFollow, onAgain: () => void}} props */
function Shown({ title, endpoint, isReadable, record, follow, onAgain }) {
  const { life, job } = useLife(endpoint, record, follow);
  return html`<div class="page-job stack">
    <${Head} title=${title} endpoint=${endpoint} job=${job} onAgain=${onAgain} />
    <div class="wide">
      <div class="stack">
        <${JobView} endpoint=${endpoint} job=${job} text=${record.text} follow=${follow} onAgain=${onAgain} />
        ${life && html`<${Payload} of="input" endpoint=${endpoint} job=${job} bytes=${job.inputBytes ?? 0} />`}
        ${isReadable && job.workerId && html`<${JobLog} endpoint=${endpoint} job=${job} />`}
      </div>
      <div class="stack"><${Details} endpoint=${endpoint} job=${job} /><${Webhooks} endpoint=${endpoint} job=${job} /></div>
    </div>
  </div>`;
}

/** What a job came with that is not its endpoint's, as JSON text of a policy, or "". Its webhook is not known: addresses can hold secrets. @param {Job} job */
function policyOf({ policy }, /** @type {Endpoint} */ endpoint) {
  const { executionTimeout, ttl, lowPriority } = policy ?? {};
  const set = { ...(executionTimeout && executionTimeout !== endpoint.executionTimeoutMs && { executionTimeout }), ...(ttl && ttl !== TTL_MS_DEFAULT && { ttl }), ...(lowPriority && { lowPriority }) };
  return Object.keys(set).length > 0 ? JSON.stringify(set) : "";
}

/** @param {{title: any, endpoint: Endpoint, job: Job, onAgain: () => void}} props */
function Head({ title, endpoint, job, onAgain }) {
  const mayAct = may.jobs(endpoint.id);
  const isLive = !ENDED.includes(job.status);
  const canRetry = job.status === "FAILED" || job.status === "TIMED_OUT";
  const path = `/v2/${encodeURIComponent(endpoint.id)}`;
  const cancel = () => attempt(() => api.json("POST", `${path}/cancel/${encodeURIComponent(job.id)}`), "The job is cancelled.");
  const policy = policyOf(job, endpoint);
  const call = async () => {
    const input = await api.text("GET", `${path}/jobs/${encodeURIComponent(job.id)}/input`);
    return { endpoint: endpoint.slug ?? endpoint.id, input, body: `{"input":${input}${policy && `,"policy":${policy}`}}`, route: job.mode === "sync" ? /** @type {const} */ ("runsync") : /** @type {const} */ ("run") };
  };
  const retry = useOne(async () => {
    if (await attempt(() => api.json("POST", `${path}/retry/${encodeURIComponent(job.id)}`), "The job is queued again.")) onAgain();
  });
  useKeys([
    ...(mayAct && canRetry ? [{ key: "r", does: "Retry the job", act: retry }] : []),
    ...(mayAct && isLive ? [{ key: "c", does: "Cancel the job: asks first", act: () => document.querySelector(".job-head .danger")?.dispatchEvent(new MouseEvent("click", { bubbles: true })) }] : []),
  ]);
  return html`<div class="head job-head">
    ${title}<${CopyButton} text=${job.id} label="Copy the id" kind="quiet" /><${JobState} status=${job.status} />
    <div class="acts">
      ${mayAct && canRetry && html`<${Button} kind="primary" icon="retry" onClick=${retry}>Retry<//>`}
      ${mayAct && html`<a class="button" href=${href(`${endpointPath(endpoint)}/playground?from=${encodeURIComponent(job.id)}`)}><span>Run again<span class="opt2"> with changes</span></span></a>`}
      ${(job.inputBytes ?? 0) <= COPIED_BYTES_MAX && may.requests(endpoint.id) && html`<${CopyAs} call=${call} hasCommand=${policy === ""} />`}
      ${mayAct && isLive && html`<${SureButton} onClick=${cancel}>Cancel job<//>`}
    </div>
  </div>`;
}
