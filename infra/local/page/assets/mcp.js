/** MCP 2026-07-28 over Streamable HTTP: one POST for one request, and everything it needs in it. */

const VERSION = "2026-07-28";

/** The server cannot be reached, or its response got lost: nobody here knows what it did. */
export class Lost extends Error {}

export class Unauthorized extends Error {}

export class Mcp {
  #url;
  #token;
  #nextId = 1;

  constructor(url, token) {
    this.#url = url;
    this.#token = token;
  }

  async tools() {
    const tools = [];
    let cursor;
    do {
      const result = await this.#request("tools/list", cursor ? { cursor } : {});
      tools.push(...result.tools);
      cursor = result.nextCursor;
    } while (cursor);
    return tools;
  }

  /** One round of a call. `more` is empty, or what the round before asked for: `inputResponses` and `requestState`. */
  async call(tool, args, more = {}) {
    const params = { name: tool.name, arguments: args, ...more };
    return this.#request("tools/call", params, { "mcp-name": encode(tool.name), ...mirrored(tool.inputSchema, args) });
  }

  async #request(method, params, headers = {}) {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": VERSION,
      "io.modelcontextprotocol/clientInfo": { name: "The local page", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {}, url: {} } },
    };
    let response, text;
    try {
      response = await fetch(this.#url, {
        method: "POST",
        headers: {
          authorization: `Bearer ${this.#token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": VERSION,
          "mcp-method": method,
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: this.#nextId++, method, params: { ...params, _meta: meta } }),
      });
      text = await response.text();
    } catch (error) {
      throw new Lost(error.message);
    }
    if (response.status === 401) throw new Unauthorized("The token is no longer accepted. Sign in again.");
    const { result, error } = read(text, response);
    if (error?.code) {
      throw new Error(`${error.code}: ${error.message}${error.data ? ` ${JSON.stringify(error.data)}` : ""}`);
    }
    // A gateway's own answer, or an OAuth error such as insufficient_scope.
    if (result === undefined) throw new Error(`HTTP ${response.status}: ${text}`);
    return result;
  }
}

function read(text, response) {
  const events = text.split("\n").filter((line) => line.startsWith("data: "));
  const stream = response.headers.get("content-type")?.startsWith("text/event-stream");
  try {
    return JSON.parse(stream ? events.at(-1).slice("data: ".length) : text);
  } catch {
    return {};
  }
}

/** Streamable HTTP, x-mcp-header: arguments that gateways read. */
function mirrored(schema, args) {
  const headers = {};
  for (const [name, member] of Object.entries(schema?.properties ?? {})) {
    const value = args?.[name];
    if (value === undefined || value === null) continue;
    if (member["x-mcp-header"]) headers[`mcp-param-${member["x-mcp-header"]}`.toLowerCase()] = encode(String(value));
    if (member.properties) Object.assign(headers, mirrored(member, value));
  }
  return headers;
}

/** Streamable HTTP, Value Encoding. */
function encode(text) {
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?base64?")) return text;
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}
