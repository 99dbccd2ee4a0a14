/** The page: who is signed in, which tool is called, and the dialogue until its result is there. */

import { button, byId, element, json } from "./dom.js";
import { form } from "./form.js";
import { disturb, showEnvironments, showKeys } from "./machine.js";
import { Lost, Mcp, Unauthorized } from "./mcp.js";
import { finishSignIn, session, signIn, signOut } from "./oauth.js";
import { questions } from "./question.js";
import { watch } from "./wire.js";

const ENDPOINT = `${location.origin}/mcp`;

async function start() {
  byId("endpoint").textContent = ENDPOINT;
  byId("sign-in").addEventListener("click", () => attempt(() => signIn(ENDPOINT)));
  byId("sign-out").addEventListener("click", () => {
    signOut();
    location.reload();
  });
  disturb();
  watch(({ environment }) => {
    refresh(environment);
  });
  setInterval(() => document.hidden || showKeys().catch(() => {}), 5000);
  refresh();
  await attempt(finishSignIn);
  const current = session();
  byId("sign-in").hidden = current !== null;
  byId("sign-out").hidden = current === null;
  if (!current) return;
  byId("account").textContent = `Signed in as ${current.user}.`;
  await attempt(async () => showTools(new Mcp(ENDPOINT, current.token)));
}

function refresh(served) {
  Promise.all([showEnvironments(served), showKeys()]).catch(() => {});
}

async function showTools(mcp) {
  const tools = await mcp.tools();
  if (tools.length === 0) {
    byId("tools").replaceChildren(
      element(
        "p",
        {},
        "No tool is served yet. Make one with ",
        element("code", {}, "make new-tool"),
        ", and start again.",
      ),
    );
    return;
  }
  const place = element("div", {});
  const select = element(
    "select",
    { id: "tool", change: () => place.replaceChildren(toolForm(mcp, tools[select.selectedIndex])) },
    ...tools.map(({ name, title }) => element("option", { value: name }, title ? `${title} (${name})` : name)),
  );
  place.append(toolForm(mcp, tools[0]));
  byId("tools").replaceChildren(
    element("div", { class: "field" }, element("label", { for: "tool" }, "Tool"), select),
    place,
  );
}

function toolForm(mcp, tool) {
  const { fields, read } = form(tool.inputSchema);
  return element(
    "form",
    {
      novalidate: true,
      submit: (event) => {
        event.preventDefault();
        attempt(() => round(mcp, tool, read()));
      },
    },
    element("p", {}, tool.description ?? ""),
    ...fields,
    element("div", { class: "buttons" }, element("button", { class: "primary" }, "Call")),
  );
}

/** One round, and what follows from it: a question, a result, or nothing at all. */
async function round(mcp, tool, args, more) {
  dialogue("Waiting for the server ...");
  let result;
  try {
    result = await mcp.call(tool, args, more);
  } catch (error) {
    if (!(error instanceof Lost)) throw error;
    const again = () => attempt(() => round(mcp, tool, args, more));
    dialogue(
      "No response came",
      element("p", {}, "The tool may have run, or not. A client sends the same request once more."),
      element("div", { class: "buttons" }, button("Send the same request again", again, { class: "primary" })),
    );
    return;
  }
  if (result.resultType === "input_required") {
    const answer = (inputResponses) =>
      attempt(() =>
        round(mcp, tool, args, { inputResponses, ...(result.requestState && { requestState: result.requestState }) }),
      );
    const asked = Object.entries(result.inputRequests ?? {});
    if (asked.length === 0) await answer({});
    else dialogue(`${tool.title ?? tool.name} asks`, ...questions(result.inputRequests, answer));
    return;
  }
  const text = (result.content ?? []).map((block) => block.text ?? `[${block.type}]`).join("\n");
  const structured = result.structuredContent;
  dialogue(
    result.isError ? "The call ended without success" : "Result",
    structured === undefined ? element("p", { class: "result" }, text) : json(structured),
  );
}

function dialogue(heading, ...body) {
  byId("dialogue").hidden = false;
  byId("dialogue-heading").textContent = heading;
  byId("dialogue-body").replaceChildren(...body);
  byId("dialogue-heading").focus();
}

async function attempt(work) {
  try {
    await work();
  } catch (error) {
    if (error instanceof Unauthorized) {
      signOut();
      byId("sign-in").hidden = false;
      byId("sign-out").hidden = true;
    }
    dialogue("That did not work", element("p", {}, error.message));
  }
}

start();
