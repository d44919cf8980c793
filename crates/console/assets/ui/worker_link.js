// A worker's id as a link to its page; for a key that may not see the workers, the id alone.
import { html } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { shortId } from "../format.js";
import { may } from "../session.js";

/** @param {{endpoint: Endpoint, id: string}} props */
export function WorkerLink({ endpoint, id }) {
  if (!may.read(endpoint.id)) return html`<span class="mono" title=${id}>${shortId(id)}</span>`;
  return html`<a class="mono" href=${workerHref(endpoint, id)} title=${id}>${shortId(id)}</a>`;
}

/** @param {Endpoint} endpoint @param {string} id */
const workerHref = (endpoint, id) => href(`${endpointPath(endpoint)}/workers/${encodeURIComponent(id)}`);
