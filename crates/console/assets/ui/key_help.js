// The list of the keys that work on the page.
import { html } from "../dom.js";
import { Dialog } from "./dialog.js";
import { helpOpen, keysHere } from "./keys.js";

export default function KeyHelp() {
  return html`<${Dialog} title="Keys" onClose=${() => (helpOpen.value = false)}>
    <dl class="keys">
      ${keysHere().map(({ key, does }) => html`<div key=${key}><dt>${key.split(" ").map((one) => html`<kbd>${one}</kbd>`)}</dt><dd>${does}</dd></div>`)}
    </dl>
  <//>`;
}
