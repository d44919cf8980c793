// Making an endpoint: what its workers are, what they need, how many there are; then its first worker and job.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { go, place } from "../router.js";
import { bodyOf, commandOf, emptyDraft, faultOf, gpuNews, hasGpus, scalingWords } from "../new_endpoint.js";
import { Ahead, Later } from "../load.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Button } from "../ui/button.js";
import { Card, Empty, Failed, LoadingPage } from "../ui/card.js";
import { CodeLine } from "../ui/copy.js";
import { Field } from "../ui/form_dialog.js";
import { toast } from "../ui/toast.js";
import { useUnsaved } from "../ui/unsaved.js";
import { FolderSource, SourcePart } from "../ui/worker_source.js";

/** @typedef {import("../new_endpoint.js").Draft} Draft */
/** @typedef {{draft: Draft, onSet: (changes: Partial<Draft>) => void}} PartProps */

const READ_MS = 10000;

export default function NewEndpoint() {
  const made = place.value.query.get("made");
  if (made) return html`<${Later} key=${made} address="./ui/first_start.js" props=${{ name: made }} />`;
  const head = html`<div class="head"><h1>New endpoint</h1><p class="dim">A queue of jobs with the workers that run them.</p></div>`;
  if (!may.everything.value) return html`${head}<${Empty}><p>Only a key that manages all endpoints may make one.</p><//>`;
  return html`${head}<${WithMachines} />`;
}

function WithMachines() {
  const { data, error } = useRead("/v1/machines", READ_MS);
  if (error && !data) return html`<${Failed} error=${error} onRetry=${() => refresh("/v1/machines")} />`;
  if (data) return html`<${Form} machines=${data} />`;
  return html`<div class="wizard"><div class="stack"><${LoadingPage} cards=${["What workers are", "Its names", "Number of workers"]} /></div><div class="stack wizard-review"><${LoadingPage} cards=${["Review"]} /></div></div>`;
}

/** @param {{machines: Machine[]}} props */
function Form({ machines }) {
  const [first] = useState(() => emptyDraft(machines));
  const [draft, setDraft] = useState(first);
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const onSet = (/** @type {Partial<Draft>} */ changes) => {
    setDraft((before) => ({ ...before, ...changes }));
    setError("");
  };
  const { question } = useUnsaved(JSON.stringify({ ...draft, source: "" }) !== JSON.stringify({ ...first, source: "" }));
  const part = { draft, onSet };
  const source = html`<${SourcePart} ...${part} hasDocker=${machines.some(({ providers }) => providers.includes("docker"))} />`;
  if (draft.source === "folder") return html`<div class="stack">${source}<${FolderSource} />${question && html`<div class="settings-bar">${question}</div>`}</div>`;
  const fault = faultOf(draft, machines);
  const make = async () => {
    setBusy(true);
    try {
      const made = await api.json("POST", "/v1/endpoints", { body: bodyOf(draft) });
      refresh("/v1/endpoints");
      toast(`${made.name} is made.`);
      go(`/new-endpoint?made=${encodeURIComponent(made.id)}`, { replace: true });
    } catch (failed) {
      setError(api.said(failed));
      setBusy(false);
    }
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!fault && !isBusy) void make();
  };
  return html`<form class="wizard" onSubmit=${submit}>
    <div class="stack">${source}<${NamePart} ...${part} />${hasGpus(draft) && html`<${GpuPart} ...${part} machines=${machines} />`}<${ScalingPart} ...${part} /></div>
    <div class="stack wizard-review"><${Review} draft=${draft} /></div><${Ahead} address="./ui/first_start.js" />
    <div class="settings-bar">${question ?? html`
      <span class="grow" role=${error ? "alert" : "status"}>${error ? html`<span class="field-error">${error}</span>` : html`<span class=${fault ? "" : "dim"}>${fault || "Nothing is missing."}</span>`}</span>
      <${Button} kind="primary" type="submit" disabled=${fault !== "" || isBusy} why=${fault}>Make the endpoint<//>`}
    </div>
  </form>`;
}

/** @param {PartProps} props */
const NamePart = ({ draft, onSet }) => html`<${Card} title="Its names"><div class="settings-grid">
  <${Field} id="new-name" label="Name" value=${draft.name} onInput=${(/** @type {string} */ name) => onSet({ name })} placeholder="SDXL Turbo" maxlength="191" />
  <${Field} id="new-slug" label="Slug" value=${draft.slug} onInput=${(/** @type {string} */ slug) => onSet({ slug })} placeholder="none" help=${html`A readable name in addresses: <span class="mono">/v2/${draft.slug.trim() || "sdxl-turbo"}/run</span>`} />
</div><//>`;

/** @param {PartProps & {machines: Machine[]}} props */
function GpuPart({ draft, onSet, machines }) {
  const gpus = machines.flatMap((machine) => machine.gpus);
  const types = [...new Set(gpus.map(({ typeId }) => typeId))];
  const { isImpossible, isWaiting, text } = gpuNews(draft, machines);
  const toggle = (/** @type {string} */ type) => onSet({ gpuTypes: draft.gpuTypes.includes(type) ? draft.gpuTypes.filter((one) => one !== type) : [...draft.gpuTypes, type] });
  const of = (/** @type {string} */ type) => gpus.filter(({ typeId }) => typeId === type);
  return html`<${Card} title="GPUs"><div class="form"><div class="settings-grid">
    <${Field} id="new-gpus" label="GPUs of each worker" inputmode="numeric" value=${draft.gpuCount} onInput=${(/** @type {string} */ gpuCount) => onSet({ gpuCount })} />
    ${types.length > 0 && html`<fieldset><legend>Types; any, if none is chosen</legend><div class="checks">${types.map((type) => html`<label key=${type}><input type="checkbox" checked=${draft.gpuTypes.includes(type)} onChange=${() => toggle(type)} />${type} <span class="dim">${of(type).filter(({ worker }) => !worker).length} of ${of(type).length} free now</span></label>`)}</div></fieldset>`}
  </div><p role="status" class=${isImpossible ? "tone-failed" : isWaiting ? "tone-queued" : ""}>${text}</p></div><//>`;
}

/** @param {PartProps} props */
const ScalingPart = ({ draft, onSet }) => html`<${Card} title="Number of workers"><div class="form"><div class="settings-grid of-numbers">
  <${Field} id="new-min" label="At all times" inputmode="numeric" value=${draft.workersMin} onInput=${(/** @type {string} */ workersMin) => onSet({ workersMin })} />
  <${Field} id="new-max" label="At most" inputmode="numeric" value=${draft.workersMax} onInput=${(/** @type {string} */ workersMax) => onSet({ workersMax })} />
  <${Field} id="new-idle" label="Idle for at most, in s" inputmode="numeric" value=${draft.idleTimeout} onInput=${(/** @type {string} */ idleTimeout) => onSet({ idleTimeout })} />
</div><p role="status">${scalingWords(draft)}</p></div><//>`;

/** The request, and the command that sends the same. @param {{draft: Draft}} props */
function Review({ draft }) {
  const [isJson, setJson] = useState(false);
  const body = bodyOf(draft);
  const actions = html`<span class="switch" role="group" aria-label="Form of the review"><button type="button" aria-pressed=${!isJson} onClick=${() => setJson(false)}>Command</button><button type="button" aria-pressed=${isJson} onClick=${() => setJson(true)}>JSON</button></span>`;
  return html`<${Card} title="Review" actions=${actions}><div class="form">
    <p class="dim">${isJson ? html`This is sent to <span class="mono">POST /v1/endpoints</span>.` : "This makes the same endpoint in a terminal."}</p>
    <${CodeLine} text=${isJson ? JSON.stringify(body, null, 2) : commandOf(body)} />
  </div><//>`;
}
