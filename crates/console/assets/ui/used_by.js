// The endpoints that use a resource, as links.
import { html } from "../dom.js";
import { endpointPath, href } from "../router.js";

const SHOWN_MAX = 4;

/** @param {{endpoints: Endpoint[]}} props */
export function UsedBy({ endpoints }) {
  if (endpoints.length === 0) return html`<span class="dim">no endpoint</span>`;
  const shown = endpoints.slice(0, SHOWN_MAX);
  return html`${shown.map((endpoint, at) => html`${at > 0 && ", "}<a key=${endpoint.id} href=${href(endpointPath(endpoint))}>${endpoint.name}</a>`)}${endpoints.length > SHOWN_MAX && html` <span class="dim">and ${endpoints.length - SHOWN_MAX} more</span>`}`;
}

/** Why a resource cannot be deleted, or an empty text. @param {Endpoint[]} endpoints those that use it */
export const whyInUse = (endpoints) =>
  endpoints.length === 0 ? "" : `${endpoints[0].name}${endpoints.length > 1 ? ` and ${endpoints.length - 1} more` : ""} ${endpoints.length > 1 ? "use" : "uses"} it.`;
