// Copying text, also on pages of plain HTTP, where browsers give no clipboard.
import { html, useState } from "../dom.js";
import { Icon } from "../icons.js";
import { shortId } from "../format.js";
import { announce } from "./announcer.js";
import { attempt } from "./toast.js";

const SHOWN_MS = 1200;

/** Copies a text; fails if the browser does not let it. @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without one, or where the browser forbids it.
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "offscreen";
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const isDone = document.execCommand("copy");
    field.remove();
    before?.focus({ preventScroll: true });
    if (!isDone) throw new Error("The browser does not let this page copy. Select the text, and copy it by the keyboard.");
  }
  announce("Copied.");
}

/** @param {{text: string, label?: string, children?: any, kind?: string}} props */
export function CopyButton({ text, label, children, kind = "" }) {
  const [isDone, setDone] = useState(false);
  const press = async () => {
    if (!(await attempt(() => copy(text), ""))) return;
    setDone(true);
    setTimeout(() => setDone(false), SHOWN_MS);
  };
  const icon = html`<${Icon} name=${isDone ? "check" : "copy"} />`;
  return html`<button type="button" class=${`button ${kind} ${children ? "" : "icon-only"}`} aria-label=${label && isDone ? "Copied" : label} title=${label} onClick=${press}>${icon}${isDone && children ? "Copied" : children}</button>`;
}

/** The end of an id; one press copies the whole. @param {{id: string}} props */
export function Id({ id }) {
  const [isDone, setDone] = useState(false);
  const press = async (/** @type {Event} */ event) => {
    event.preventDefault();
    event.stopPropagation();
    if (!(await attempt(() => copy(id), ""))) return;
    setDone(true);
    setTimeout(() => setDone(false), SHOWN_MS);
  };
  return html`<button type="button" class="id mono" title=${`${id}: press to copy`} onClick=${press}>${isDone ? "Copied" : shortId(id)}</button>`;
}

/** A line of a terminal with a button that copies it. @param {{text: string}} props */
export function CodeLine({ text }) {
  return html`<div class="code-line"><pre class="mono" tabindex="0">${text}</pre><${CopyButton} text=${text} label="Copy" kind="quiet" /></div>`;
}
