// "Copy as": the same call as curl, Python, JavaScript, Go and a command line. It never contains a key.
import { html } from "../dom.js";
import { base } from "../router.js";
import { me } from "../session.js";
import { copy } from "./copy.js";
import { Menu } from "./menu.js";
import { attempt } from "./toast.js";

/**
 * @typedef {{endpoint: string, input: unknown, body?: string, route?: "run" | "runsync"}} Call
 *   `body` is the whole body as JSON text, where it must be exactly that; `input` is then its JSON text, too
 */

/** The address that clients use. */
export const serverUrl = () => (me.value?.server.publicUrl || location.origin + base).replace(/\/$/, "");

/** A text between single quotes, for a shell. @param {string} text */
export const quotedForShell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Linux gives a command no longer argument. */
const ARGUMENT_BYTES_MAX = 131071;

/**
 * A command with a text as its last argument; a longer text comes through its standard input.
 * @param {string} text
 * @param {(argument: string) => string} command
 * @param {string} input the argument that stands for standard input
 * @param {string} [before] what stands before the text
 */
function withText(text, command, input, before = "") {
  const isShort = new Blob([text]).size <= ARGUMENT_BYTES_MAX;
  return isShort ? command(before + quotedForShell(text)) : `printf %s ${quotedForShell(text)} | ${command(input)}`;
}

/** A call with curl. @param {string} address @param {string} body @param {string} [flags] */
export const curl = (address, body, flags = "") => withText(body, (data) => `curl ${flags}${quotedForShell(address)} \\\n  -H "Authorization: Bearer $LONGSHORE_API_KEY" \\\n  -H 'Content-Type: application/json' \\\n  ${data}`, "--data-binary @-", "-d ");

/** @param {Call} call */
const url = (call) => `${serverUrl()}/v2/${encodeURIComponent(call.endpoint)}/${call.route ?? "run"}`;

/** The input as JSON text. @param {Call} call */
const inputOf = (call) => (call.body === undefined ? JSON.stringify(call.input) : String(call.input));

/** The body as JSON text. @param {Call} call */
const bodyOf = (call) => call.body ?? `{"input":${inputOf(call)}}`;

/** Whether the command line can send all of it: it has no flags for a policy or a webhook. @param {Call} call */
const isPlain = (call) => bodyOf(call) === `{"input":${inputOf(call)}}`;

/** JSON text of ASCII alone is a literal in JavaScript. @param {string} text */
export const ascii = (text) => text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A text as a literal of Go and of Python: each character beyond ASCII has one escape. @param {string} text */
export const literal = (text) => JSON.stringify(text).replace(/[\u007f-\u{10ffff}]/gu, (one) => `\\U${(one.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`);

/** @type {{name: string, of: (call: Call) => string}[]} */
export const FORMS = [
  {
    name: "curl",
    of: (call) => curl(url(call), bodyOf(call)),
  },
  {
    name: "Python",
    of: (call) => `import os, requests\n\nanswer = requests.post(\n    ${literal(url(call))},\n    headers={"Authorization": "Bearer " + os.environ["LONGSHORE_API_KEY"], "Content-Type": "application/json"},\n    data=${literal(bodyOf(call))}.encode(),\n)\nprint(answer.json())`,
  },
  {
    name: "JavaScript",
    of: (call) => `const answer = await fetch(${JSON.stringify(url(call))}, {\n  method: "POST",\n  headers: { Authorization: \`Bearer \${process.env.LONGSHORE_API_KEY}\`, "Content-Type": "application/json" },\n  body: ${ascii(JSON.stringify(bodyOf(call)))},\n});\nconsole.log(await answer.json());`,
  },
  {
    name: "Go",
    of: (call) => `package main\n\nimport (\n\t"fmt"\n\t"io"\n\t"net/http"\n\t"os"\n\t"strings"\n)\n\nfunc main() {\n\trequest, err := http.NewRequest("POST", ${literal(url(call))}, strings.NewReader(${literal(bodyOf(call))}))\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("LONGSHORE_API_KEY"))\n\trequest.Header.Set("Content-Type", "application/json")\n\tanswer, err := http.DefaultClient.Do(request)\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\tdefer answer.Body.Close()\n\tio.Copy(os.Stdout, answer.Body)\n\tfmt.Println()\n}`,
  },
  {
    name: "longshore",
    of: (call) => withText(inputOf(call), (input) => `longshore ${call.route ?? "run"} ${quotedForShell(call.endpoint)} ${input} --url ${quotedForShell(serverUrl())}${call.route === "runsync" ? "" : " --wait"}`, "-"),
  },
];

/**
 * @param {{call: Call | (() => Promise<Call>), label?: string, forms?: {name: string, of: (call: Call) => string}[], hasCommand?: boolean}} props
 *   `call` may be read when a form is chosen; then `hasCommand` says whether the command line can send it
 */
export function CopyAs({ call, label = "Copy as", forms = FORMS, hasCommand = true }) {
  const choose = (/** @type {{name: string, of: (call: Call) => string}} */ form) => attempt(async () => {
    await copy(form.of(typeof call === "function" ? await call() : call));
  }, `Copied as ${form.name}. It reads the key from LONGSHORE_API_KEY.`);
  const isSendable = typeof call === "function" ? hasCommand : isPlain(call);
  const items = forms.filter((form) => form.name !== "longshore" || isSendable).map((form) => ({ name: form.name, act: () => choose(form) }));
  return html`<${Menu} label=${label} icon="copy" items=${items} />`;
}
