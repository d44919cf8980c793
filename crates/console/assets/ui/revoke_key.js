// Revoking a key: when it was last used, and which sessions end with it.
import { html } from "../dom.js";
import * as api from "../api.js";
import { me } from "../session.js";
import { useRead } from "../store.js";
import { Session } from "./session.js";
import { SureDialog } from "./sure_dialog.js";
import { Age } from "./time.js";

const SESSIONS_MS = 10000;

/** @param {{record: ApiKey, onDone: () => void, onClose: () => void}} props */
export function RevokeKey({ record, onDone, onClose }) {
  const all = /** @type {any[]} */ (useRead("/v1/sessions", SESSIONS_MS).data ?? []);
  const sessions = all.filter(({ key }) => key.id === record.id);
  const revoke = async () => {
    await api.json("DELETE", `/v1/apikeys/${encodeURIComponent(record.id)}`);
    onDone();
  };
  return html`<${SureDialog} title=${`Revoke ${record.name}?`} keep="Keep it" action="Revoke it" onAct=${revoke} onClose=${onClose}>
    <p>Requests with it are refused from then on. That cannot be undone; what Disable does can be.</p>
    <p>${record.lastUsedAt ? html`It was last used <${Age} at=${record.lastUsedAt} />${record.lastUsedFrom && html`, from <span class="mono">${record.lastUsedFrom}</span>`}.` : "It was never used."}</p>
    ${sessions.length === 0 ? html`<p>No session at the console ends with it.</p>` : html`<p>${sessions.length === 1 ? "This session ends" : `These ${sessions.length} sessions end`} with it:</p>
      <ul class="plain">${sessions.map((session) => html`<li key=${session.id}><${Session} session=${session} /></li>`)}</ul>`}
    ${record.id === me.value?.key.id && html`<p class="tone-queued">It is the key that you signed in with: you are signed out, too.</p>`}
  <//>`;
}
