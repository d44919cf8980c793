// Downloading the jobs of a list: those that are chosen, or all that match; how far it is, and stopping it.
import { html, useEffect, useRef, useState } from "../dom.js";
import { said } from "../api.js";
import { count } from "../format.js";
import { load } from "../load.js";
import { Button } from "./button.js";
import { toast } from "./toast.js";

/** @typedef {import("../download_jobs.js").Form} Form */
/** @typedef {import("../request_list.js").RequestList} RequestList */

/**
 * One download at a time.
 * @param {RequestList} list
 * @returns {{found: number | null, begin: (form: Form, chosen?: Set<string> | null) => Promise<void>, stop: () => void}} `found` is null while there is none
 */
export function useDownload(list) {
  const [found, setFound] = useState(/** @type {number | null} */ (null));
  const ending = useRef(new AbortController());
  useEffect(() => () => ending.current.abort(), []);
  const begin = async (/** @type {Form} */ form, /** @type {Set<string> | null} */ chosen = null) => {
    const end = new AbortController();
    ending.current.abort();
    ending.current = end;
    setFound(0);
    try {
      // While the server does not answer, the module does not come.
      const stopped = new Promise((_, reject) => end.signal.addEventListener("abort", reject));
      const { downloadJobs, JOBS_MAX } = await Promise.race([load("./download_jobs.js"), stopped]);
      const outcome = await downloadJobs(list, form, chosen, end.signal, setFound);
      const cut = outcome.isCut ? `: the newest ${count(JOBS_MAX)}, which is the most` : "";
      toast(`${count(outcome.found)} ${outcome.found === 1 ? "job is" : "jobs are"} in the file${cut}.`);
    } catch (failed) {
      if (!end.signal.aborted) toast(said(failed), "bad");
    }
    if (ending.current === end) setFound(null);
  };
  return { found, begin, stop: () => ending.current.abort() };
}

/** All that match as a file, for a menu. @param {ReturnType<typeof useDownload>} download @returns {import("./menu.js").Item[]} */
export const downloadItems = (download) => [
  { name: "Download as JSONL", act: () => download.begin("jsonl") },
  { name: "Download as CSV", act: () => download.begin("csv") },
];

/** What is chosen as a file. @param {{download: ReturnType<typeof useDownload>, chosen: Set<string> | null}} props `chosen`: null for all that match */
export const DownloadButtons = ({ download, chosen }) => html`<${Button} kind="quiet small" icon="download" label="Download the chosen jobs as JSONL" onClick=${() => download.begin("jsonl", chosen)}>JSONL<//><${Button} kind="quiet small" icon="download" label="Download the chosen jobs as CSV" onClick=${() => download.begin("csv", chosen)}>CSV<//>`;

/** How far the download is. @param {{download: ReturnType<typeof useDownload>}} props */
export function Downloading({ download }) {
  if (download.found === null) return null;
  return html`<li class="task"><span>Reading the jobs for a file: ${count(download.found)} so far</span><progress aria-label="Download"></progress><${Button} kind="quiet small" onClick=${download.stop}>Stop<//></li>`;
}
