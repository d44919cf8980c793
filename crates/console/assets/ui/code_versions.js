// The versions of the code that was sent for an endpoint, and the way to run one of them.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { count, size } from "../format.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Button } from "./button.js";
import { Empty, Failed, Loading } from "./card.js";
import { Dialog } from "./dialog.js";
import { SureButton } from "./sure_button.js";
import { Age } from "./time.js";
import { attempt } from "./toast.js";

const READ_MS = 10000;
const HASH_CHARS = 12;
/** The variable in which `longshore deploy` names the code, for the program that runs it. */
const NAMED_IN = "LONGSHORE_CODE_VERSION";
/** Sent for a variable, it keeps the value that the server has. */
const MASK = "***";

/** Whether a template runs code that was sent. @param {Template} template */
export const isOfCode = (template) => Boolean(template.workdir?.startsWith("code:"));

/** @param {{template: Template, users: Endpoint[], onClose: () => void}} props `users`: the endpoints that run the template, one at least */
export function CodeVersions({ template, users, onClose }) {
  const [id, setId] = useState(users[0].id);
  const endpoint = users.find((user) => user.id === id) ?? users[0];
  const path = `/v1/code?endpoint=${encodeURIComponent(endpoint.id)}`;
  const { data, error } = useRead(path, READ_MS);
  const deploy = async (/** @type {any} */ version) => {
    const isDone = await attempt(() => api.json("POST", `/v1/endpoints/${encodeURIComponent(endpoint.id)}/deploy`, { body: { template: programOf(template, version) } }), `${endpoint.name} runs this code now, as a new version.`);
    refresh("/v1/endpoints");
    refresh("/v1/templates");
    if (isDone) onClose();
  };
  return html`<${Dialog} title=${`Code of ${template.name}`} wide onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Close<//>`}>
    ${users.length > 1 && html`<div class="field"><label for="code-endpoint">Endpoint</label><select id="code-endpoint" value=${endpoint.id} onChange=${(/** @type {any} */ event) => setId(event.target.value)}>${users.map((user) => html`<option key=${user.id} value=${user.id}>${user.name}</option>`)}</select>
      <p class="dim">Only this endpoint gets other code: it has a template of its own then.</p></div>`}
    <p class="dim">Workers end after their jobs, and others start with the code. The settings and the variables stay as they are; Restore, in the settings of the endpoint, brings back all of a version.</p>
    ${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(path)} />` : !data ? html`<${Loading} rows=${3} />` : data.length === 0 ? html`<${Empty}><p>No version of this code is kept.</p><//>` : html`<div class="table-box" tabindex="0"><table class="table">
      <thead><tr><th scope="col">Sent</th><th scope="col" class="opt2">Hash</th><th scope="col" class="num opt2">Files</th><th scope="col" class="num">Size</th><th scope="col"><span class="offscreen">Actions</span></th></tr></thead>
      <tbody>${data.map((/** @type {any} */ version) => html`<tr key=${version.hash}>
        <th scope="row"><${Age} at=${version.createdAt} /></th><td class="mono opt2" title=${version.hash}>${version.hash.slice(0, HASH_CHARS)}</td><td class="num opt2">${count(version.files)}</td><td class="num">${size(version.bytes)}</td>
        <td class="acts">${version.workdir === template.workdir ? html`<span class="tone-completed">runs now</span>` : may.change(endpoint.id) && html`<${SureButton} kind="quiet small" onClick=${() => deploy(version)}>Deploy this<//>`}</td>
      </tr>`)}</tbody></table></div>`}
  <//>`;
}

/**
 * What a deploy sends of the program: the code, and the variables as they are. A variable with a value, also with the name of a
 * secret, counts as one of the deploy, and the next deploy without it takes it out; the mask leaves it as it is.
 * @param {Template} template
 * @param {any} version
 */
function programOf(template, version) {
  const names = Object.keys(template.env ?? {});
  const env = Object.fromEntries(names.map((name) => [name, name === NAMED_IN ? version.hash : MASK]));
  return { workdir: version.workdir, ...(names.includes(NAMED_IN) && { env }) };
}
