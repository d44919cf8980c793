// The side bar as a drawer, while it is open: it has the focus, and what is beside it has not.
import { useLayoutEffect } from "../dom.js";

/** @param {{onClose: () => void}} props */
export default function Drawer({ onClose }) {
  useLayoutEffect(() => {
    const side = document.getElementById("side");
    const column = /** @type {HTMLElement | null} */ (document.querySelector(".main-column"));
    if (!side || !column) return undefined;
    column.inert = true;
    // What becomes visible only in the next moment cannot have the focus yet.
    side.style.transitionProperty = "transform";
    /** @type {HTMLElement | null} */ (side.querySelector("[aria-current]") ?? side.querySelector("a"))?.focus();
    let isBack = true;
    const leave = (/** @type {KeyboardEvent} */ event) => {
      // A dialog over it is closed first.
      if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
      // Only this closes: the event reaches nothing else that Escape is for.
      event.preventDefault();
      event.stopPropagation();
      onClose();
    };
    // A link leads to the content of its page, also if that is the present one.
    const follow = () => (isBack = false);
    // In a wide window, the side bar is no drawer.
    const resize = () => getComputedStyle(side).position !== "fixed" && onClose();
    document.addEventListener("keydown", leave, true);
    side.addEventListener("click", follow, true);
    addEventListener("resize", resize);
    return () => {
      document.removeEventListener("keydown", leave, true);
      side.removeEventListener("click", follow, true);
      removeEventListener("resize", resize);
      column.inert = false;
      side.style.transitionProperty = "";
      /** @type {HTMLElement | null} */ (document.querySelector(isBack ? ".menu-button button" : "#content"))?.focus();
    };
  }, []);
  return null;
}
