// A dialog with a form: Enter sends it, and the server's refusal is shown below the fields.
import { html, useState } from "../dom.js";
import { said } from "../api.js";
import { Button } from "./button.js";
import { Dialog, useOne } from "./dialog.js";
import { useUnsaved } from "./unsaved.js";

/**
 * @param {{title: string, action: string, onSend: () => Promise<unknown>, onClose: () => void, isUnsaved?: boolean, children?: any}} props
 *   `onSend` closes the dialog when it has worked; what it throws is shown · `isUnsaved`: something was typed that closing asks about
 */
export function FormDialog({ title, action, onSend, onClose, isUnsaved = false, children }) {
  const { question, ask } = useUnsaved(isUnsaved);
  const close = () => ask(onClose);
  const [error, setError] = useState("");
  const send = useOne(async () => {
    try {
      await onSend();
    } catch (failed) {
      setError(said(failed));
    }
  });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    void send();
  };
  // Enter that is held in a field sends once.
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && event.repeat && event.target instanceof HTMLInputElement) event.preventDefault();
  };
  return html`<${Dialog} title=${title} onClose=${close} actions=${question ?? html`<${Button} onClick=${close}>Close<//><${Button} kind="primary" onClick=${send}>${action}<//>`}>
    <form class="form" onSubmit=${submit} onKeyDown=${press}>${children}${error && html`<p class="field-error" role="alert">${error}</p>`}<input type="submit" hidden /></form>
  <//>`;
}

/**
 * @param {{id: string, label: string, value: string, onInput: (value: string) => void, help?: any, [more: string]: any}} props
 *   other properties are those of the input
 */
export function Field({ id, label, value, onInput, help, ...more }) {
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} autocomplete="off" spellcheck=${false} value=${value} onInput=${(/** @type {any} */ event) => onInput(event.target.value)} aria-describedby=${help ? `${id}-help` : undefined} ...${more} />
    ${help && html`<p class="dim" id=${`${id}-help`}>${help}</p>`}</div>`;
}
