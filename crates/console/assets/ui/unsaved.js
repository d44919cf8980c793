// The question before changes are lost that are not saved: when the page is left, or the dialog that they were made in.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../dom.js";
import { askFirst, place } from "../router.js";
import { Button } from "./button.js";

/**
 * While something is unsaved, leaving the page asks first; the browser itself asks before its tab is closed.
 * @param {boolean} isUnsaved
 * @returns {{question: any, ask: (leave: () => void) => void, done: () => void}} `question` is null until it is asked · `ask` asks before it leaves in
 *   another way · `done`: nothing is unsaved from now on, before that is drawn
 */
export function useUnsaved(isUnsaved) {
  const stop = useRef(() => {});
  const [asked, setAsked] = useState(/** @type {{leave: () => void} | null} */ (null));
  // With the layout: what is pressed next may leave.
  useLayoutEffect(() => {
    if (!isUnsaved) return undefined;
    const warn = (/** @type {Event} */ event) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    stop.current = askFirst((path, leave) => {
      const isHere = path.split("?")[0] === place.peek().path;
      if (!isHere) setAsked({ leave });
      return !isHere;
    });
    return () => {
      window.removeEventListener("beforeunload", warn);
      stop.current();
      setAsked(null);
    };
  }, [isUnsaved]);
  const go = () => {
    stop.current();
    asked?.leave();
  };
  return {
    question: asked && html`<${Question} onStay=${() => setAsked(null)} onLeave=${go} />`,
    ask: (leave) => (isUnsaved ? setAsked({ leave }) : leave()),
    done: () => stop.current(),
  };
}

/** @param {{onStay: () => void, onLeave: () => void}} props */
function Question({ onStay, onLeave }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  // With the layout, and wherever the focus is: the next Escape answers the question also before its button has the focus.
  useLayoutEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      const over = document.querySelector("dialog[open]");
      if (event.key !== "Escape" || (over && !over.contains(box.current))) return;
      event.preventDefault();
      event.stopPropagation();
      onStay();
    };
    document.addEventListener("keydown", press, true);
    return () => document.removeEventListener("keydown", press, true);
  }, []);
  // After what closes at the same time has given back the focus.
  useEffect(() => {
    const before = document.activeElement;
    box.current?.querySelector("button")?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return html`<div class="unsaved" ref=${box}>
    <span class="grow" role="alert">Your changes are not saved.</span><${Button} onClick=${onStay}>Stay<//><${Button} kind="danger" onClick=${onLeave}>Leave without saving<//>
  </div>`;
}
