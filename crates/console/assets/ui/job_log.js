// What the worker of a job printed during its attempts; lines that name the job are marked.
import { html } from "../dom.js";
import { LogLines } from "./log_lines.js";

/** @param {{endpoint: Endpoint, job: Job}} props */
export const JobLog = ({ endpoint, job }) => html`<${LogLines} endpoint=${endpoint} filter=${{ job: job.id }} title="Log" since=${job.createdAt} marked=${job.id} isOfAll />`;
