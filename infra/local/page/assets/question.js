/** A question as the user sees it: a form, a link, or a request of another kind, each with three ways to answer. */

import { button, element, json } from "./dom.js";
import { form } from "./form.js";

/**
 * Shows the input requests of a round. `answered` gets the input responses when each has one: `accept`, `decline`
 * and `cancel` are three different things.
 */
export function questions(requests, answered) {
  const responses = {};
  const blocks = Object.entries(requests).map(([key, request]) => {
    const block = question(key, request, (response) => {
      responses[key] = response;
      block.replaceChildren(element("p", {}, `${key}: ${response.action ?? "answered"}`));
      if (Object.keys(responses).length === blocks.length) answered(responses);
    });
    return block;
  });
  return blocks;
}

function question(key, request, answer) {
  const { mode = "form", message, url, requestedSchema } = request.params ?? {};
  const refusals = [
    button("Decline", () => answer({ action: "decline" })),
    button("Cancel", () => answer({ action: "cancel" })),
  ];
  if (request.method !== "elicitation/create") return other(request, answer);
  if (mode === "url") {
    return element(
      "div",
      { class: "question", "data-key": key },
      element("p", { class: "message" }, message),
      element(
        "p",
        {},
        element("a", { href: web(url), target: "_blank", rel: "noopener noreferrer" }, "Open the page in a new tab"),
      ),
      element("p", { class: "hint" }, new URL(url).host),
      element(
        "div",
        { class: "buttons" },
        button("I agreed to open it", () => answer({ action: "accept" }), { class: "primary" }),
        ...refusals,
      ),
    );
  }
  const { fields, read } = form(requestedSchema);
  return element(
    "form",
    {
      class: "question",
      "data-key": key,
      novalidate: true,
      submit: (event) => {
        event.preventDefault();
        answer({ action: "accept", content: read() });
      },
    },
    element("p", { class: "message" }, message),
    ...fields,
    element("div", { class: "buttons" }, element("button", { class: "primary" }, "Accept"), ...refusals),
  );
}

/** A link that a server sent leads to a web page, or to nothing (client/elicitation, URL mode). */
function web(url) {
  return ["http:", "https:"].includes(new URL(url).protocol) ? url : null;
}

/** Sampling and roots: a model's or a file system's answer, typed as JSON. */
function other(request, answer) {
  const area = element("textarea", { rows: "4", "aria-label": `Result of ${request.method}, as JSON` });
  return element(
    "div",
    { class: "question" },
    element("p", { class: "message" }, request.method),
    json(request.params ?? {}),
    area,
    element(
      "div",
      { class: "buttons" },
      button("Send", () => answer(JSON.parse(area.value)), { class: "primary" }),
    ),
  );
}
