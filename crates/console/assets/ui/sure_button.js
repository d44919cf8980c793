// A button for what cannot be taken back: it asks for a second press.
import { html, useEffect, useState } from "../dom.js";
import { Button } from "./button.js";
import { keepFocus } from "./row_focus.js";

const SURE_MS = 4000;

/**
 * A button whose first press asks, and whose second press within 4 s acts.
 * @param {{onClick: () => unknown, icon?: string, kind?: "" | "primary" | "quiet" | "danger", children?: any}} props
 */
export function SureButton({ onClick, icon, kind = "danger", children }) {
  const [isAsking, setAsking] = useState(false);
  useEffect(() => {
    if (!isAsking) return undefined;
    const timer = setTimeout(() => setAsking(false), SURE_MS);
    return () => clearTimeout(timer);
  }, [isAsking]);
  const act = () => {
    setAsking(false);
    keepFocus();
    return onClick();
  };
  return isAsking
    ? html`<${Button} icon=${icon} kind="danger asking" onClick=${act}>Sure?<//>`
    : html`<${Button} icon=${icon} kind=${kind} onClick=${() => setAsking(true)}>${children}<//>`;
}
