// The official TypeScript client behind a line protocol: one JSON command in, one JSON reply out.
//   {"connect": url, "mode", "capabilities"} -> {"authorize": url}, then {"redirect": url} in, {"connected": names} out
//   {"call": name, "arguments", "answers"}  -> {"result", "servedBy", "unused"} or {"error": {code, message, data}}
//   {"ask": name, "arguments"}              -> {"result"}, the input_required result as it came
//   {"retry": {name, arguments, inputResponses, requestState}} -> as for call
// A command {"pause": true} makes the driver stop before each answer with {"paused": true} until a line comes in.
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const receive = async () => JSON.parse((await lines.next()).value ?? '{}');
const send = message => process.stdout.write(JSON.stringify(message) + '\n');

let servedBy = [];
let answers = [];
let pause = false;
let tokens, registration, verifier, authorizationUrl;

const provider = {
  redirectUrl: 'http://127.0.0.1:9999/callback',
  clientMetadata: {
    client_name: 'TypeScript client',
    redirect_uris: ['http://127.0.0.1:9999/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none'
  },
  clientInformation: () => registration,
  saveClientInformation: information => void (registration = information),
  tokens: () => tokens,
  saveTokens: saved => void (tokens = saved),
  redirectToAuthorization: url => void (authorizationUrl = String(url)),
  saveCodeVerifier: saved => void (verifier = saved),
  codeVerifier: () => verifier
};

const recordingFetch = async (url, init) => {
  const response = await fetch(url, init);
  if (new Headers(init?.headers).get('mcp-method') === 'tools/call') {
    servedBy.push(response.headers.get('x-emulator-environment'));
  }
  return response;
};

const makeClient = (mode, capabilities) => {
  const client = new Client({ name: 'typescript', version: '1' }, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', async () => {
    if (pause) {
      send({ paused: true });
      await receive();
    }
    return answers.shift();
  });
  return client;
};

const makeTransport = url => new StreamableHTTPClientTransport(new URL(url), { authProvider: provider, fetch: recordingFetch });

async function connect(url, mode, capabilities) {
  const transport = makeTransport(url);
  try {
    const client = makeClient(mode, capabilities);
    await client.connect(transport);
    return client;
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    send({ authorize: authorizationUrl });
    const { redirect } = await receive();
    await transport.finishAuth(new URL(redirect).searchParams);
  }
  const client = makeClient(mode, capabilities);
  await client.connect(makeTransport(url));
  return client;
}

let client;
const commands = {
  async connect({ connect: url, mode = 'auto', capabilities = { elicitation: { form: {} } } }) {
    client = await connect(url, mode, capabilities);
    return { connected: (await client.listTools()).tools.map(tool => tool.name) };
  },
  async pause({ pause: on }) {
    pause = on;
    return {};
  },
  async call({ call: name, arguments: args, answers: given }) {
    [servedBy, answers] = [[], [...given]];
    return { result: await client.callTool({ name, arguments: args }), servedBy, unused: answers.length };
  },
  async ask({ ask: name, arguments: args }) {
    return { result: await client.callTool({ name, arguments: args }, { allowInputRequired: true }) };
  },
  async retry({ retry: params }) {
    return { result: await client.callTool(params, { allowInputRequired: true }) };
  }
};

for (let command = await receive(); Object.keys(command).length; command = await receive()) {
  try {
    send(await commands[Object.keys(command)[0]](command));
  } catch (error) {
    send({ error: { code: error.code ?? null, message: error.message, data: error.data ?? null } });
  }
}
await client?.close();
process.exit(0);
