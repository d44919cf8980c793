// A dialog that asks before something is done. What fails is said in it: beneath it, a message is not read.
import { html, useState } from "../dom.js";
import { said } from "../api.js";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";

/**
 * @param {{title: string, keep: string, action: string, kind?: "primary" | "danger", disabled?: boolean, why?: string, onAct: () => Promise<unknown>, onClose: () => void, children?: any}} props
 *   `keep` and `action` are the words of its buttons; `why` says why it cannot be done; `onAct` closes the dialog when it has worked
 */
export function SureDialog({ title, keep, action, kind = "danger", disabled, why, onAct, onClose, children }) {
  const [error, setError] = useState("");
  const act = async () => {
    setError("");
    try {
      await onAct();
    } catch (failed) {
      setError(said(failed));
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>${keep}<//><${Button} kind=${kind} disabled=${disabled} why=${why} onClick=${act}>${action}<//>`}>
    ${children}
    ${error && html`<p class="field-error" role="alert">${error}</p>`}
  <//>`;
}
