// What an external worker needs: the endpoint's token and addresses as variables, shown when asked.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { Button } from "./button.js";
import { Card } from "./card.js";
import { CodeLine } from "./copy.js";
import { quotedForShell, serverUrl } from "./copy_as.js";

/** @param {{endpoint: Endpoint}} props */
export default function WorkerToken({ endpoint }) {
  const [env, setEnv] = useState(/** @type {Record<string, string> | null} */ (null));
  const [error, setError] = useState("");
  const path = `/v1/endpoints/${encodeURIComponent(endpoint.id)}/worker-token`;
  const show = async () => {
    try {
      setEnv((await api.json("POST", path)).env);
      setError("");
    } catch (failed) {
      setError(api.said(failed));
    }
  };
  const lines = env && Object.entries(env).map(([name, value]) => `export ${name}=${quotedForShell(value)}`).join("\n");
  return html`<${Card} title="Worker token" actions=${env && html`<${Button} kind="quiet small" onClick=${() => setEnv(null)}>Hide<//>`}><div class="form worker-token">
    <p>You start the workers of this endpoint, on any computer that reaches this server. With these variables, a handler finds its jobs. They hold a token that takes jobs of this endpoint and nothing else.</p>
    ${lines ? html`<${CodeLine} text=${lines} /><p class="dim">Give each worker an id of its own in <span class="mono">RUNPOD_POD_ID</span>; asking again makes a new id with the same token.</p>` : html`<p><${Button} onClick=${show}>Show the variables<//></p>`}
    ${error && html`<p class="field-error" role="alert">${error}</p>`}
    <p>In a terminal:</p><${CodeLine} text=${`curl -X POST ${quotedForShell(serverUrl() + path)} -H "Authorization: Bearer $LONGSHORE_API_KEY"`} />
  </div><//>`;
}
