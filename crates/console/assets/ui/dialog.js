// A dialog over the page: it holds the focus, and gives it back when it closes.
import { html, useLayoutEffect, useRef } from "../dom.js";
import { askFirst } from "../router.js";
import { IconButton } from "./button.js";
import { focusNear, keepFocus, placeOfFocus } from "./row_focus.js";

/**
 * @param {{title: string, onClose: () => void, children?: any, actions?: any, wide?: boolean, isStaying?: boolean}} props
 *   `isStaying`: only its own buttons close it
 */
export function Dialog({ title, onClose, children, actions, wide = false, isStaying = false }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  // With the layout: what is typed next belongs to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const place = placeOfFocus();
    const dialog = ref.current;
    dialog?.showModal();
    return () => {
      dialog?.close();
      // What opened it may be gone by then, or go in the same moment.
      requestAnimationFrame(() => {
        if (document.activeElement === document.body) {
          if (before instanceof HTMLElement && before.isConnected) before.focus();
          else if (place?.part.isConnected) focusNear(place);
          else document.getElementById("content")?.focus();
        }
        keepFocus();
      });
    };
  }, []);
  useLayoutEffect(() => {
    if (!isStaying) return undefined;
    // Without a press between, `cancel` cannot be prevented a second time. The focus may be in nothing: so on the document.
    const stay = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && event.preventDefault();
    document.addEventListener("keydown", stay, true);
    // Neither does the browser's Back close it, and the browser asks before its tab is closed.
    const warn = (/** @type {Event} */ event) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    const stop = askFirst(() => true);
    return () => {
      document.removeEventListener("keydown", stay, true);
      window.removeEventListener("beforeunload", warn);
      stop();
    };
  }, [isStaying]);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!isStaying) onClose();
  };
  // The browser closed it, and what shows it did not, for example because it asks about unsaved changes.
  const reopen = () => ref.current && !ref.current.open && ref.current.showModal();
  const pressOutside = (/** @type {MouseEvent} */ event) => {
    if (event.target === ref.current && !isStaying) onClose();
  };
  return html`<dialog ref=${ref} class=${wide ? "dialog wide-dialog" : "dialog"} aria-labelledby="dialog-title" onCancel=${cancel} onClose=${reopen} onMouseDown=${pressOutside}>
    <div class="dialog-box">
      <header>
        <h2 id="dialog-title">${title}</h2>
        ${!isStaying && html`<${IconButton} icon="close" label="Close" onClick=${onClose} />`}
      </header>
      <div class="dialog-body">${children}</div>
      ${actions && html`<footer>${actions}</footer>`}
    </div>
  </dialog>`;
}

/**
 * One run at a time, of what both a button and a key begin: while it runs, beginning it again is the same run.
 * @template {unknown[]} Given
 * @param {(...given: Given) => Promise<unknown>} work
 * @returns {(...given: Given) => Promise<unknown>}
 */
export function useOne(work) {
  const running = useRef(/** @type {Promise<unknown> | null} */ (null));
  return (...given) => {
    running.current ??= work(...given).finally(() => (running.current = null));
    return running.current;
  };
}

/** Whether a key event is the press of Ctrl Enter, and not its repetition while the keys are held. @param {KeyboardEvent} event */
export const isCtrlEnter = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat;
