// Asks for everything that a worker of text answers, with the official `openai` library, and prints what it saw as JSON.

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { OpenAI, APIError } = require("openai");

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const model = "m";
const messages = [{ role: "user", content: "Polly wants" }];
const tools = [{ type: "function", function: { name: "fly", parameters: { type: "object" } } }];
const seen = {};

async function refusal(asking) {
  try {
    await asking;
  } catch (error) {
    if (!(error instanceof APIError)) throw error;
    return { status: error.status, message: error.error.message, type: error.type, code: error.code };
  }
}

seen.models = (await client.models.list()).data.map((one) => one.id);
seen.chat = (await client.chat.completions.create({ model, messages })).choices[0].message.content;
const called = await client.chat.completions.create({ model, messages, tools });
seen.tools = called.choices[0].message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
seen.completion = (await client.completions.create({ model, prompt: "hello" })).choices[0].text;
const found = await client.embeddings.create({ model, input: "a", encoding_format: "float" });
seen.embedding = found.data[0].embedding;
seen.flat = await refusal(client.chat.completions.create({ model, messages, user: "flat" }));
seen.nested = await refusal(client.chat.completions.create({ model, messages, user: "nested" }));
console.log(JSON.stringify(seen));
