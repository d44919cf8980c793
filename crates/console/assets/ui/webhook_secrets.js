// The secrets that sign the webhooks of an endpoint.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { refresh, useRead } from "../store.js";
import { Alert, Card, Failed, Loading } from "./card.js";
import { Button } from "./button.js";
import { CodeLine } from "./copy.js";
import { Dialog } from "./dialog.js";
import { SureButton } from "./sure_button.js";
import { Moment } from "./time.js";
import { attempt } from "./toast.js";

const READ_MS = 30000;

/** @param {{endpoint: Endpoint}} props */
export function WebhookSecrets({ endpoint }) {
  const path = `/v1/endpoints/${encodeURIComponent(endpoint.id)}/webhook-secret`;
  const { data, error } = useRead(path, READ_MS);
  const secrets = data?.secrets ?? [];
  const [made, setMade] = useState("");
  const make = () => attempt(async () => {
    setMade((await api.json("POST", path)).secret);
    refresh(path);
  }, "");
  const remove = () => attempt(async () => {
    await api.json("DELETE", path);
    refresh(path);
  }, "Webhooks of this endpoint are no longer signed.");
  const has = secrets.length > 0;
  const actions = data && html`<${Button} kind="small" onClick=${make}>${has ? "Roll the secret" : "Make a secret"}<//>${has && html`<${SureButton} kind="danger" onClick=${remove}>Remove<//>`}`;
  return html`<${Card} title="Signing secret" actions=${actions}>
    ${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(path)} />` : !data ? html`<${Loading} rows=${1} />` : has ? html`<ul class="plain">${secrets.map((/** @type {any} */ secret) => html`<li key=${secret.createdAt}>Made <${Moment} at=${secret.createdAt} />${secret.expiresAt ? html`, valid until <${Moment} at=${secret.expiresAt} />` : ", in use"}</li>`)}</ul>` : html`<p>Webhooks are not signed. With a secret, a receiver can check that a call is from this server.</p>`}
    ${made && html`<${Dialog} title="The new secret" isStaying onClose=${() => setMade("")} actions=${html`<${Button} kind="primary" onClick=${() => setMade("")}>I have kept it<//>`}>
      <${Alert} tone="warn" title="This is the only time that it is shown"><p>Give it to the receiver. The secret before it stays valid for a day.</p><//><${CodeLine} text=${made} />
    <//>`}
  <//>`;
}
