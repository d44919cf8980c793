// The computers that run workers: their processors, memory and GPUs, and the line of endpoints that wait for GPUs.
import { html, useState } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { count, percent, size } from "../format.js";
import { useEndpointList } from "../fleet.js";
import { may } from "../session.js";
import { refresh, useRead, useReads } from "../store.js";
import { Card, Empty, Failed, Gauge, Gauges, LoadingPage } from "../ui/card.js";
import { GpuLine } from "../ui/gpu_line.js";
import { Age } from "../ui/time.js";
import { workersPath } from "../worker_actions.js";

const PATH = "/v1/machines";
const READ_MS = 5000;
const WORKERS_MS = 15000;

export default function Machines() {
  const { data, error } = useRead(may.everyRead.value ? PATH : null, READ_MS);
  const endpoints = useEndpointList(10000).data ?? [];
  const head = html`<div class="head"><h1>Machines and GPUs</h1><p class="dim">The computers that run workers, and their GPUs.</p></div>`;
  if (!may.everyRead.value) return html`${head}<${Empty}><p>Only a key that reads all endpoints may see the machines.</p><//>`;
  if (error && !data) return html`${head}<${Failed} error=${error} onRetry=${() => refresh(PATH)} />`;
  if (!data) return html`${head}<${LoadingPage} cards=${["Machine", "GPUs"]} />`;
  const One = data.length > OPEN_MAX ? Folded : Machine;
  return html`${head}${data.map((/** @type {Machine} */ machine) => html`<${One} key=${machine.id} machine=${machine} endpoints=${endpoints} />`)}`;
}

/** More computers than these are folded, and their names say the most of each. */
const OPEN_MAX = 3;

/** @param {any[]} gpus */
const takenOf = (gpus) => gpus.filter((gpu) => gpu.worker).length;

/** A computer of many: its figures are there when it is opened. @param {{machine: Machine, endpoints: Endpoint[]}} props */
function Folded({ machine, endpoints }) {
  const [isOpen, setOpen] = useState(false);
  const { name, workers, gpus, waiting } = machine;
  const said = [`${count(workers)} ${workers === 1 ? "worker" : "workers"}`, gpus.length > 0 ? `${count(takenOf(gpus))} of ${count(gpus.length)} GPUs taken` : "no GPU", waiting.length > 0 && `${count(waiting.length)} ${waiting.length === 1 ? "endpoint waits" : "endpoints wait"}`].filter(Boolean).join(", ");
  return html`<details class="stack folded" onToggle=${(/** @type {any} */ event) => setOpen(event.target.open)}><summary><b>${name}</b> <span class="dim">${said}</span></summary>${isOpen && html`<${Machine} machine=${machine} endpoints=${endpoints} />`}</details>`;
}

/** @param {{machine: Machine, endpoints: Endpoint[]}} props */
function Machine({ machine, endpoints }) {
  const { gpus, waiting, line } = machine;
  const taken = takenOf(gpus);
  const used = machine.memoryBytes === null || machine.memoryFreeBytes === null ? null : machine.memoryBytes - machine.memoryFreeBytes;
  const named = (/** @type {string} */ id) => endpoints.find((endpoint) => endpoint.id === id) ?? { id, name: id };
  return html`<${Card} title=${machine.name} note=${`runs workers as ${machine.providers.join(" and ")}`} flush>
      <${Gauges}>
        <${Gauge} name="Workers" value=${count(machine.workers)} />
        <${Gauge} name="Processors" value=${count(machine.cpuCount)} />
        <${Gauge} name="Memory used" value=${size(used)} note=${`of ${size(machine.memoryBytes)}`} />
        <${Gauge} name="Disk free" value=${size(machine.diskFreeBytes)} note="where the data is" />
        <${Gauge} name="GPUs taken" value=${gpus.length === 0 ? "–" : count(taken)} note=${gpus.length === 0 ? "none is known" : `of ${count(gpus.length)}`} />
      <//>
    <//>
    <${Card} title="GPUs" note=${gpus.length > 0 ? count(gpus.length) : undefined} flush>
      ${gpus.length === 0 ? html`<${Empty}><p>No GPU is known: workers start without regard to GPUs. The server finds those of NVIDIA by itself; others are named in its settings:</p><pre class="mono">${'[[gpus]]\ntype = "NVIDIA L4"\ncount = 2'}</pre><//>` : html`<${Gpus} gpus=${gpus} named=${named} />`}
    <//>
    ${waiting.length > 0 && html`<${GpuLine} waiting=${waiting} line=${line} named=${named} />`}`;
}

/** Since when each worker with a GPU runs, by its id. @param {any[]} gpus @returns {Map<string, string>} */
function useStarts(gpus) {
  const holders = [...new Set(gpus.filter(({ worker }) => worker).map(({ endpoint }) => endpoint))];
  const reads = useReads(holders.map((id) => workersPath({ id })), WORKERS_MS);
  const workers = [...reads.values()].flatMap(({ data }) => /** @type {any[]} */ (data ?? []));
  return new Map(workers.map(({ id, startedAt }) => [id, startedAt]));
}

/** @param {{gpus: any[], named: (id: string) => any}} props */
function Gpus({ gpus, named }) {
  const starts = useStarts(gpus);
  return html`<div class="table-box" tabindex="0"><table class="table">
    <thead><tr><th scope="col">GPU</th><th scope="col" class="num">Memory</th><th scope="col">Taken by</th><th scope="col" class="opt">Since</th><th scope="col" class="num opt2" title="When the driver was asked last, a minute ago at most">Busy</th><th scope="col" class="num opt2">Temperature</th><th scope="col" class="opt2">Driver</th><th scope="col" class="opt2">Device</th></tr></thead>
    <tbody>${gpus.map((gpu) => html`<tr key=${gpu.id}><th scope="row">${gpu.typeId}</th><td class="num">${typeof gpu.memoryUsedBytes === "number" && html`${size(gpu.memoryUsedBytes)} <span class="dim">of</span> `}${size(gpu.memoryBytes)}</td>
      <td>${gpu.worker ? html`<a href=${href(endpointPath(named(gpu.endpoint)))}>${named(gpu.endpoint).name}</a> <a class="mono dim" href=${href(`${endpointPath(named(gpu.endpoint))}/workers/${encodeURIComponent(gpu.worker)}`)}>${gpu.worker}</a>` : gpu.fault ? "" : html`<span class="tone-completed">free</span>`}${gpu.fault && html` <span class="tone-failed" title="No worker gets it">sick: ${gpu.fault}</span>`}</td>
      <td class="dim opt">${gpu.worker ? html`<${Age} at=${starts.get(gpu.worker)} />` : ""}</td>
      <td class="num opt2">${typeof gpu.useRatio === "number" ? `${percent(gpu.useRatio)} %` : "–"}</td>
      <td class="num opt2">${typeof gpu.temperatureC === "number" ? `${gpu.temperatureC} °C` : "–"}</td><td class="dim opt2">${gpu.driverVersion ?? "–"}</td>
      <td class="mono dim opt2">${gpu.id}</td></tr>`)}</tbody>
  </table></div>`;
}
