// A request beside the list, on wide screens: the address holds which one.
import { html, useEffect, useRef } from "../dom.js";
import { endpointPath, go, href, place, setQuery } from "../router.js";
import { shortId } from "../format.js";
import { IconButton } from "./button.js";
import { useMedia } from "./use_media.js";

/** @typedef {{id: string, endpoint: string}} Beside a job, and the id or slug of its endpoint */

const WIDE = matchMedia("(min-width: 1400px)");

/** The page of a job. @param {Beside} beside */
const pageOf = ({ id, endpoint }) => `${endpointPath({ id: endpoint })}/requests/${encodeURIComponent(id)}`;

/**
 * The job that the address names: beside the list, or on its page where there is no room.
 * @param {string | null} endpoint whose list it is; null if it is the list of all
 */
export function useJobBeside(endpoint) {
  const isWide = useMedia(WIDE);
  const { query } = place.value;
  const id = query.get("job");
  const of = endpoint ?? query.get("endpoint");
  const beside = id && of ? { id, endpoint: of } : null;
  useEffect(() => {
    if (beside && !isWide) go(pageOf(beside), { replace: true });
  }, [id, of, isWide]);
  /** The query of the list from which a job was opened here: the entry before has it. */
  const openedFrom = useRef(/** @type {string | null} */ (null));
  const isOpen = useRef(false);
  useEffect(() => {
    // Also after the browser's Back.
    if (isOpen.current && !id && document.activeElement === document.body) focusList();
    isOpen.current = id !== null;
    if (!id) openedFrom.current = null;
  }, [id]);
  const open = (/** @type {import("../request_list.js").Row} */ row) => {
    const opened = { id: row.job.id, endpoint: row.endpoint.slug || row.endpoint.id };
    if (!isWide) return go(pageOf(opened));
    if (!beside) openedFrom.current = withoutJob(query, endpoint);
    setQuery({ job: opened.id, endpoint: endpoint === null ? opened.endpoint : null }, { replace: beside !== null });
  };
  const close = () => {
    if (!beside) return;
    const isOpenedHere = openedFrom.current === withoutJob(query, endpoint);
    // The browser goes back a little later: until then, a second press must not go back again.
    openedFrom.current = null;
    if (isOpenedHere) history.back();
    else setQuery({ job: null, endpoint: null });
    focusList();
  };
  return { beside: isWide ? beside : null, open, close };
}

/** What the address holds beside the open job. @param {URLSearchParams} query @param {string | null} endpoint whose list it is */
function withoutJob(query, endpoint) {
  const rest = new URLSearchParams(query);
  rest.delete("job");
  if (endpoint === null) rest.delete("endpoint");
  return rest.toString();
}

const focusList = () => (/** @type {HTMLElement | null} */ (document.querySelector(".grid-scroll")) ?? document.getElementById("search"))?.focus({ preventScroll: true });

/** @param {{beside: Beside, onClose: () => void, children?: any}} props */
export const JobPanel = ({ beside, onClose, children }) => html`<section class="job-panel" aria-label=${`Request ${shortId(beside.id)}`}>
  <div class="job-panel-top"><a href=${href(pageOf(beside))}>Open as a page</a><span class="grow"></span><${IconButton} icon="close" label="Close the request" onClick=${onClose} /></div>
  ${children}
</section>`;
