// Talks to a server with the official `openai` library, unmodified, and prints what it saw as JSON.

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { OpenAI, APIError } = require("openai");

const [baseURL, apiKey, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });
const messages = [{ role: "user", content: "Polly wants" }];
const seen = {};

async function refusal(asking) {
  try {
    await asking;
  } catch (error) {
    if (!(error instanceof APIError)) throw error;
    return { status: error.status, message: error.message, type: error.type, code: error.code };
  }
}

seen.models = (await client.models.list()).data.map((one) => one.id);
seen.chat = (await client.chat.completions.create({ model, messages })).choices[0].message.content;
seen.streamed = [];
for await (const part of await client.chat.completions.create({ model, messages, stream: true })) {
  seen.streamed.push(part.choices[0].delta.content ?? "");
}
seen.completion = (await client.completions.create({ model, prompt: "hello" })).choices[0].text;
seen.response = (await client.responses.create({ model, input: "hello" })).output_text;
seen.events = [];
for await (const event of await client.responses.create({ model, input: "hello", stream: true })) {
  seen.events.push(event.type);
}
seen.embedding = (await client.embeddings.create({ model, input: ["a", "b"] })).data.map((one) => one.embedding.length);
seen.badRequest = await refusal(client.chat.completions.create({ model, messages: [] }));
seen.wrongKey = await refusal(new OpenAI({ baseURL, apiKey: "wrong" }).chat.completions.create({ model, messages }));
console.log(JSON.stringify(seen));
