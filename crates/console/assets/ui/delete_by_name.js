// Deleting what cannot be brought back: the name has to be typed.
import { html, useState } from "../dom.js";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";

/**
 * @param {{name: string, onDelete: () => Promise<unknown>, onClose: () => void, children?: any}} props
 *   `onDelete` closes the dialog when it has worked; what it throws is shown; `children` says what goes with it
 */
export function DeleteByName({ name, onDelete, onClose, children }) {
  const [typed, setTyped] = useState("");
  const [error, setError] = useState("");
  const isSure = typed === name;
  const remove = async () => {
    if (!isSure) return;
    try {
      await onDelete();
    } catch (failed) {
      setError(/** @type {Error} */ (failed).message);
    }
  };
  return html`<${Dialog} title=${`Delete ${name}?`} onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Keep it<//><${Button} kind="danger" disabled=${!isSure} why="Type the name first." onClick=${remove}>Delete it<//>`}>
    ${children}
    <div class="field"><label for="delete-name">Type “${name}”</label><input id="delete-name" autofocus autocomplete="off" spellcheck=${false} value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /></div>
    ${error && html`<p class="field-error" role="alert">${error}</p>`}
  <//>`;
}
