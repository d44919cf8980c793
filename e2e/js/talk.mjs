// Every call of the official JavaScript SDK against a server, reported as one JSON object.
// usage: node talk.mjs BASE_URL KEY ECHO_ENDPOINT GENERATOR_ENDPOINT EMPTY_ENDPOINT
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const sdk = require("runpod-sdk");
const runpodSdk = sdk.default ?? sdk;

const [baseUrl, key, echoId, generatorId, emptyId] = process.argv.slice(2);
const client = runpodSdk(key, { baseUrl });
const [echo, generator, empty] = [echoId, generatorId, emptyId].map((id) => client.endpoint(id));
const report = {};

report.runSync = await echo.runSync({ input: { a: 1 } }, 60000);

const job = await echo.run({ input: { b: 2 } });
report.run = job;
report.statusSync = await echo.statusSync(job.id, 60000);
report.status = await echo.status(job.id);

const streaming = await generator.run({ input: { count: 4, pause: 0.1 } });
report.stream = [];
for await (const chunk of generator.stream(streaming.id, 60000)) report.stream.push(chunk);

const queued = await empty.run({ input: {} });
await empty.run({ input: {} });
report.cancel = await empty.cancel(queued.id);
report.health = await empty.health();
report.purge = await empty.purgeQueue();

try {
  await runpodSdk("wrong", { baseUrl }).endpoint(echoId).health();
} catch (error) {
  report.wrongKey = error.response?.status;
}
console.log(JSON.stringify(report));
