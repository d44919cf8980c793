// Changing a key: its name, its end and its rate. What it may do stays as it was made.
import { html, useState } from "../dom.js";
import { dateTime } from "../format.js";
import { utc } from "../prefs.js";
import { Field, FormDialog } from "./form_dialog.js";
import { Endless, ENDS, endIn } from "./make_key.js";
import { OvertakenChange, useTagged } from "./overtaken.js";

/** The key keeps its end. */
const AS_IT_IS = -1;

/** @param {{record: ApiKey, onDone: () => void, onClose: () => void}} props */
export function ChangeKey({ record, onDone, onClose }) {
  const path = `/v1/apikeys/${encodeURIComponent(record.id)}`;
  const [name, setName] = useState(record.name);
  const [days, setDays] = useState(AS_IT_IS);
  const [limit, setLimit] = useState(String(record.rateLimit ?? ""));
  const tagged = useTagged(path, record);
  const rateLimit = limit ? Number(limit) : null;
  const body = {
    ...(name.trim() !== record.name && { name: name.trim() }),
    ...(days !== AS_IT_IS && { expiresAt: endIn(days) }),
    ...(rateLimit !== (record.rateLimit ?? null) && { rateLimit }),
  };
  const isChanged = Object.keys(body).length > 0;
  const send = async () => {
    if (!name.trim()) throw new Error("Give it a name by which you will know it later.");
    if (isChanged) await tagged.change(body);
    onDone();
  };
  const day = (/** @type {string} */ at) => dateTime(Date.parse(at), { utc: utc.value }).slice(0, 16);
  const kept = `as it is: ${record.expiresAt ? day(record.expiresAt) : "never"}`;
  return html`<${FormDialog} title=${`Change ${record.name}`} action="Save" onSend=${send} onClose=${onClose} isUnsaved=${isChanged}>
    <${Field} id="key-name" label="Name" value=${name} onInput=${setName} autofocus />
    <div class="field"><label for="key-ends">It ends</label><select id="key-ends" value=${days} onChange=${(/** @type {any} */ event) => setDays(Number(event.target.value))}>
      <option value=${AS_IT_IS}>${kept}</option>${ENDS.map((end) => html`<option key=${end.days} value=${end.days}>${end.name}</option>`)}</select>
      ${days === 0 && html`<${Endless} />`}</div>
    <${Field} id="key-rate" label="Most requests in 10 s" value=${limit} onInput=${setLimit} type="number" min="1" inputmode="numeric" placeholder="no limit of its own" />
    <p class="dim">What it may do, and on which endpoints, stays as it was made: make a new key for that.</p>
    <${OvertakenChange} what="key" tagged=${tagged} fields=${[{ name: "name", title: "Name" }, { name: "expiresAt", title: "Ends", text: day }, { name: "rateLimit", title: "Most requests in 10 s" }]} />
  <//>`;
}
