// One short message about what was done, for 5 s, below the page.
import { html, signal } from "../dom.js";
import { said } from "../api.js";
import { Icon } from "../icons.js";
import { load } from "../load.js";
import { IconButton } from "./button.js";

const SHOWN_MS = 5000;

const message = signal(/** @type {{text: string, tone: "good" | "bad"} | null} */ (null));
let timer = 0;

/** @param {string} text one sentence @param {"good" | "bad"} [tone] */
export function toast(text, tone = "good") {
  message.value = { text, tone };
  void load("./ui/announcer.js").then(({ announce }) => announce(text));
  clearTimeout(timer);
  timer = window.setTimeout(() => (message.value = null), tone === "bad" ? 2 * SHOWN_MS : SHOWN_MS);
}

/**
 * Does something and says what came of it: the sentence, or the server's.
 * @param {() => Promise<unknown>} work
 * @param {string} done
 * @returns {Promise<boolean>} whether it worked
 */
export async function attempt(work, done) {
  try {
    await work();
    if (done) toast(done);
    return true;
  } catch (error) {
    toast(said(error), "bad");
    return false;
  }
}

export function Toast() {
  if (!message.value) return null;
  const { text, tone } = message.value;
  return html`<section class=${`toast ${tone}`} aria-label="Message"><${Icon} name=${tone === "bad" ? "warn" : "check"} /><span>${text}</span><${IconButton} icon="close" label="Dismiss" onClick=${() => (message.value = null)} /></section>`;
}
