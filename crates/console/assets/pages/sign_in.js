// Signing in: with a key, or without typing one by `longshore console`.
import { html, useEffect, useRef, useState } from "../dom.js";
import { Icon } from "../icons.js";
import { ApiError, said } from "../api.js";
import { notice, signIn } from "../session.js";
import { Button } from "../ui/button.js";

/** One sentence for every reason, as the server's 401. */
const REFUSED = "This server does not know that key, or it has ended.";

export default function SignIn() {
  const [error, setError] = useState("");
  // The key is in the field alone: what was rendered once can stay in memory for as long as the tab.
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => {
    document.title = "Sign in · Longshore";
    field.current?.focus();
  }, []);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const input = /** @type {HTMLInputElement} */ (field.current);
    if (!input.value.trim()) return input.focus();
    try {
      await signIn({ key: input.value.trim() });
      input.value = "";
    } catch (failed) {
      setError(/** @type {ApiError} */ (failed).status === 401 ? REFUSED : said(failed));
      input.value = "";
      input.focus();
    }
    return undefined;
  };
  return html`<main class="sign-in">
    <p class="brand"><${Icon} name="logo" />Longshore</p>
    <form class="sign-in-card" onSubmit=${submit}>
      <h1>Sign in</h1>
      ${notice.value && html`<p class="notice" role="status">${notice.value}</p>`}
      <label for="key">API key</label>
      <input id="key" ref=${field} type="password" autocomplete="off" spellcheck=${false} placeholder="ls_…" aria-invalid=${error ? "true" : undefined} aria-describedby="key-help" />
      ${error && html`<p class="field-error" role="alert">${error}</p>`}
      <${Button} kind="primary" type="submit">Sign in<//>
      <p id="key-help" class="dim">Use any API key of this server. Or run <code>longshore console</code> where the server runs.</p>
    </form>
  </main>`;
}
