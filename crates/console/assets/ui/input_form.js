// A form for an input, from the JSON Schema of an endpoint. What is typed becomes the JSON text that is sent.
import { html, useEffect, useRef, useState } from "../dom.js";
import { count, size } from "../format.js";
import { parse, write } from "../json_text.js";
import { nameOf, othersIn, readAs, valueAt, withValue, written } from "../input_schema.js";
import { Button } from "./button.js";

/** @typedef {import("../input_schema.js").Field} Field */
/** @typedef {import("../json_text.js").Node} Node */
/**
 * @typedef {{input: Node | null, wrong: Record<string, string>, onValue: (field: Field, value: Node | null) => void, onText: (field: Field, text: string) => void}} Form
 *   `onText` takes what is typed; `onValue` a value that needs no reading
 */

/**
 * @param {{fields: Field[], text: string, wrong: Record<string, string>, onInput: (text: string) => void, onWrong: (wrong: Record<string, string>) => void}} props
 *   `text` is the input; `wrong` has the texts that stand for no value
 */
export function InputForm({ fields, text, wrong, onInput, onWrong }) {
  const input = parse(text);
  // A file is read while one types on: its value goes into the input as it is then.
  const present = useRef({ input, wrong });
  present.current = { input, wrong };
  const onValue = (/** @type {Field} */ field, /** @type {Node | null} */ value) => {
    const { [nameOf(field)]: _, ...rest } = present.current.wrong;
    onWrong(rest);
    onInput(write(withValue(present.current.input, field.path, value)));
  };
  const onText = (/** @type {Field} */ field, /** @type {string} */ typed) => {
    const { value, fault } = readAs(field, typed);
    if (fault) onWrong({ ...present.current.wrong, [nameOf(field)]: typed });
    else onValue(field, value);
  };
  const others = othersIn(fields, input);
  return html`<div class="form input-form">${fields.map((field) => html`<${One} key=${nameOf(field)} field=${field} form=${{ input, wrong, onValue, onText }} />`)}
    ${others > 0 && html`<p class="dim">${others === 1 ? "1 member of the input has" : `${count(others)} members of the input have`} no field here, and ${others === 1 ? "is" : "are"} sent, too: see the JSON.</p>`}</div>`;
}

/** @param {{field: Field, form: Form}} props */
function One({ field, form }) {
  const id = `input${nameOf(field)}`;
  const text = form.wrong[nameOf(field)] ?? (field.kind === "object" ? "" : written(field, valueAt(form.input, field.path)));
  const fault = field.kind === "object" || form.wrong[nameOf(field)] === undefined ? "" : readAs(field, text).fault;
  const about = [field.text, field.usual && field.kind !== "switch" ? `Default: ${shortened(field.usual)}.` : ""].filter(Boolean).join(" ");
  const described = [about && `${id}-about`, fault && `${id}-fault`].filter(Boolean).join(" ") || undefined;
  const below = html`${about && html`<p class="settings-about" id=${`${id}-about`}>${about}</p>`}${fault && html`<p class="field-error" id=${`${id}-fault`} role="alert">${fault}</p>`}`;
  if (field.kind === "object") {
    return html`<fieldset class="input-object"><legend>${field.title}</legend>${below}${field.fields.map((inner) => html`<${One} key=${nameOf(inner)} field=${inner} form=${form} />`)}</fieldset>`;
  }
  if (field.kind === "switch") {
    const isOn = (text || field.usual) === "true";
    const press = () => form.onValue(field, { kind: "literal", text: isOn ? "false" : "true" });
    return html`<div class="field"><label class="play-check"><input type="checkbox" id=${id} checked=${isOn} aria-describedby=${described} onChange=${press} />${field.title}</label>${below}</div>`;
  }
  const typed = (/** @type {any} */ event) => form.onText(field, event.target.value);
  const rest = { id, value: text, "aria-describedby": described, "aria-invalid": fault ? "true" : undefined, "aria-required": field.isNeeded ? "true" : undefined };
  return html`<div class="field"><label for=${id}>${field.title}${field.isNeeded ? "" : html` <span class="dim">optional</span>`}</label>${field.kind === "file" ? html`<${FileField} id=${id} field=${field} text=${text} onText=${typed} described=${described} />` : control(field, rest, typed)}${below}</div>`;
}

/** The control of a field that is written as text. @param {Field} field @param {any} rest @param {(event: any) => void} typed */
function control(field, rest, typed) {
  switch (field.kind) {
    case "choice": {
      const isForeign = rest.value !== "" && !field.choices.some(({ value }) => value === rest.value);
      return html`<select ...${rest} onChange=${typed}>${(!field.isNeeded || rest.value === "") && html`<option value="">${field.isNeeded ? "Choose" : field.usual ? "the default" : "none"}</option>`}${isForeign && html`<option value=${rest.value}>${rest.value}</option>`}${field.choices.map(({ value, title }) => html`<option key=${value} value=${value}>${title}</option>`)}</select>`;
    }
    case "long":
      return html`<textarea ...${rest} rows="3" onInput=${typed}></textarea>`;
    case "json":
      return html`<textarea ...${rest} class="mono" rows="3" spellcheck=${false} onInput=${typed}></textarea>`;
    default:
      return html`<input ...${rest} autocomplete="off" inputmode=${field.kind === "number" ? "decimal" : field.kind === "whole" ? "numeric" : undefined} onInput=${typed} />`;
  }
}

/** A file that becomes base64, or an address of data where the schema asks for one. @param {{id: string, field: Field, text: string, onText: (event: any) => void, described: string | undefined}} props */
function FileField({ id, field, text, onText, described }) {
  const [name, setName] = useState("");
  /** The file that was chosen last, until its field is gone. */
  const chosen = useRef(/** @type {File | null} */ (null));
  useEffect(() => () => {
    chosen.current = null;
  }, []);
  const choose = async (/** @type {any} */ event) => {
    const file = event.target.files[0];
    if (!file) return;
    chosen.current = file;
    const address = await dataAddress(file);
    if (chosen.current !== file) return;
    setName(file.name);
    onText({ target: { value: field.rules.format === "data-url" ? address : address.slice(address.indexOf(",") + 1) } });
  };
  return html`<input id=${id} type="file" accept=${field.rules.contentMediaType} aria-describedby=${described} onChange=${choose} />
    ${text && html`<p class="input-file"><span class="dim">${name ? `${name}, ` : ""}${size(text.length)} as base64</span><${Button} kind="quiet small" onClick=${() => onText({ target: { value: "" } })}>Remove<//></p>`}`;
}

/** @param {Blob} file @returns {Promise<string>} */
function dataAddress(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** @param {string} text */
const shortened = (text) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
