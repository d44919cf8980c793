// Ends every job of the queue immediately.
const { Worker } = require("bullmq");

const { hostname, port } = new URL(process.env.REDIS_URL);
const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };
new Worker("jobs", async () => ({ ok: true }), { connection, concurrency: Number(process.env.SLOTS) });
