// The state of the server, and the work of those who run it: jobs, backups, integrity, keys, the audit log.

import { curl } from "./api.js";
import { audit, auditQuery } from "./operate-audit.js";
import { backups } from "./operate-backups.js";
import { integrity } from "./operate-integrity.js";
import { jobs, jobsPath } from "./operate-jobs.js";
import { keys } from "./operate-keys.js";
import { state } from "./operate-state.js";
import { allCollections } from "./pieces.js";
import { curlButton, heading, note, tabs } from "./ui.js";

/**
 * The tabs: what they show, of which scopes one is needed, whether the key must be for all collections, and the main
 * request as [path, query].
 */
const TABS = {
  state: { title: "State", show: state, scopes: [], request: () => ["/readyz"] },
  jobs: { title: "Jobs", show: jobs, scopes: ["read", "delete"], request: jobsPath },
  backups: { title: "Backups", show: backups, scopes: ["admin"], whole: true, request: () => ["/v1/backups"] },
  integrity: { title: "Integrity", show: integrity, scopes: ["metrics"], request: () => ["/metrics"] },
  keys: { title: "Keys", show: keys, scopes: ["keys"], whole: true, request: () => ["/v1/keys"] },
  audit: {
    title: "Audit log",
    show: audit,
    scopes: ["admin"],
    whole: true,
    request: (params) => ["/v1/audit", auditQuery(params)],
  },
};

export async function render(page, context) {
  const { params, access, may, href } = context;
  const name = Object.hasOwn(TABS, params.get("tab") ?? "") ? params.get("tab") : "state";
  const tab = TABS[name];
  const fits = ({ scopes, whole }) => (scopes.length === 0 || scopes.some(may)) && (!whole || allCollections(access));
  const [path, query] = tab.request(params);
  const offered = Object.entries(TABS).filter(([, one]) => fits(one));
  page.append(
    heading(
      "Operate",
      "Whether the server is well, what it does in the background, and what was decided.",
      curlButton(() => curl("GET", path, { query })),
    ),
    tabs(
      "Parts of this page",
      offered.map(([of, { title }]) => [href("operate", { tab: of }), title, of === name]),
    ),
  );
  if (fits(tab)) return tab.show(page, context);
  const needed = tab.scopes.some(may) ? "for all collections" : `with the scope ${tab.scopes.join(" or ")}`;
  page.append(note("warn", `This part needs a key ${needed}.`));
}
