// What ends an endpoint, or all of its workers.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { go, href } from "../router.js";
import { count } from "../format.js";
import { refresh, useRead } from "../store.js";
import { workersPath } from "../worker_actions.js";
import { Button } from "./button.js";
import { Card } from "./card.js";
import { DeleteByName } from "./delete_by_name.js";
import { DrainAll } from "./drain_all.js";
import { toast } from "./toast.js";

/** How often the workers are read without events. */
const WORKERS_MS = 5000;

/** @param {{endpoint: Endpoint, health: Health | undefined}} props */
export function EndpointEnd({ endpoint, health }) {
  const [isAsking, setAsking] = useState(false);
  const workers = useRead(workersPath(endpoint), WORKERS_MS).data;
  return html`${endpoint.provider !== "external" && html`<${Card} title="Drain"><div class="form"><p>All workers end after their jobs, and others start in their place when they are needed: what they have loaded is loaded anew.</p>
    <div><${DrainAll} endpoint=${endpoint} workers=${workers} health=${health} kind="" /></div></div><//>`}
  <${Card} title="Delete"><div class="form"><p>The endpoint is deleted with its jobs, their results and its history. That cannot be undone.</p>
    <p><${Button} kind="danger" onClick=${() => setAsking(true)}>Delete this endpoint<//></p></div>
    ${isAsking && html`<${Delete} endpoint=${endpoint} health=${health} onClose=${() => setAsking(false)} />`}<//>`;
}

/** @param {{endpoint: Endpoint, health: Health | undefined, onClose: () => void}} props */
function Delete({ endpoint, health, onClose }) {
  const remove = async () => {
    await api.json("DELETE", `/v1/endpoints/${encodeURIComponent(endpoint.id)}`);
    toast(`${endpoint.name} is deleted.`);
    refresh("/v1/endpoints");
    go("/endpoints", { replace: true });
  };
  const jobs = health ? `${count(health.jobs.inQueue)} waiting and ${count(health.jobs.inProgress)} running jobs are dropped.` : "";
  return html`<${DeleteByName} name=${endpoint.name} onDelete=${remove} onClose=${onClose}>
    <p>${jobs} Requests to <span class="mono">${href("").replace(/\/console$/, "")}/v2/${endpoint.slug ?? endpoint.id}</span> get 404.</p>
  <//>`;
}
