// Credentials for registries of private container images.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { useEndpointList } from "../fleet.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Button } from "../ui/button.js";
import { Card, Empty, Failed, Loading } from "../ui/card.js";
import { Field, FormDialog } from "../ui/form_dialog.js";
import { useListSearch } from "../ui/list_search.js";
import { SureButton } from "../ui/sure_button.js";
import { TableWindow } from "../ui/table_window.js";
import { Age } from "../ui/time.js";
import { attempt, toast } from "../ui/toast.js";
import { UsedBy } from "../ui/used_by.js";

const PATH = "/v1/containerregistryauth";
const READ_MS = 10000;

export default function Registries() {
  const { data, error } = useRead(may.everything.value ? PATH : null, READ_MS);
  const templates = useRead(may.everything.value ? "/v1/templates" : null, READ_MS).data ?? [];
  const endpoints = useEndpointList(READ_MS).data ?? [];
  const usersOf = (/** @type {any} */ auth) => templates.filter((/** @type {Template} */ template) => template.containerRegistryAuthId === auth.id);
  const endpointsOf = (/** @type {any} */ auth) => {
    const ids = new Set(usersOf(auth).map((/** @type {Template} */ template) => template.id));
    return endpoints.filter((/** @type {Endpoint} */ endpoint) => ids.has(endpoint.templateId));
  };
  const search = useListSearch(data, "logins", "Name, id or template", (/** @type {any} */ auth) => `${auth.name} ${auth.id} ${usersOf(auth).map((/** @type {Template} */ template) => template.name).join(" ")}`);
  const [isMaking, setMaking] = useState(false);
  if (!may.everything.value) return html`<div class="head"><h1>Registries</h1></div><${Empty}><p>The registries are shown to a key that manages all endpoints.</p><//>`;
  const close = () => {
    setMaking(false);
    refresh(PATH);
  };
  const remove = (/** @type {any} */ auth) => attempt(async () => {
    await api.json("DELETE", `${PATH}/${encodeURIComponent(auth.id)}`);
    refresh(PATH);
  }, `${auth.name} is deleted.`);
  return html`<div class="head"><h1>Registries</h1><p class="dim">Logins for registries of private container images. A template names one; the password is never shown.</p>
      <div class="acts"><${Button} kind="primary" icon="plus" onClick=${() => setMaking(true)}>Add a login<//></div></div>
    <${Card} title="Logins" note=${search.note} flush>
      ${search.field}
      ${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(PATH)} />` : !data ? html`<${Loading} rows=${3} />` : data.length === 0 ? html`<${Empty}><p>No login is here. Images of public registries need none.</p><//>` : search.shown.length === 0 ? search.none : html`<div class="table-box"><table class="table">
        <thead><tr><th scope="col">Name</th><th scope="col">Used by templates</th><th scope="col" class="opt2">Used by endpoints</th><th scope="col" class="opt">Made</th><th scope="col" class="mono opt2">Id</th><th scope="col"><span class="offscreen">Actions</span></th></tr></thead>
        <tbody><${TableWindow} rows=${search.shown.map((/** @type {any} */ auth) => html`<tr key=${auth.id}>
          <th scope="row">${auth.name}</th><td>${usersOf(auth).map((/** @type {Template} */ template) => template.name).join(", ") || html`<span class="dim">no template</span>`}</td><td class="opt2"><${UsedBy} endpoints=${endpointsOf(auth)} /></td>
          <td class="dim opt"><${Age} at=${auth.createdAt} /></td><td class="mono dim opt2">${auth.id}</td>
          <td class="acts">${usersOf(auth).length > 0
            ? html`<${Button} kind="quiet small danger" label=${`Delete ${auth.name}`} disabled why=${`The template ${usersOf(auth)[0].name} uses it.`}>Delete<//>`
            : html`<${SureButton} kind="quiet small danger" onClick=${() => remove(auth)}>Delete<//>`}</td>
        </tr>`)} /></tbody></table></div>`}
    <//>
    ${isMaking && html`<${Make} onClose=${close} />`}`;
}

/** @param {{onClose: () => void}} props */
function Make({ onClose }) {
  const [name, setName] = useState("");
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const send = async () => {
    await api.json("POST", PATH, { body: { name: name.trim(), username, password } });
    toast(`${name.trim()} is kept. Choose it in a template.`);
    onClose();
  };
  return html`<${FormDialog} title="Add a login" action="Keep the login" onSend=${send} onClose=${onClose} isUnsaved=${`${name}${username}${password}` !== ""}>
    <${Field} id="registry-name" label="Name" value=${name} onInput=${setName} autofocus placeholder="company registry" />
    <${Field} id="registry-user" label="User name" value=${username} onInput=${setUsername} />
    <${Field} id="registry-password" label="Password or token" type="password" value=${password} onInput=${setPassword} help="Kept sealed, if the server has a key for it, and never shown again." />
  <//>`;
}
