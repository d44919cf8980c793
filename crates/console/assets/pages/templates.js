// Templates: what workers are started with, which endpoints use each, and the names of their variables.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { useEndpointList } from "../fleet.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Button } from "../ui/button.js";
import { Card, Empty, Failed, Loading } from "../ui/card.js";
import { CodeVersions, isOfCode } from "../ui/code_versions.js";
import { Dialog } from "../ui/dialog.js";
import { useListSearch } from "../ui/list_search.js";
import { SureButton } from "../ui/sure_button.js";
import { TableWindow } from "../ui/table_window.js";
import { TemplateForm } from "../ui/template_form.js";
import { Viewer } from "../ui/viewer.js";
import { Age } from "../ui/time.js";
import { attempt } from "../ui/toast.js";
import { UsedBy, whyInUse } from "../ui/used_by.js";

const PATH = "/v1/templates";
const READ_MS = 10000;

export default function Templates() {
  const { data, error } = useRead(may.readsTemplates.value ? PATH : null, READ_MS);
  const endpoints = useEndpointList(READ_MS).data ?? [];
  const [opened, setOpened] = useState(/** @type {any} */ (null));
  const [coded, setCoded] = useState(/** @type {any} */ (null));
  const [formed, setFormed] = useState(/** @type {{template?: any} | null} */ (null));
  const close = () => {
    setFormed(null);
    refresh(PATH);
  };
  const search = useListSearch(data, "templates", "Name, image, command, variable or id", (/** @type {Template} */ template) => `${template.name} ${template.id} ${startsWords(template)} ${Object.keys(template.env ?? {}).join(" ")}`);
  if (!may.readsTemplates.value) return html`<div class="head"><h1>Templates</h1></div><${Empty}><p>This key may not read templates.</p><//>`;
  const usersOf = (/** @type {Template} */ template) => endpoints.filter((/** @type {Endpoint} */ endpoint) => endpoint.templateId === template.id);
  return html`<div class="head"><h1>Templates</h1><p class="dim">What workers are started with: an image or a command, and variables. A change of these replaces the workers of all its endpoints.</p>
      <div class="acts">${may.everything.value && html`<${Button} kind="primary" icon="plus" onClick=${() => setFormed({})}>Make a template<//>`}</div></div>
    <${Card} title="Templates" note=${search.note} flush>
      ${search.field}
      ${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(PATH)} />` : !data ? html`<${Loading} rows=${4} />` : data.length === 0 ? html`<${Empty}><p>No template is here. <span class="mono">longshore deploy</span> makes one for each endpoint.</p><//>` : search.shown.length === 0 ? search.none : html`<div class="table-box"><table class="table">
        <thead><tr><th scope="col">Name</th><th scope="col" class="opt2">Starts</th><th scope="col" class="opt">Variables</th><th scope="col" class="opt2">Used by</th><th scope="col" class="opt">Made</th><th scope="col"><span class="offscreen">Actions</span></th></tr></thead>
        <tbody><${TableWindow} rows=${search.shown.map((/** @type {Template} */ template) => html`<${TemplateRow} key=${template.id} template=${template} users=${usersOf(template)} onOpen=${() => setOpened(template)} onCode=${() => setCoded(template)} onChange=${() => setFormed({ template })} />`)} /></tbody></table></div>`}
    <//>
    ${opened && html`<${Dialog} title=${opened.name} wide onClose=${() => setOpened(null)} actions=${html`<${Button} onClick=${() => setOpened(null)}>Close<//>`}><${Viewer} title="Template" text=${JSON.stringify(opened, null, 2)} name=${opened.name} /><//>`}
    ${coded && html`<${CodeVersions} template=${coded} users=${usersOf(coded)} onClose=${() => setCoded(null)} />`}
    ${formed && html`<${TemplateForm} template=${formed.template} users=${formed.template ? usersOf(formed.template) : []} onClose=${close} />`}`;
}

/** What a template starts, in a line. @param {Template} template */
function startsWords(template) {
  const words = [...(template.dockerEntrypoint ?? []), ...(template.dockerStartCmd ?? [])].join(" ");
  if (template.workdir?.startsWith("code:")) return words ? `deployed code: ${words}` : "deployed code";
  return template.imageName ? `${template.imageName}${words ? ` ${words}` : ""}` : words || "–";
}

/**
 * Whether the key may change a template: all endpoints that use it must be the key's own. To a key that does not read all of them, the
 * server lists only those templates.
 * @param {Endpoint[]} users
 */
const mayChange = (users) => may.everything.value || !may.everyRead.value || (users.length > 0 && users.every(({ id }) => may.change(id)));

/** @param {{template: Template, users: Endpoint[], onOpen: () => void, onCode: () => void, onChange: () => void}} props */
function TemplateRow({ template, users, onOpen, onCode, onChange }) {
  const remove = () => attempt(async () => {
    await api.json("DELETE", `${PATH}/${encodeURIComponent(template.id)}`);
    refresh(PATH);
  }, `${template.name} is deleted.`);
  const names = Object.keys(template.env ?? {});
  return html`<tr>
    <th scope="row">${template.name}<span class="on-phone dim">for <${UsedBy} endpoints=${users} /></span></th><td class="mono one-line opt2" title=${startsWords(template)}>${startsWords(template)}</td>
    <td class="mono dim opt one-line">${names.slice(0, 3).join(" ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}${names.length === 0 ? "–" : ""}</td>
    <td class="opt2"><${UsedBy} endpoints=${users} /></td><td class="dim opt"><${Age} at=${template.createdAt} /></td>
    <td class="acts wraps" data-leads><${Button} kind="quiet small" label=${`Show ${template.name}`} onClick=${onOpen}>Show<//>
      ${isOfCode(template) && users.length > 0 && html`<${Button} kind="quiet small" label=${`Code of ${template.name}`} onClick=${onCode}>Code<//>`}
      ${mayChange(users) && html`<${Button} kind="quiet small" label=${`Change ${template.name}`} onClick=${onChange}>Change<//>`}
      ${may.everything.value && (users.length > 0
        ? html`<${Button} kind="quiet small danger" label=${`Delete ${template.name}`} disabled why=${whyInUse(users)}>Delete<//>`
        : html`<${SureButton} kind="quiet small danger" onClick=${remove}>Delete<//>`)}</td>
  </tr>`;
}
