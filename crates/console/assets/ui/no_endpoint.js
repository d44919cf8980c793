// What stands in the place of an endpoint that is being read, or cannot be.
import { html } from "../dom.js";
import { said } from "../api.js";
import { href } from "../router.js";
import { Icon } from "../icons.js";
import { refresh } from "../store.js";
import { Failed, Loading } from "./card.js";

/** The place of an endpoint that is being read. @param {{name: string}} props */
export function EndpointLoading({ name }) {
  return html`<div class="page-head"><div class="head"><h1>${name}</h1></div><div class="tabs"><span class="tab-place"></span></div></div><${Loading} rows=${8} />`;
}

/** An endpoint that cannot be shown: it is not there, or could not be read. @param {{name: string, error: any}} props */
export function NoEndpoint({ name, error }) {
  const again = () => {
    refresh("/v1/endpoints/");
    refresh("/v2/");
  };
  if (error.status !== 404) return html`<h1>${name}</h1><${Failed} error=${error} onRetry=${again} />`;
  return html`<h1>No endpoint has this name</h1><div class="failed-part" role="alert"><${Icon} name="warn" /><p><span class="mono">${name}</span>: ${said(error)}</p><a class="button" href=${href("/endpoints")}>All endpoints</a></div>`;
}
