// Cancelling all jobs of an endpoint that wait, with the effect in numbers.
import { html } from "../dom.js";
import * as api from "../api.js";
import { count } from "../format.js";
import { SureDialog } from "./sure_dialog.js";
import { toast } from "./toast.js";

/** @param {{endpoint: Endpoint, waiting: number, running: number, onClose: () => void}} props */
export default function Purge({ endpoint, waiting, running, onClose }) {
  const purge = async () => {
    const { removed } = await api.json("POST", `/v2/${encodeURIComponent(endpoint.id)}/purge-queue`);
    toast(`${count(removed)} ${removed === 1 ? "job is" : "jobs are"} cancelled.`);
    onClose();
  };
  const jobs = waiting === 1 ? "1 waiting job" : `${count(waiting)} waiting jobs`;
  const rest = running ? ` ${count(running)} that ${running === 1 ? "runs goes" : "run go"} on.` : " None runs.";
  return html`<${SureDialog} title=${`Cancel ${jobs} of ${endpoint.name}?`} keep="Keep them" action="Cancel the waiting jobs" disabled=${!waiting} why="All jobs have started or ended." onAct=${purge} onClose=${onClose}>
    <p>${`It cannot be undone.${rest} Jobs that come later are not cancelled.`}</p>
  <//>`;
}
