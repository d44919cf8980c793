// Takes jobs over HTTP and puts them into a BullMQ queue.
const { Queue } = require("bullmq");
const fastify = require("fastify");

const { hostname, port } = new URL(process.env.REDIS_URL);
const queue = new Queue("jobs", { connection: { host: hostname, port: Number(port) } });
const app = fastify();

app.post("/run", async (request) => {
  const job = await queue.add("job", request.body.input);
  return { id: job.id, status: "IN_QUEUE" };
});
app.get("/finished", async () => String(await queue.getCompletedCount()));
app.listen({ host: "127.0.0.1", port: Number(process.env.PORT) });
