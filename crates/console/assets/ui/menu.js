// A button that opens a list of things to do, by mouse and by arrow keys.
import { html, useLayoutEffect, useRef, useState } from "../dom.js";
import { Icon } from "../icons.js";

/** @typedef {{name: string, act: () => unknown, why?: string, isOn?: boolean}} Item `why` says why it cannot be done now; `isOn` makes it a switch */

/** @param {{label: string, icon?: string, items: Item[], kind?: string}} props */
export function Menu({ label, icon, items, kind = "" }) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useLayoutEffect(() => {
    if (!isOpen) return undefined;
    /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector("button[role^=menuitem]"))?.focus();
    const leave = (/** @type {Event} */ event) => {
      const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
      if (isEscape) {
        // Only the menu closes: the event reaches nothing else that Escape is for.
        event.preventDefault();
        event.stopPropagation();
        button.current?.focus();
      }
      if (isEscape || (event.type === "pointerdown" && !box.current?.contains(/** @type {Node} */ (event.target)))) setOpen(false);
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("keydown", leave, true);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("keydown", leave, true);
    };
  }, [isOpen]);
  const choose = (/** @type {Item} */ item) => {
    if (item.why) return;
    setOpen(false);
    button.current?.focus();
    item.act();
  };
  const move = (/** @type {KeyboardEvent} */ event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const all = [...(box.current?.querySelectorAll("button[role^=menuitem]") ?? [])];
    const at = all.indexOf(/** @type {Element} */ (document.activeElement));
    /** @type {HTMLElement} */ (all[(at + step + all.length) % all.length]).focus();
  };
  return html`<div class="menu-box" ref=${box}>
    <button type="button" ref=${button} class=${`button ${kind}`} aria-haspopup="menu" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${icon && html`<${Icon} name=${icon} />`}${label}<${Icon} name="down" /></button>
    ${isOpen && html`<div class="menu" role="menu" aria-label=${label} onKeyDown=${move}>${items.map((item) => html`<button type="button" role=${item.isOn === undefined ? "menuitem" : "menuitemcheckbox"} aria-checked=${item.isOn} key=${item.name} aria-disabled=${item.why ? "true" : undefined} title=${item.why || undefined} onClick=${() => choose(item)}>${item.name}${item.isOn && html`<span class="grow"></span><${Icon} name="check" />`}</button>`)}</div>`}
  </div>`;
}
