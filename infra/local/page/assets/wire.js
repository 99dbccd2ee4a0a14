/** The exchanges of the gateway as they happen: which round each is, who served it, and its JSON. */

import { byId, element, json } from "./dom.js";

/** Round numbers by the state that leads to the next one. */
const rounds = new Map();

export function watch(onExchange) {
  const stream = new EventSource("/_emulator/page/exchanges");
  let newest = 0;
  stream.addEventListener("message", ({ data }) => {
    const exchange = JSON.parse(data);
    if (exchange.number < newest) byId("wire").replaceChildren(); // the stack was started anew
    newest = exchange.number;
    add(exchange);
    onExchange(exchange);
  });
}

function add(exchange) {
  const list = byId("wire");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  list.append(element("li", { "data-environment": exchange.environment }, details(exchange)));
  byId("no-exchanges").hidden = true;
  if (atEnd) list.scrollTop = list.scrollHeight;
}

function details(exchange) {
  const { request, response } = exchange;
  return element(
    "details",
    {},
    element(
      "summary",
      {},
      element("span", { class: "environment" }, exchange.environment || "gateway"),
      " ",
      element("strong", {}, title(exchange)),
      ` ${exchange.status}, ${exchange.milliseconds} ms`,
      element("span", { class: "outcome" }, outcome(exchange)),
    ),
    element("h3", {}, "Request"),
    headers(`${exchange.method} ${exchange.path}`, request.headers),
    request.body === null ? null : json(request.body),
    element("h3", {}, "Response"),
    headers(String(exchange.status), response.headers),
    response.body === null ? null : json(response.body),
  );
}

function headers(first, all) {
  return json([first, ...all.map(([name, value]) => `${name}: ${value}`)].join("\n"));
}

function title({ method, path, request, response }) {
  const { method: called, params } = request.body ?? {};
  if (!called) return `${method} ${path}`;
  const round = params?.requestState ? (rounds.get(params.requestState) ?? 1) + 1 : 1;
  const next = last(response.body)?.result?.requestState;
  if (next) rounds.set(next, round);
  const what = [called, params?.name ?? params?.uri].filter(Boolean).join(" ");
  return next || params?.requestState ? `${what}, round ${round}` : what;
}

function outcome({ dropped, response }) {
  const { result, error } = last(response.body) ?? {};
  const said = error
    ? `error ${error.code ?? error}${error.message ? `: ${error.message}` : ""}`
    : result?.inputRequests
      ? `asks ${Object.keys(result.inputRequests).join(", ")}`
      : result?.isError
        ? "complete, with an error for the model"
        : (result?.resultType ?? "");
  return [said, dropped ? "the response was dropped" : ""].filter(Boolean).join("; ");
}

function last(body) {
  return Array.isArray(body) ? body.at(-1) : body;
}
