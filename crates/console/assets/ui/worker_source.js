// The part of a new endpoint that says what its workers are started from.
import { html, useRef } from "../dom.js";
import { said } from "../api.js";
import { endpointPath, href } from "../router.js";
import { VARIABLE } from "../new_endpoint.js";
import { useRead } from "../store.js";
import { Alert, Card } from "./card.js";
import { CodeLine } from "./copy.js";
import { quotedForShell, serverUrl } from "./copy_as.js";
import { Field } from "./form_dialog.js";

/** @typedef {import("../pages/new_endpoint.js").PartProps} PartProps */

const READ_MS = 30000;

const SOURCES = /** @type {{source: import("../new_endpoint.js").Source, word: string, text: string}[]} */ ([
  { source: "folder", word: "A folder", text: "Code on your computer, sent by the command line." },
  { source: "command", word: "A command", text: "Workers are processes of this server." },
  { source: "image", word: "An image", text: "Workers are containers of this server's Docker." },
  { source: "template", word: "A template", text: "One that is here already." },
  { source: "external", word: "External workers", text: "You start them, on any computer that reaches this server." },
]);

/** @param {PartProps & {hasDocker: boolean}} props */
export function SourcePart({ draft, onSet, hasDocker }) {
  return html`<${Card} title="What workers are"><div class="form">
    <fieldset><legend class="offscreen">What workers are started from</legend><div class="wizard-sources">${SOURCES.map(({ source, word, text }) => {
      const isOff = source === "image" && !hasDocker;
      return html`<label class="choice" key=${source}><input type="radio" name="source" value=${source} disabled=${isOff} checked=${draft.source === source} onChange=${() => onSet({ source })} /><span><b>${word}</b>${isOff ? "This server has found no Docker." : text}</span></label>`;
    })}</div></fieldset>
    ${draft.source === "template" ? html`<${TemplateFields} draft=${draft} onSet=${onSet} hasDocker=${hasDocker} />`
      : draft.source === "external" ? html`<p>Once it is made, you get the variables that a worker needs.</p>`
      : draft.source !== "folder" && html`<${ProgramFields} draft=${draft} onSet=${onSet} />`}
  </div><//>`;
}

/** How code on another computer becomes an endpoint; it is shown when it is there. */
export function FolderSource() {
  const endpoints = useRead("/v1/endpoints", READ_MS).data;
  const known = useRef(/** @type {Set<string> | null} */ (null));
  if (endpoints) known.current ??= new Set(endpoints.map((/** @type {any} */ one) => one.id));
  const fresh = (endpoints ?? []).filter((/** @type {any} */ one) => known.current && !known.current.has(one.id));
  return html`${fresh.map((/** @type {any} */ one) => html`<${Alert} key=${one.id} tone="good" icon="check" title=${`${one.name} is here`} actions=${html`<a class="button" href=${href(`/new-endpoint?made=${one.id}`)}>Watch its first start</a><a class="button" href=${href(endpointPath(one))}>Open</a>`}><p>It was made since you opened this page.</p><//>`)}
    <${Card} title="In a terminal"><div class="form">
      <p>Once for each computer: where this server is, and a key. The command asks for the key.</p><${CodeLine} text=${`longshore login --url ${quotedForShell(serverUrl())}`} />
      <p>A folder to begin with, if you have none:</p><${CodeLine} text="longshore init hello my-worker" />
      <p>This sends the folder, makes its endpoint, and runs its <span class="mono">test_input.json</span>:</p><${CodeLine} text="longshore deploy my-worker" />
      <p class="dim">This page shows the endpoint as soon as it is there. A second deploy of the folder makes a new version of the same endpoint.</p>
    </div><//>`;
}

/** @param {PartProps & {hasDocker: boolean}} props */
function TemplateFields({ draft, onSet, hasDocker }) {
  const { data, error } = useRead("/v1/templates", READ_MS);
  const templates = data ?? [];
  const chosen = templates.find((/** @type {any} */ one) => one.id === draft.template);
  const providers = [["process", "processes of this server"], ...(hasDocker ? [["docker", "containers"]] : []), ["external", "started elsewhere, by you"]];
  const choose = (/** @type {string} */ id) => {
    const template = templates.find((/** @type {any} */ one) => one.id === id);
    const hasCommand = template && (template.dockerStartCmd.length > 0 || template.dockerEntrypoint.length > 0 || template.workdir);
    onSet({ template: id, provider: !template || hasCommand ? "process" : hasDocker && template.imageName ? "docker" : "external" });
  };
  if (error && !data) return html`<p class="field-error" role="alert">${said(error)}</p>`;
  if (data && templates.length === 0) return html`<p>No template is here yet. Choose another source: it makes one.</p>`;
  return html`<div class="settings-grid">
      <${Choice} id="new-template" label="Template" value=${draft.template} onChoose=${choose} choices=${[["", "Choose one"], ...templates.map((/** @type {any} */ one) => [one.id, one.name])]} />
      <${Choice} id="new-provider" label="Its workers are" value=${draft.provider} onChoose=${(/** @type {string} */ provider) => onSet({ provider })} choices=${providers} />
    </div>
    ${chosen && html`<dl class="kv">${chosen.imageName && html`<dt>Image</dt><dd class="mono">${chosen.imageName}</dd>`}<dt>Command</dt><dd class="mono">${[...chosen.dockerEntrypoint, ...chosen.dockerStartCmd].join(" ") || "none of its own"}</dd>${chosen.workdir && html`<dt>Folder</dt><dd class="mono">${chosen.workdir}</dd>`}<dt>Variables</dt><dd class="mono">${Object.keys(chosen.env).join(" ") || "none"}</dd></dl>`}`;
}

/** @param {PartProps} props */
function ProgramFields({ draft, onSet }) {
  const registries = useRead("/v1/containerregistryauth", READ_MS).data ?? [];
  const secrets = (useRead("/v1/secrets", READ_MS).data ?? []).filter((/** @type {any} */ one) => VARIABLE.test(one.name));
  const volumes = useRead("/v1/networkvolumes", READ_MS).data ?? [];
  const isImage = draft.source === "image";
  const command = html`<${Field} id="new-command" label="Command" class="mono" value=${draft.command} onInput=${(/** @type {string} */ command) => onSet({ command })} placeholder=${isImage ? "the image's own" : "python -u handler.py"} help="Words as in a shell. Nothing is expanded." />`;
  return html`<div class="settings-grid">
      ${isImage && html`<${Field} id="new-image" label="Image" class="mono" value=${draft.image} onInput=${(/** @type {string} */ image) => onSet({ image })} placeholder="registry.example/team/worker:1.2" />`}
      ${command}
      ${isImage
        ? html`<${Choice} id="new-registry" label="Login of the registry" value=${draft.registry} onChoose=${(/** @type {string} */ registry) => onSet({ registry })} choices=${[["", "none"], ...registries.map((/** @type {any} */ one) => [one.id, one.name])]} />`
        : html`<${Field} id="new-workdir" label="Folder" class="mono" value=${draft.workdir} onInput=${(/** @type {string} */ workdir) => onSet({ workdir })} placeholder="/srv/worker" help="Where it runs, on the server's computer. Its files are there for the worker." />`}
    </div>
    <div class="field"><label for="new-env">Variables</label><textarea id="new-env" class="mono" rows="3" spellcheck=${false} placeholder="MODEL=small" value=${draft.env} aria-describedby="new-env-help" onInput=${(/** @type {any} */ event) => onSet({ env: event.target.value })}></textarea><p class="dim" id="new-env-help">One NAME=value a line, as in an .env file. The console never shows the values again.</p></div>
    ${secrets.length > 0 && html`<${Checks} legend="Secrets, each as a variable of its name" all=${secrets.map((/** @type {any} */ one) => [one.name, one.name])} chosen=${draft.secrets} onSet=${(/** @type {string[]} */ chosen) => onSet({ secrets: chosen })} />`}
    ${volumes.length > 0 && html`<${Checks} legend="Volumes" all=${volumes.map((/** @type {any} */ one) => [one.id, one.name])} chosen=${draft.volumes} onSet=${(/** @type {string[]} */ chosen) => onSet({ volumes: chosen })} />`}`;
}

/** @param {{id: string, label: string, value: string, choices: string[][], onChoose: (value: string) => void}} props */
const Choice = ({ id, label, value, choices, onChoose }) => html`<div class="field"><label for=${id}>${label}</label><select id=${id} value=${value} onChange=${(/** @type {any} */ event) => onChoose(event.target.value)}>${choices.map(([of, word]) => html`<option key=${of} value=${of}>${word}</option>`)}</select></div>`;

/** @param {{legend: string, all: string[][], chosen: string[], onSet: (chosen: string[]) => void}} props */
const Checks = ({ legend, all, chosen, onSet }) => html`<fieldset><legend>${legend}</legend><div class="checks">${all.map(([id, word]) => html`<label key=${id}><input type="checkbox" checked=${chosen.includes(id)} onChange=${() => onSet(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id])} /><span class="mono">${word}</span></label>`)}</div></fieldset>`;
