// Problems as cards: the reason, the evidence, and the next step.
import { html, useState } from "../dom.js";
import { EXPLAINED, leadTo } from "../endpoint_actions.js";
import { endpointPath, href, place } from "../router.js";
import { count } from "../format.js";
import { may } from "../session.js";
import { Button } from "./button.js";
import { Alert } from "./card.js";
import { attempt } from "./toast.js";

/** More problems than these are folded below the worst ones: the page has more to say. */
const OPEN_MAX = 4;
const SHOWN_FOLDED = 3;

/** @param {{problems: import("../fleet.js").Problem[]}} props */
export default function Problems({ problems }) {
  const [isOpen, setOpen] = useState(false);
  if (problems.length === 0) return null;
  const more = problems.length <= OPEN_MAX ? 0 : problems.length - SHOWN_FOLDED;
  const shown = isOpen || more === 0 ? problems : problems.slice(0, SHOWN_FOLDED);
  return html`<section class="alerts" aria-label="Attention">${shown.map((problem) => html`<${ProblemCard} key=${problem.id} problem=${problem} />`)}
    ${more > 0 && html`<${Button} onClick=${() => setOpen(!isOpen)}>${isOpen ? `Show the worst ${SHOWN_FOLDED}` : `Show ${count(more)} more`}<//>`}</section>`;
}

/** @param {{problem: import("../fleet.js").Problem}} props */
function ProblemCard({ problem }) {
  const { endpoint: id, slug, name, title, text, evidence, jobs } = problem;
  const path = endpointPath({ id, slug });
  const isHere = place.value.params.endpoint !== undefined;
  const action = may.change(id) && problem.actions.find((one) => EXPLAINED[one.do]);
  const act = action && html`<${Button} kind="primary" onClick=${() => attempt(() => EXPLAINED[action.do].act({ id }), EXPLAINED[action.do].done)}>${action.title}<//>`;
  const lead = !act && isHere && problem.actions.find((one) => leadTo({ id, slug }, one.do));
  const waits = jobs > 0 && !/\bjobs?\b.*\bwait/i.test(text) ? ` ${count(jobs)} ${jobs === 1 ? "job waits" : "jobs wait"}.` : "";
  return html`<${Alert} tone=${problem.severity} title=${isHere ? title : `${name}: ${title}`}
    actions=${html`${act}${lead && html`<a class="button" href=${href(leadTo({ id, slug }, lead.do))}>${lead.title}</a>`}${!isHere && html`<a class="button" href=${href(path)}>Open</a>`}`}>
    <p>${text}${waits}</p>
    ${evidence.length > 0 && html`<pre class="mono" tabindex="0">${evidence.join("\n")}</pre>`}
  <//>`;
}
