// What a change of settings does, before it is saved.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { effects, patchOf, readRecord, readTagged, shown } from "../settings.js";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";
import { Differences, OvertakenAlert } from "./overtaken.js";
import { toast } from "./toast.js";

/** @typedef {import("../settings.js").Tagged} Tagged */

/**
 * What is saved: each setting as it is and as it will be, and what that does.
 * @param {{path: string, settings: import("../settings_fields.js").Setting[], base: Tagged, changes: Record<string, any>, health: Health | undefined, onClose: () => void, onDone: (saved: Tagged) => void, onReread: (base: Tagged) => void}} props
 */
export default function SettingsReview({ path, settings, base, changes, health, onClose, onDone, onReread }) {
  const [error, setError] = useState("");
  const [isOvertaken, setOvertaken] = useState(false);
  const show = (/** @type {Tagged} */ stored) => {
    onReread(stored);
    setOvertaken(true);
  };
  const save = async () => {
    setError("");
    try {
      // Without the `ETag` of what is shown, it is compared with what is stored.
      const stored = base.tag ? base : await readTagged(path);
      if (stored.text !== base.text) return show(stored);
      const saved = await api.text("PATCH", path, { rawBody: patchOf(base.record, changes), headers: stored.tag ? { "If-Match": stored.tag } : {} });
      toast("The settings are saved.");
      onDone({ record: readRecord(saved), tag: null, text: saved });
    } catch (failed) {
      if (/** @type {api.ApiError} */ (failed).status !== 412) return setError(api.said(failed));
      // Another has changed the endpoint: what it is now is shown beside what is to be saved.
      try {
        show(await readTagged(path));
      } catch (unread) {
        setError(`Nothing is saved: it was changed meanwhile, and what is stored now could not be read. ${api.said(unread)}`);
      }
    }
    return undefined;
  };
  const rows = settings.filter(({ name }) => name in changes);
  const sentences = effects(base.record, changes, health);
  return html`<${Dialog} title="Save these changes?" wide onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Go back<//><${Button} kind="primary" disabled=${rows.length === 0} why="The fields are as they are stored." onClick=${save}>Save<//>`}>
    ${isOvertaken && html`<${OvertakenAlert} what="endpoint" />`}
    <${Differences} rows=${rows.map((setting) => ({ name: setting.name, title: setting.title, now: shown(setting, base.record[setting.name]), then: shown(setting, changes[setting.name]), isJson: setting.kind === "json" }))} />
    ${sentences.length > 0 && html`<ul class="plain">${sentences.map((sentence) => html`<li key=${sentence}>${sentence}</li>`)}</ul>`}
    ${error && html`<p class="field-error" role="alert">${error}</p>`}
  <//>`;
}
