// What one can do with an endpoint beside running jobs: pause, resume, and the actions that an explanation offers.
import * as api from "./api.js";
import { parseExact } from "./json_exact.js";
import { endpointPath } from "./router.js";
import { may } from "./session.js";
import { refresh } from "./store.js";

/** The most workers after a pause of which the server no longer knows what was before: its default. */
const WORKERS_MAX_DEFAULT = 3;

/** Changes an endpoint by its present record, so that no other change is lost. @param {{id: string}} endpoint @param {(record: any) => object} fieldsOf */
async function change(endpoint, fieldsOf) {
  const path = `/v1/endpoints/${encodeURIComponent(endpoint.id)}`;
  const { text, tag } = await api.tagged("GET", path);
  await api.json("PATCH", path, { body: fieldsOf(parseExact(text)), headers: tag ? { "If-Match": tag } : {} });
  refresh("/v1/endpoints");
  refresh(`/v2/${encodeURIComponent(endpoint.id)}`);
}

/** Running jobs finish, others wait. @param {{id: string}} endpoint */
export const pause = (endpoint) => change(endpoint, () => ({ workersMin: 0, workersMax: 0 }));

/** @param {{id: string}} endpoint */
export const resume = (endpoint) => change(endpoint, ({ pausedFrom }) => pausedFrom ?? { workersMax: WORKERS_MAX_DEFAULT });

/** What the actions of an explanation do, and what is said when they are done. @type {Record<string, {act: (endpoint: {id: string}) => Promise<void>, done: string}>} */
export const EXPLAINED = {
  resume: { act: resume, done: "The endpoint runs again." },
  tryNow: {
    act: async (endpoint) => {
      await api.json("POST", `/v1/endpoints/${encodeURIComponent(endpoint.id)}/try-now`);
      refresh(`/v2/${encodeURIComponent(endpoint.id)}`);
    },
    done: "A worker is started now.",
  },
  raiseWorkersMax: {
    act: (endpoint) => change(endpoint, ({ workersMax }) => ({ workersMax: workersMax + 1 })),
    done: "One more worker may run.",
  },
};

/** The pages of an endpoint where one does what an explanation offers. @type {Record<string, string>} */
const LEADS = { openLog: "logs", changeGpus: "settings", showCommand: "settings" };

/** The page where one does what an explanation offers; "" if there is none, or the key may not. @param {{id: string, slug?: string | null}} endpoint @param {string} action */
export const leadTo = (endpoint, action) => (LEADS[action] && (action === "openLog" ? may.read : may.change)(endpoint.id) ? `${endpointPath(endpoint)}/${LEADS[action]}` : "");
