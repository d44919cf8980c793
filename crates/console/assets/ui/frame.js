// What is around every page: the side bar, the top bar, the palette and messages.
import { html, signal, useEffect } from "../dom.js";
import { Icon } from "../icons.js";
import { endpointPath, href, place } from "../router.js";
import { isDark, switchTheme, switchZone, utc } from "../prefs.js";
import { may, me } from "../session.js";
import { connection } from "../live.js";
import { now, unread } from "../store.js";
import { coarse, shortId } from "../format.js";
import { withRange } from "../timeline.js";
import { useEndpointList, useRecord } from "../fleet.js";
import { IconButton } from "./button.js";
import { helpOpen, paletteOpen, useKeyboard } from "./keys.js";
import { Later } from "../load.js";
import { customOpen, RangePicker } from "./range_picker.js";
import { Toast } from "./toast.js";

const drawerOpen = signal(false);
const closeDrawer = () => void (drawerOpen.value = false);
const whoOpen = signal(false);

/** @typedef {{path: string, name: string, icon: string, pages: string[], isShown: () => boolean}} Item */

/** @type {{title: string, items: Item[]}[]} */
export const GROUPS = [
  {
    title: "",
    items: [
      { path: "/", name: "Overview", icon: "home", pages: ["overview"], isShown: () => true },
      { path: "/endpoints", name: "Endpoints", icon: "endpoints", pages: ["endpoints", "new_endpoint"], isShown: () => true },
      { path: "/requests", name: "Requests", icon: "requests", pages: ["requests", "request"], isShown: () => true },
      { path: "/workers", name: "Workers", icon: "workers", pages: ["workers"], isShown: () => may.readsAny.value },
      { path: "/webhooks", name: "Webhooks", icon: "webhook", pages: ["webhooks"], isShown: () => may.readsAny.value && may.requestsAny.value },
    ],
  },
  {
    title: "Build",
    items: [
      { path: "/templates", name: "Templates", icon: "template", pages: ["templates"], isShown: () => may.readsTemplates.value },
      { path: "/volumes", name: "Volumes", icon: "volume", pages: ["volumes"], isShown: () => may.everything.value },
      { path: "/registries", name: "Registries", icon: "registry", pages: ["registries"], isShown: () => may.everything.value },
    ],
  },
  {
    title: "Access",
    items: [
      { path: "/api-keys", name: "API keys", icon: "key", pages: ["api_keys"], isShown: () => may.everything.value },
      { path: "/audit", name: "Audit log", icon: "audit", pages: ["audit"], isShown: () => may.everything.value },
    ],
  },
  {
    title: "Server",
    items: [
      { path: "/machines", name: "Machines and GPUs", icon: "machine", pages: ["machines"], isShown: () => may.everyRead.value },
      { path: "/usage", name: "Usage and cost", icon: "usage", pages: ["usage"], isShown: () => may.everyRead.value },
      { path: "/health", name: "Health", icon: "health", pages: ["health"], isShown: () => may.everyRead.value },
    ],
  },
];

/** The names of pages that belong to no endpoint. @type {Record<string, string>} */
const NAMES = { ...Object.fromEntries(GROUPS.flatMap(({ items }) => items.map(({ name, pages }) => [pages[0], name]))), new_endpoint: "New endpoint", not_found: "Not found" };

/** @param {Item} item */
function isCurrent(item) {
  const { page, params } = place.value;
  if (params.endpoint) return item.path === "/endpoints";
  return item.pages.includes(page);
}

function SideBar() {
  const endpoints = useEndpointList(10000).data;
  return html`<nav class=${drawerOpen.value ? "side open" : "side"} aria-label="Pages" id="side">
    <a class="brand" href=${href(withRange("/"))}><${Icon} name="logo" />Longshore</a>
    ${GROUPS.map(({ title, items }) => {
      const shown = items.filter((item) => item.isShown());
      return shown.length > 0 && html`<div class="nav-group" key=${title}>
        ${title && html`<p class="nav-title">${title}</p>`}
        ${shown.map((item) => html`<a key=${item.path} class="nav" href=${href(item.path === "/" ? withRange("/") : item.path)} aria-current=${isCurrent(item) ? "page" : undefined} onClick=${closeDrawer}>
          <${Icon} name=${item.icon} />${item.name}${item.path === "/endpoints" && endpoints && html`<span class="count">${endpoints.length}</span>`}
        </a>`)}
      </div>`;
    })}
  </nav>`;
}

/** The key that is signed in, as a button that opens what it may do. */
function Who() {
  const key = me.value?.key;
  if (!key) return null;
  const name = key.name || key.id;
  return html`<div class="menu-box"><button type="button" class="button quiet who" aria-label=${`Signed in as ${name}`} title=${name} aria-expanded=${whoOpen.value} onClick=${() => (whoOpen.value = !whoOpen.value)}><${Icon} name="user" /><span>${name}</span></button>
    ${whoOpen.value && html`<${Later} address="./ui/who.js" props=${{ onClose: () => (whoOpen.value = false) }} />`}</div>`;
}

/** Where one is: the names above this page, as links. */
function Crumbs() {
  const { page, params } = place.value;
  const endpoint = useRecord(params.endpoint).record.data;
  const tabs = /** @type {Record<string, string>} */ ({ settings: "Settings", playground: "Playground", metrics: "Metrics", webhooks: "Webhooks" });
  /** @type {{name: string, path?: string, mono?: boolean}[]} */
  const parts = [];
  if (params.endpoint) {
    const path = endpointPath({ id: params.endpoint });
    parts.push({ name: "Endpoints", path: "/endpoints" }, { name: endpoint?.name ?? params.endpoint, path: withRange(path) });
    const below = page === "endpoint" ? null : params.job || page === "requests" ? "Requests" : params.worker || page === "workers" ? "Workers" : (tabs[page] ?? "Logs");
    if (below) parts.push({ name: below, path: `${path}/${below.toLowerCase()}` });
    if (params.job ?? params.worker) parts.push({ name: shortId(params.job ?? params.worker), mono: true });
  } else {
    parts.push({ name: NAMES[page] ?? "Longshore" });
  }
  document.title = `${[...parts].reverse().map(({ name }) => name).join(" · ")} · Longshore`;
  return html`<nav class="crumbs" aria-label="Where you are"><ol>
    ${parts.map(({ name, path, mono }, at) => html`<li key=${name} class=${mono ? "mono" : ""}>${path && at < parts.length - 1 ? html`<a href=${href(path)}>${name}</a>` : html`<span aria-current="page">${name}</span>`}</li>`)}
  </ol></nav>`;
}

/** Whether what is shown is fresh. */
function Freshness() {
  const { state, lastAt } = connection.value;
  const age = now.value - lastAt;
  const old = state === "live" && unread.value?.value.value;
  const text = old ? `Some of this is ${coarse(now.value - old.at)} old` : state === "live" ? "Live" : state === "connecting" ? "Connecting" : `Reconnecting, last news ${coarse(age)} ago`;
  useEffect(() => {
    document.documentElement.classList.toggle("stale", state === "lost" && age > 30000);
  });
  return html`<div class=${`live ${old ? "lost" : state}`} title=${old ? `${text}. ${old.error?.message}` : text}><i></i><span>${text}</span></div>`;
}

function TopBar() {
  return html`<header class="top">
    <span class="menu-button"><${IconButton} icon="menu" label="Menu" expanded=${drawerOpen.value} onClick=${() => (drawerOpen.value = !drawerOpen.value)} /></span>
    <${Crumbs} />
    <span class="grow"></span>
    <button type="button" class="find" onClick=${() => (paletteOpen.value = true)}><${Icon} name="search" /><span>Find anything</span><kbd aria-hidden="true">Ctrl K</kbd></button>
    <${RangePicker} />
    <${Freshness} />
    <button type="button" class="button quiet zone" onClick=${switchZone} title="Switch between local time and UTC">${utc.value ? "UTC" : "Local"}</button>
    <span class="theme"><${IconButton} icon=${isDark() ? "sun" : "moon"} label=${isDark() ? "Use light colours" : "Use dark colours"} onClick=${switchTheme} /></span>
    <${Who} />
  </header>`;
}

/** @param {{children?: any}} props */
export function Frame({ children }) {
  useKeyboard();
  useEffect(() => {
    drawerOpen.value = whoOpen.value = false;
  }, [place.value.path]);
  return html`<div class="app">
    <a class="skip" href="#content">Skip to the content</a>
    <${SideBar} />
    ${drawerOpen.value && html`<div class="scrim" onClick=${closeDrawer}></div><${Later} address="./ui/drawer.js" props=${{ onClose: closeDrawer }} />`}
    <div class="main-column"><${TopBar} /><main id="content" tabindex="-1">${children}</main></div>
    ${paletteOpen.value && html`<${Later} address="./ui/palette.js" />`}${helpOpen.value && html`<${Later} address="./ui/key_help.js" />`}${customOpen.value && html`<${Later} address="./ui/custom_range.js" />`}<${Toast} />
  </div>`;
}
