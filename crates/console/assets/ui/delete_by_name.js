// Deleting what cannot be brought back: the name has to be typed.
import { html, useState } from "../dom.js";
import { SureDialog } from "./sure_dialog.js";

/**
 * @param {{name: string, onDelete: () => Promise<unknown>, onClose: () => void, children?: any}} props
 *   `onDelete` closes the dialog when it has worked; what it throws is shown; `children` says what goes with it
 */
export function DeleteByName({ name, onDelete, onClose, children }) {
  const [typed, setTyped] = useState("");
  return html`<${SureDialog} title=${`Delete ${name}?`} keep="Keep it" action="Delete it" disabled=${typed !== name} why="Type the name first." onAct=${onDelete} onClose=${onClose}>
    ${children}
    <div class="field"><label for="delete-name">Type “${name}”</label><input id="delete-name" autofocus autocomplete="off" spellcheck=${false} value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /></div>
  <//>`;
}
