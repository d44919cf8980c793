// "Copy as" for a chat: the next request for curl and for OpenAI's clients. It never contains a key.
import { ascii, curl, literal, serverUrl } from "./copy_as.js";

/** @typedef {import("./copy_as.js").Call} Call */

/** @param {Call} call */
const baseOf = (call) => `${serverUrl()}/v2/${encodeURIComponent(call.endpoint)}/openai/v1`;

/** A JSON value as Python. @param {any} value @returns {string} */
function python(value) {
  if (value === true || value === false) return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (value && typeof value === "object") return `{${Object.entries(value).map(([name, member]) => `${literal(name)}: ${python(member)}`).join(", ")}}`;
  return value === null ? "None" : typeof value === "string" ? literal(value) : JSON.stringify(value);
}

/** @type {{name: string, of: (call: Call) => string}[]} */
export const CHAT_FORMS = [
  {
    name: "curl",
    of: (call) => curl(`${baseOf(call)}/chat/completions`, call.body ?? "", "-N "),
  },
  {
    name: "Python",
    of: (call) => `import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=${literal(baseOf(call))}, api_key=os.environ["LONGSHORE_API_KEY"])\nfor part in client.chat.completions.create(**${python(JSON.parse(call.body ?? "{}"))}):\n    if part.choices:\n        print(part.choices[0].delta.content or "", end="", flush=True)`,
  },
  {
    name: "JavaScript",
    of: (call) => `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: ${JSON.stringify(baseOf(call))}, apiKey: process.env.LONGSHORE_API_KEY });\nfor await (const part of await client.chat.completions.create(${ascii(call.body ?? "{}")})) {\n  process.stdout.write(part.choices[0]?.delta?.content ?? "");\n}`,
  },
];
