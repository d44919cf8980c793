// Buttons: plain ones, and ones with an icon only.
import { html, useState } from "../dom.js";
import { Icon } from "../icons.js";

/**
 * @param {{onClick?: () => unknown, icon?: string, kind?: "" | "primary" | "quiet" | "danger", children?: any,
 *   disabled?: boolean, why?: string, type?: "button" | "submit", label?: string, pressed?: boolean}} props
 *   `why` says why it is disabled; `pressed` makes it a switch
 */
export function Button({ onClick, icon, kind = "", children, disabled = false, why = "", type = "button", label, pressed }) {
  const [isBusy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    try {
      await onClick?.();
    } finally {
      setBusy(false);
    }
  };
  // `aria-disabled` keeps the button in the order of focus, so that its reason can be read.
  const isOff = disabled || isBusy;
  return html`<button type=${type} class=${`button ${kind}`} aria-disabled=${isOff ? "true" : undefined} title=${disabled && why ? why : undefined}
    aria-label=${label} aria-pressed=${pressed} onClick=${(/** @type {Event} */ event) => (isOff ? event.preventDefault() : onClick && press())}>
    ${icon && html`<${Icon} name=${icon} />`}${children}
  </button>`;
}

/** @param {{icon: string, label: string, onClick: () => void, expanded?: boolean}} props */
export function IconButton({ icon, label, onClick, expanded }) {
  return html`<button type="button" class="button quiet icon-only" aria-label=${label} title=${label} aria-expanded=${expanded} onClick=${onClick}>
    <${Icon} name=${icon} />
  </button>`;
}
