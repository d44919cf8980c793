// What the overview and the list of endpoints of an empty server show: three ways to the first endpoint.
import { html } from "../dom.js";
import { href } from "../router.js";
import { may } from "../session.js";
import { Empty } from "./card.js";
import { CodeLine } from "./copy.js";

export default function FirstEndpoint() {
  return html`<${Empty}>
    <h2>No endpoint yet</h2>
    <p>An endpoint is a queue of jobs with the workers that run them. Three ways lead to the first one.</p>
    <p>Run a folder with a handler here, and change it while it runs:</p><${CodeLine} text="longshore dev examples/hello" />
    <p>Put a folder on this server:</p><${CodeLine} text="longshore deploy examples/hello" />
    ${may.everything.value ? html`<p>Or make it here, from a command, an image or a template:</p><a class="button" href=${href("/new-endpoint")}>New endpoint</a>` : html`<p>Or create it with a template of your own:</p><${CodeLine} text="longshore endpoint create hello --template my-template" />`}
  <//>`;
}
