// The endpoints that wait for GPUs, in the order of their turns, and which workers would have to end for each of them.
import { html } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { count } from "../format.js";
import { Card } from "./card.js";
import { Due } from "./time.js";

/** @typedef {{id: string, endpoint: string | null, isBusy: boolean, idleEndAt: string | null}} Holder */
/** @typedef {{endpoint: string, need: string, typeId: string, free: number, missing: number, workers: Holder[]}} InLine */

/** More workers than these are folded. */
const SHOWN = 6;

/** @param {{waiting: string[], line: InLine[], named: (id: string) => any}} props */
export function GpuLine({ waiting, line, named }) {
  const found = new Map(line.map((one) => [one.endpoint, one]));
  return html`<${Card} title="Waiting for GPUs" note=${count(waiting.length)}><ol class="plain gpu-line">${waiting.map((id, at) => html`<${Waiting} key=${id} at=${at} endpoint=${named(id)} one=${found.get(id)} named=${named} />`)}</ol><//>`;
}

/** @param {{at: number, endpoint: Endpoint, one: InLine | undefined, named: (id: string) => any}} props */
function Waiting({ at, endpoint, one, named }) {
  const head = html`${at + 1}. <a href=${href(endpointPath(endpoint))}>${endpoint.name}</a>`;
  if (!one) return html`<li>${head} <span class="dim">waits for GPUs that this computer does not have now.</span></li>`;
  const { need, typeId, free, missing, workers } = one;
  const list = html`<ul class="plain">${workers.map((worker) => html`<li key=${worker.id}><${Held} worker=${worker} named=${named} /></li>`)}</ul>`;
  return html`<li>${head} <span class="dim">wants ${need} for each worker. ${free === 0 ? `No ${typeId} is free.` : `${count(free)} × ${typeId} ${free === 1 ? "is" : "are"} free.`} ${missing === 0 ? "It gets them at the next attempt." : `${count(missing)} more ${missing === 1 ? "has" : "have"} to come free.`}</span>
    ${workers.length > 0 && html`<p class="dim">${toEnd(workers.length, missing)}</p>${workers.length > SHOWN ? html`<details><summary>Show the workers</summary>${list}</details>` : list}`}</li>`;
}

/** Which workers would have to end. @param {number} workers @param {number} missing */
function toEnd(workers, missing) {
  if (workers === 1) return "This worker would have to end:";
  const gpus = missing === 1 ? "one GPU" : `${count(missing)} GPUs`;
  return `Of these ${count(workers)} workers, enough would have to end to free ${gpus}:`;
}

/** A worker that holds GPUs, and when it ends. @param {{worker: Holder, named: (id: string) => any}} props */
function Held({ worker, named }) {
  const owner = worker.endpoint && named(worker.endpoint);
  const path = owner && `${endpointPath(owner)}/workers/${encodeURIComponent(worker.id)}`;
  const state = worker.isBusy ? "busy" : worker.idleEndAt ? html`idle, ends <${Due} at=${worker.idleEndAt} late="now" /> if it gets no job` : "idle, stays";
  return html`${owner ? html`<a class="mono" href=${href(path)}>${worker.id}</a> of <a href=${href(endpointPath(owner))}>${owner.name}</a>` : html`<span class="mono">${worker.id}</span>`} <span class="dim">${state}</span>`;
}
