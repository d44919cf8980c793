// The key that is signed in, what it may do, and signing out. On a phone also what the top bar has no room for.
import { html, useLayoutEffect, useRef } from "../dom.js";
import { isDark, switchTheme, switchZone, utc } from "../prefs.js";
import { leaveBy } from "../router.js";
import { me, signOut } from "../session.js";
import { Button } from "./button.js";
import { Moment } from "./time.js";
import { attempt } from "./toast.js";

const MAY = /** @type {Record<string, string>} */ ({ manage: "change settings", read: "look", jobs: "run jobs" });

/** What the key may do, in words. @param {any} may what `/v1/me` says */
function wordsOf({ manage, endpoints, jobs, read }) {
  if (manage && jobs === "*" && read === "*") return "May do everything.";
  const lists = /** @type {[string, any][]} */ ([["manage", endpoints], ["jobs", jobs], ["read", read]]).filter(([, list]) => list === "*" || list.length > 0);
  if (lists.length === 0) return "May do nothing here.";
  const words = lists.map(([scope]) => MAY[scope]);
  const last = words.pop();
  return `May ${words.length > 0 ? `${words.join(", ")} and ` : ""}${last}${lists.some(([, list]) => list !== "*") ? ", on some endpoints" : ""}.`;
}

/** @param {{onClose: () => void}} props */
export default function Who({ onClose }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current?.focus();
    const leave = (/** @type {Event} */ event) => {
      const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
      const isOutside = event.type === "pointerdown" && !box.current?.parentElement?.contains(/** @type {Node} */ (event.target));
      if (!isEscape && !isOutside) return;
      if (isEscape) {
        // Only this closes: the event reaches nothing else that Escape is for.
        event.preventDefault();
        event.stopPropagation();
        if (before instanceof HTMLElement) before.focus();
      }
      onClose();
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("keydown", leave, true);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("keydown", leave, true);
    };
  }, []);
  const value = me.value;
  if (!value) return null;
  const { key, session, server, may } = value;
  const leave = () => {
    onClose();
    leaveBy(() => attempt(signOut, ""));
  };
  return html`<div class="who-menu" ref=${box} tabindex="-1" role="group" aria-label="Signed in">
    <p><b>${key.name || key.id}</b></p>
    <p class="dim">${wordsOf(may)}</p>
    ${session && html`<p class="dim">Signed in since <${Moment} at=${session.openedAt} />.</p>`}
    <p class="dim">Longshore ${server.version}</p>
    <div class="who-phone"><${Button} kind="small" onClick=${switchZone}>${utc.value ? "Show local time" : "Show UTC"}<//><${Button} kind="small" onClick=${switchTheme}>${isDark() ? "Use light colours" : "Use dark colours"}<//></div>
    <${Button} icon="out" onClick=${leave}>Sign out<//>
  </div>`;
}
