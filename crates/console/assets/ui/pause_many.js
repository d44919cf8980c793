// Pausing or resuming the endpoints of a list, with the effect in numbers.
import { html } from "../dom.js";
import { pause, resume } from "../endpoint_actions.js";
import { count } from "../format.js";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";
import { attempt, toast } from "./toast.js";

/** @typedef {import("../fleet.js").Row} Row */

/** @param {Row[]} rows those that one may change, of which none is paused or all are */
const sum = (rows, /** @type {"inQueue" | "inProgress"} */ name) => rows.reduce((total, { health }) => total + (health?.jobs[name] ?? 0), 0);

/** @param {number} number */
const endpoints = (number) => (number === 1 ? "1 endpoint" : `${count(number)} endpoints`);

/** @param {{rows: Row[], isResume: boolean, onClose: () => void}} props */
export function PauseMany({ rows, isResume, onClose }) {
  const verb = isResume ? "Resume" : "Pause";
  const act = () => attempt(async () => {
    for (const { endpoint } of rows) await (isResume ? resume : pause)(endpoint);
    toast(`${endpoints(rows.length)} ${rows.length === 1 ? "is" : "are"} ${isResume ? "resumed" : "paused"}.`);
    onClose();
  }, "");
  const [waiting, running] = [sum(rows, "inQueue"), sum(rows, "inProgress")];
  const text = isResume
    ? `Their numbers of workers are those of before. ${count(waiting)} waiting ${waiting === 1 ? "job starts" : "jobs start"} then.`
    : `Their jobs wait, and no worker starts. ${count(running)} running ${running === 1 ? "job goes" : "jobs go"} on. Resume undoes it.`;
  return html`<${Dialog} title=${`${verb} ${endpoints(rows.length)}?`} onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Leave them<//><${Button} kind="primary" onClick=${act}>${verb} them<//>`}>
    <p>${text}</p><p class="dim">${rows.map(({ endpoint }) => endpoint.name).join(", ")}</p>
  <//>`;
}
