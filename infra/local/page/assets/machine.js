/** The machine behind the endpoint: its environments, the keys in Valkey, and the two ways to disturb a flow. */

import { byId, element } from "./dom.js";

let last = "";

/** Shows the environments, the one that served last marked. */
export async function showEnvironments(served = last) {
  last = served;
  const environments = await (await fetch("/_emulator/environments")).json();
  byId("environments").replaceChildren(
    ...environments.map(({ name, pid, invocations, state }) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, name, name === last ? element("span", { class: "hint" }, "served last") : null),
        ...[pid ?? "", invocations, state].map((each) => element("td", {}, String(each))),
      ),
    ),
  );
}

export async function showKeys() {
  const response = await fetch("/_emulator/page/keys");
  if (!response.ok) return;
  const keys = await response.json();
  byId("no-keys").hidden = keys.length > 0;
  byId("keys").replaceChildren(
    ...keys.map(({ name, kind, lifetime, size }) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, name),
        ...[kind, lifetime === null ? "until deleted" : `${lifetime} s`, size].map((each) =>
          element("td", {}, String(each)),
        ),
      ),
    ),
  );
}

/** Makes the two buttons work. */
export function disturb() {
  command(
    "restart",
    "restart",
    "Replacing ...",
    "All environments are new. What was asked before can still be answered.",
  );
  command("drop", "drop-response", "", "The next call is served, and its response gets lost on the way.");
}

function command(id, endpoint, meanwhile, done) {
  const status = byId("control-status");
  byId(id).addEventListener("click", async ({ currentTarget }) => {
    currentTarget.disabled = true;
    status.textContent = meanwhile;
    try {
      const response = await fetch(`/_emulator/${endpoint}`, { method: "POST" });
      status.textContent = response.ok ? done : (await response.json()).message;
      await showEnvironments();
    } catch {
      status.textContent = "The emulator does not answer. Is `make run` still running?";
    } finally {
      currentTarget.disabled = false;
    }
  });
}
