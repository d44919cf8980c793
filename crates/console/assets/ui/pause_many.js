// Pausing or resuming the endpoints of a list, with the effect in numbers.
import { html, useState } from "../dom.js";
import { pause, resume } from "../endpoint_actions.js";
import { count } from "../format.js";
import { SureDialog } from "./sure_dialog.js";
import { toast } from "./toast.js";

/** @typedef {import("../fleet.js").Row} Row */

/** @param {Row[]} rows those that one may change, of which none is paused or all are */
const sum = (rows, /** @type {"inQueue" | "inProgress"} */ name) => rows.reduce((total, { health }) => total + (health?.jobs[name] ?? 0), 0);

/** @param {number} number */
const endpoints = (number) => (number === 1 ? "1 endpoint" : `${count(number)} endpoints`);

/** @param {{rows: Row[], isResume: boolean, onClose: () => void}} props */
export function PauseMany({ rows, isResume, onClose }) {
  const verb = isResume ? "Resume" : "Pause";
  // As they were when this was opened: the list changes meanwhile. After a failure, those that are left.
  const [all] = useState(rows);
  const [left, setLeft] = useState(rows);
  const act = async () => {
    for (const [at, { endpoint }] of left.entries()) {
      setLeft(left.slice(at));
      await (isResume ? resume : pause)(endpoint);
    }
    toast(`${endpoints(all.length)} ${all.length === 1 ? "is" : "are"} ${isResume ? "resumed" : "paused"}.`);
    onClose();
  };
  const [waiting, running] = [sum(left, "inQueue"), sum(left, "inProgress")];
  const text = isResume
    ? `Their numbers of workers are those of before. ${count(waiting)} waiting ${waiting === 1 ? "job starts" : "jobs start"} then.`
    : `Their jobs wait, and no worker starts. ${count(running)} running ${running === 1 ? "job goes" : "jobs go"} on. Resume undoes it.`;
  return html`<${SureDialog} title=${`${verb} ${endpoints(left.length)}?`} keep="Leave them" action=${`${verb} them`} kind="primary" onAct=${act} onClose=${onClose}>
    <p>${text}</p><p class="dim">${left.map(({ endpoint }) => endpoint.name).join(", ")}</p>
  <//>`;
}
