// Making and changing a template: what starts a worker, where, and with which variables.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { parseEnv } from "../new_endpoint.js";
import { parseWords } from "../shell_words.js";
import { may } from "../session.js";
import { useRead } from "../store.js";
import { quotedForShell } from "./copy_as.js";
import { Field, FormDialog } from "./form_dialog.js";
import { OvertakenChange, useTagged } from "./overtaken.js";
import { toast } from "./toast.js";

const PATH = "/v1/templates";
const REGISTRIES = "/v1/containerregistryauth";
const READ_MS = 10000;
/** The server's default. */
const MOUNTED = "/workspace";

/** @param {string[]} words */
const lineOf = (words) => words.map((word) => (/^[\w.,:=@%+/-]+$/.test(word) ? word : quotedForShell(word))).join(" ");

/** The variables with a text as lines; the server keeps the value behind `***`. @param {Record<string, any>} env */
const linesOf = (env) => Object.entries(env).filter(([, value]) => typeof value === "string").map(([name, value]) => `${name}=${value}`).join("\n");

/** The variables whose values are secrets. @param {Record<string, any>} env */
const secretsOf = (env) => Object.fromEntries(Object.entries(env).filter(([, value]) => typeof value !== "string"));

/** The variables as they are compared: those from secrets by their names. @param {Record<string, any>} env */
const shownEnv = (env) => [linesOf(env), ...Object.keys(secretsOf(env)).map((name) => `${name} from a secret`)].filter(Boolean).join(" · ");

/** What workers are started with, for comparison: the endpoints get a new version if it changes. @param {string[]} texts @param {string[]} lines @param {string} env */
const startOf = (texts, lines, env) => JSON.stringify([texts.map((text) => text.trim()), lines.map(parseWords), Object.entries(parseEnv(env).env).sort()]);

/** What is shown of a change that another one overtook. */
const SHOWN = [
  { name: "name", title: "Name" },
  { name: "imageName", title: "Image" },
  { name: "dockerEntrypoint", title: "Entrypoint", text: lineOf },
  { name: "dockerStartCmd", title: "Command", text: lineOf },
  { name: "workdir", title: "Folder" },
  { name: "volumeMountPath", title: "Mount path" },
  { name: "env", title: "Variables", text: shownEnv },
];

/** @param {{template?: any, users: Endpoint[], onClose: () => void}} props without `template` one is made; `users` are its endpoints */
export function TemplateForm({ template, users, onClose }) {
  const [name, setName] = useState(template?.name ?? "");
  const [image, setImage] = useState(template?.imageName ?? "");
  const [entrypoint, setEntrypoint] = useState(lineOf(template?.dockerEntrypoint ?? []));
  const [command, setCommand] = useState(lineOf(template?.dockerStartCmd ?? []));
  const [workdir, setWorkdir] = useState(template?.workdir ?? "");
  const [mounted, setMounted] = useState(template?.volumeMountPath ?? MOUNTED);
  const [env, setEnv] = useState(linesOf(template?.env ?? {}));
  const [registry, setRegistry] = useState(template?.containerRegistryAuthId ?? "");
  const registries = useRead(may.everything.value ? REGISTRIES : null, READ_MS).data ?? [];
  const path = `${PATH}/${encodeURIComponent(template?.id ?? "")}`;
  const tagged = useTagged(template ? path : null, template);
  const secrets = secretsOf(template?.env ?? {});
  const names = Object.keys(secrets);
  const send = async () => {
    const [beginning, words] = [parseWords(entrypoint), parseWords(command)];
    if (words === null || beginning === null) throw new Error(`A quotation mark of the ${words === null ? "command" : "entrypoint"} has no partner.`);
    const parsed = parseEnv(env);
    if (parsed.fault) throw new Error(parsed.fault);
    const both = names.find((one) => Object.hasOwn(parsed.env, one));
    if (both) throw new Error(`${both} has the value of a secret.`);
    const body = { name: name.trim(), imageName: image.trim(), dockerEntrypoint: beginning, dockerStartCmd: words, workdir: workdir.trim() || null, volumeMountPath: mounted.trim() || MOUNTED, env: { ...parsed.env, ...secrets }, containerRegistryAuthId: registry || null };
    if (template) await tagged.change(body);
    else await api.json("POST", PATH, { body: { ...body, isServerless: true } });
    toast(template ? `${body.name} is changed.` : `${body.name} is made. Choose it in an endpoint.`);
    onClose();
  };
  const typed = JSON.stringify([name, image, entrypoint, command, workdir, mounted, env, registry]);
  const [first] = useState(typed);
  const starts = startOf([image, workdir, mounted.trim() || MOUNTED], [entrypoint, command], env);
  const [startsFirst] = useState(starts);
  const registryName = (/** @type {string} */ id) => registries.find((/** @type {any} */ one) => one.id === id)?.name ?? id;
  return html`<${FormDialog} title=${template ? `Change ${template.name}` : "Make a template"} action=${template ? "Save" : "Make the template"} onSend=${send} onClose=${onClose} isUnsaved=${typed !== first}>
    <${Field} id="template-name" label="Name" value=${name} onInput=${setName} autofocus />
    <${Field} id="template-image" label="Image" value=${image} onInput=${setImage} help="For workers in containers; for others it is a label." />
    ${registries.length > 0 && html`<div class="field"><label for="template-registry">Login of the registry</label><select id="template-registry" value=${registry} onChange=${(/** @type {any} */ event) => setRegistry(event.target.value)}><option value="">none</option>${registries.map((/** @type {any} */ one) => html`<option key=${one.id} value=${one.id}>${one.name}</option>`)}</select></div>`}
    <${Field} id="template-entrypoint" label="Entrypoint" value=${entrypoint} onInput=${setEntrypoint} placeholder="that of the image" help="The beginning of the command line; the command follows it." />
    <${Field} id="template-command" label="Command" value=${command} onInput=${setCommand} placeholder="python -u handler.py" />
    <${Field} id="template-workdir" label="Folder" value=${workdir} onInput=${setWorkdir} help="Where the command runs: a path, or code:… of a deploy." />
    <${Field} id="template-mounted" label="Mount path" value=${mounted} onInput=${setMounted} help="Where a container has the volume of its endpoint." />
    <div class="field"><label for="template-env">Variables</label><textarea id="template-env" class="mono" rows="4" spellcheck=${false} placeholder="NAME=value" value=${env} onInput=${(/** @type {any} */ event) => setEnv(event.target.value)} aria-describedby="template-env-help"></textarea>
      <p class="dim" id="template-env-help">One a line. *** keeps the value that is stored.${names.length > 0 && ` From secrets, and kept: ${names.join(", ")}.`}</p></div>
    ${starts !== startsFirst && users.length > 0 && html`<p>${users.length === 1 ? `${users[0].name} gets a new version` : `${users.length} endpoints get a new version`}: workers end after their jobs, and others start.</p>`}
    <${OvertakenChange} what="template" tagged=${tagged} fields=${[...SHOWN, { name: "containerRegistryAuthId", title: "Login of the registry", text: registryName }]} />
  <//>`;
}
