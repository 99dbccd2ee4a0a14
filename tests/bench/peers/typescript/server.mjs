// The official TypeScript SDK on Lambda: createMcpHandler, jose, and the SDK's own requestState codec.
// That codec signs and does not encrypt, and binds to what `bind` names; the tool compares the argument itself.
import {
  McpServer,
  OAuthError,
  OAuthErrorCode,
  acceptedContent,
  createMcpHandler,
  createRequestStateCodec,
  inputRequired,
  requireBearerAuth,
} from "@modelcontextprotocol/server";
import { createLocalJWKSet, createRemoteJWKSet, jwtVerify } from "jose";
import { z } from "zod";

const resource = process.env.MCP_RESOURCE_URL;
const issuer = process.env.MCP_ISSUER;
const keys = process.env.BENCH_JWKS
  ? createLocalJWKSet(JSON.parse(process.env.BENCH_JWKS))
  : createRemoteJWKSet(new URL(process.env.MCP_JWKS_URL));
const codec = createRequestStateCodec({
  key: Buffer.from(process.env.MCP_SEALING_KEYS.split(":")[1], "base64url"),
  bind: (ctx) => [ctx.mcpReq.method, ctx.http.authInfo.clientId, ctx.http.authInfo.extra.subject].join("\0"),
});
const confirmation = z.object({ confirm: z.boolean().describe("Tick to delete the report for good") });
const target = z.string().describe("Report name, like Q3");
const text = (value, more = {}) => ({ content: [{ type: "text", text: value }], ...more });
const asking = async (ctx, message, state) =>
  inputRequired({
    inputRequests: { confirm: inputRequired.elicit({ message, requestedSchema: confirmation }) },
    requestState: await codec.mint(state, ctx),
  });

function makeServer() {
  const server = new McpServer(
    { name: "bench", version: "1" },
    { capabilities: { tools: {} }, requestState: { verify: codec.verify } },
  );
  server.registerTool(
    "delete_report",
    {
      description: "Delete a quarterly report for good. Asks the user first.",
      inputSchema: z.object({ target }),
    },
    async ({ target }, ctx) => {
      const state = ctx.mcpReq.requestState();
      const response = ctx.mcpReq.inputResponses?.confirm;
      if (state?.target !== target || response === undefined) {
        return asking(ctx, `Delete the report ${target}? This cannot be undone.`, { target });
      }
      const accepted = acceptedContent(ctx.mcpReq.inputResponses, "confirm", confirmation);
      return accepted?.confirm === true
        ? text(`${target} is deleted.`)
        : text("The user declined. The report is still there.", { isError: true });
    },
  );
  for (let number = 1; number < Number(process.env.BENCH_TOOLS ?? 1); number++) {
    server.registerTool(
      `tool_${String(number).padStart(4, "0")}`,
      {
        description: "Stand in a long list of tools.",
        inputSchema: z.object({ target, count: z.number().int().min(1).default(1).describe("How often") }),
      },
      async ({ target, count }) => text(`${target} ${count}`),
    );
  }
  if (process.env.BENCH_CARRY) {
    server.registerTool(
      "carry",
      { description: "Carry so many bytes from one round to the next.", inputSchema: z.object({ size: z.number() }) },
      async ({ size }, ctx) => {
        const state = ctx.mcpReq.requestState();
        return state === undefined || ctx.mcpReq.inputResponses?.confirm === undefined
          ? asking(ctx, "Carry on?", "x".repeat(size))
          : text(`${state.length} bytes came back.`);
      },
    );
  }
  return server;
}

const mcp = createMcpHandler(makeServer, { responseMode: "json" });
const authenticate = requireBearerAuth({
  expectedResource: resource,
  verifier: {
    async verifyAccessToken(token) {
      try {
        const { payload } = await jwtVerify(token, keys, { issuer, audience: resource, algorithms: ["ES256"] });
        return {
          token,
          clientId: payload.client_id,
          scopes: payload.scope.split(" "),
          expiresAt: payload.exp,
          resource: new URL(resource),
          extra: { subject: payload.sub },
        };
      } catch {
        throw new OAuthError(OAuthErrorCode.InvalidToken, "The token does not verify");
      }
    },
  },
});

export async function handler(event) {
  const body = event.isBase64Encoded ? Buffer.from(event.body, "base64") : event.body;
  const request = new Request(`https://${event.headers.host}${event.rawPath}`, {
    method: event.requestContext.http.method,
    headers: event.headers,
    body,
  });
  const access = await authenticate(request);
  const response = access instanceof Response ? access : await mcp.fetch(request, { authInfo: access });
  return {
    statusCode: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.text(),
    isBase64Encoded: false,
  };
}
