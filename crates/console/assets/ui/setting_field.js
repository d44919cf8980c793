// One setting of an endpoint: its name, its field, what it means and its default.
import { html } from "../dom.js";
import { parsed, shown, written } from "../settings.js";

/** @param {{setting: import("../settings_fields.js").Setting, record: any, usual: string | undefined, text: any, fault: string | undefined, isOff: boolean, onSet: (name: string, value: any) => void}} props `usual` is what a new endpoint has */
export function SettingField({ setting, record, usual, text, fault, isOff, onSet }) {
  const { name, kind, words = [], labels = {} } = setting;
  const id = `setting-${name}`;
  const number = kind !== "ms" || fault ? null : text === undefined ? record[name] : parsed(setting, text).value;
  const inWords = typeof number === "number" ? ` ${number} ms are ${shown(setting, number)}.` : "";
  const about = html`<p class="settings-about" id=${`${id}-about`}>${setting.text}${inWords}${usual ? ` Default: ${usual}.` : ""}</p>
    ${fault && html`<p class="field-error" role="alert">${fault}</p>`}`;
  if (kind === "words") {
    const chosen = /** @type {string[]} */ (text ?? record[name] ?? []);
    const toggle = (/** @type {string} */ word) => onSet(name, words.filter((one) => (one === word ? !chosen.includes(one) : chosen.includes(one))));
    return html`<fieldset class="field" aria-describedby=${`${id}-about`}><legend>${setting.title}</legend><div class="settings-words">${words.map((word) => html`<label key=${word}><input type="checkbox" disabled=${isOff} checked=${chosen.includes(word)} onChange=${() => toggle(word)} />${labels[word] ?? word}</label>`)}${words.length === 0 && html`<span class="dim">${setting.none}</span>`}</div>${about}</fieldset>`;
  }
  const value = text ?? written(setting, record[name]);
  const input = (/** @type {any} */ event) => onSet(name, event.target.value);
  const field = kind === "json"
    ? html`<textarea id=${id} class="mono" rows="8" disabled=${isOff} spellcheck=${false} placeholder=${setting.orNone} aria-invalid=${fault ? "true" : undefined} aria-describedby=${`${id}-about`} value=${value} onInput=${input}></textarea>`
    : kind === "word" || kind === "flag"
    ? html`<select id=${id} disabled=${isOff} aria-describedby=${`${id}-about`} value=${value} onChange=${input}>${setting.orNone && html`<option value="">${setting.orNone}</option>`}${words.map((word) => html`<option key=${word} value=${word}>${labels[word] ?? word}</option>`)}</select>`
    : html`<input id=${id} disabled=${isOff} autocomplete="off" spellcheck=${false} inputmode=${kind === "text" || kind === "texts" ? undefined : "decimal"} placeholder=${setting.orNone} aria-invalid=${fault ? "true" : undefined} aria-describedby=${`${id}-about`} value=${value} onInput=${input} />`;
  return html`<div class=${kind === "json" ? "field settings-json" : "field"}><label for=${id}>${setting.title} <span class="mono dim">${name}</span></label>${field}${about}</div>`;
}
