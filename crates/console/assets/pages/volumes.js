// Network volumes: folders that workers share and that outlive them.
import { html, useEffect, useState } from "../dom.js";
import * as api from "../api.js";
import { count, size } from "../format.js";
import { useEndpointList } from "../fleet.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Button } from "../ui/button.js";
import { Card, Empty, Failed, Loading } from "../ui/card.js";
import { DeleteByName } from "../ui/delete_by_name.js";
import { useListSearch } from "../ui/list_search.js";
import { TableWindow } from "../ui/table_window.js";
import { Field, FormDialog } from "../ui/form_dialog.js";
import { OvertakenChange, useTagged } from "../ui/overtaken.js";
import { Age } from "../ui/time.js";
import { toast } from "../ui/toast.js";
import { UsedBy, whyInUse } from "../ui/used_by.js";

const PATH = "/v1/networkvolumes";
const READ_MS = 10000;
/** How long the server keeps a measurement: the first read afterwards lets it measure again. */
const HOLDS_MS = 300000;
/** What is being measured is read after this time, then after twice as long each time. */
const MEASURING_MS = 1000;

export default function Volumes() {
  const { data, error } = useRead(may.everything.value ? PATH : null, READ_MS);
  const endpoints = useEndpointList(READ_MS).data ?? [];
  useMeasurements(data);
  const usersOf = (/** @type {Volume} */ volume) => endpoints.filter((/** @type {Endpoint} */ endpoint) => [endpoint.networkVolumeId, ...(endpoint.networkVolumeIds ?? [])].includes(volume.id));
  const search = useListSearch(data, "volumes", "Name, id, data center or endpoint", (/** @type {Volume} */ volume) => `${volume.name} ${volume.id} ${volume.dataCenterId ?? ""} ${usersOf(volume).map((/** @type {any} */ { name }) => name).join(" ")}`);
  const [isMaking, setMaking] = useState(false);
  const [changed, setChanged] = useState(/** @type {any} */ (null));
  const [deleted, setDeleted] = useState(/** @type {any} */ (null));
  if (!may.everything.value) return html`<div class="head"><h1>Volumes</h1></div><${Empty}><p>The volumes are shown to a key that manages all endpoints.</p><//>`;
  const close = () => {
    setMaking(false);
    setChanged(null);
    setDeleted(null);
    refresh(PATH);
  };
  return html`<div class="head"><h1>Volumes</h1><p class="dim">Folders that the workers of several endpoints share, for models and data. They outlive workers.</p>
      <div class="acts"><${Button} kind="primary" icon="plus" onClick=${() => setMaking(true)}>Make a volume<//></div></div>
    <${Card} title="Volumes" note=${search.note} flush>
      ${search.field}
      ${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(PATH)} />` : !data ? html`<${Loading} rows=${3} />` : data.length === 0 ? html`<${Empty}><p>No volume is here. Workers of an endpoint with one find its folder in <span class="mono">LONGSHORE_VOLUME_PATH</span>.</p><//>` : search.shown.length === 0 ? search.none : html`<div class="table-box"><table class="table">
        <thead><tr><th scope="col">Name</th><th scope="col" class="num" title="Of the server's disk, measured at most 5 min ago; beside it the size that was named">On disk</th><th scope="col" class="opt">Data center</th><th scope="col" class="opt2">Used by</th><th scope="col" class="opt">Made</th><th scope="col" class="mono opt2">Id</th><th scope="col"><span class="offscreen">Actions</span></th></tr></thead>
        <tbody><${TableWindow} rows=${search.shown.map((/** @type {Volume} */ volume) => html`<tr key=${volume.id}>
          <th scope="row">${volume.name}</th><td class="num"><${OnDisk} volume=${volume} /></td><td class="dim opt">${volume.dataCenterId || "–"}</td>
          <td class="opt2"><${UsedBy} endpoints=${usersOf(volume)} /></td><td class="dim opt"><${Age} at=${volume.createdAt} /></td><td class="mono dim opt2">${volume.id}</td>
          <td class="acts wraps"><${Button} kind="quiet small" label=${`Change ${volume.name}`} onClick=${() => setChanged(volume)}>Change<//>
            <${Button} kind="quiet small danger" label=${`Delete ${volume.name}`} disabled=${usersOf(volume).length > 0} why=${whyInUse(usersOf(volume))} onClick=${() => setDeleted(volume)}>Delete<//></td>
        </tr>`)} /></tbody></table></div>`}
    <//>
    ${isMaking && html`<${VolumeForm} onClose=${close} />`}
    ${changed && html`<${VolumeForm} volume=${changed} onClose=${close} />`}
    ${deleted && html`<${Delete} volume=${deleted} onClose=${close} />`}`;
}

/**
 * Reads the volumes again when a measurement no longer holds, and then less and less often until it is done: no event tells it.
 * @param {any[] | undefined} volumes
 */
function useMeasurements(volumes) {
  useEffect(() => {
    if (!volumes || volumes.length === 0) return undefined;
    const left = Math.min(...volumes.map(({ diskBytesAt }) => (diskBytesAt ? Date.parse(diskBytesAt) + HOLDS_MS - Date.now() : 0)));
    let wait = MEASURING_MS;
    const read = () => {
      if (!document.hidden) refresh(PATH);
      timer = setTimeout(read, wait);
      wait = Math.min(HOLDS_MS, wait * 2);
    };
    let timer = setTimeout(read, left > 0 ? left : wait);
    return () => clearTimeout(timer);
  }, [volumes]);
}

const GB = 1e9;

/** What a volume takes, of the size that was named. @param {{volume: Volume}} props */
function OnDisk({ volume: { diskBytes, size: named } }) {
  const isOver = (diskBytes ?? 0) > named * GB;
  return html`<span class=${isOver ? "tone-queued" : ""} title=${isOver ? "More than the size that was named: nothing stops that." : undefined}>${diskBytes === null ? "being measured" : size(diskBytes)}</span> <span class="dim">of ${count(named)} GB</span>`;
}

/** @param {{volume?: any, onClose: () => void}} props without `volume` one is made */
function VolumeForm({ volume, onClose }) {
  const [name, setName] = useState(volume?.name ?? "");
  const first = String(volume?.size ?? 100);
  const [named, setNamed] = useState(first);
  const tagged = useTagged(volume ? `${PATH}/${encodeURIComponent(volume.id)}` : null, volume);
  const send = async () => {
    const body = { name: name.trim(), size: Number(named) };
    if (volume) await tagged.change(body);
    else await api.json("POST", PATH, { body });
    toast(volume ? `${body.name} is changed.` : `${body.name} is made. Name it in an endpoint to use it.`);
    onClose();
  };
  return html`<${FormDialog} title=${volume ? `Change ${volume.name}` : "Make a volume"} action=${volume ? "Save" : "Make the volume"} onSend=${send} onClose=${onClose} isUnsaved=${name !== (volume?.name ?? "") || named !== first}>
    <${Field} id="volume-name" label="Name" value=${name} onInput=${setName} autofocus placeholder="weights" />
    <${Field} id="volume-size" label="Size in GB" type="number" min="1" inputmode="numeric" value=${named} onInput=${setNamed} help="For people and other tools: the server does not stop a worker from writing more." />
    <${OvertakenChange} what="volume" tagged=${tagged} fields=${[{ name: "name", title: "Name" }, { name: "size", title: "Size", text: (/** @type {number} */ gb) => `${count(gb)} GB` }]} />
  <//>`;
}

/** @param {{volume: Volume, onClose: () => void}} props */
function Delete({ volume, onClose }) {
  const remove = async () => {
    await api.json("DELETE", `${PATH}/${encodeURIComponent(volume.id)}`);
    toast(`${volume.name} is deleted.`);
    onClose();
  };
  return html`<${DeleteByName} name=${volume.name} onDelete=${remove} onClose=${onClose}><p>The folder is deleted with every file in it. That cannot be undone.</p><//>`;
}
