// The page of one request.
import { html } from "../dom.js";
import { place } from "../router.js";
import Job from "../ui/job.js";

export default function Request() {
  const { endpoint, job } = place.value.params;
  return html`<${Job} name=${endpoint} id=${job} />`;
}
