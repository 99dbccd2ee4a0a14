/** Signs in as any MCP client does: discovery, PKCE, an authorization code, an access token. No secret is involved. */

const ATTEMPT = "sign-in attempt";
const SESSION = "session";
const CLIENT_ID = `${location.origin}/_emulator/page/client.json`;
const REDIRECT_URI = `${location.origin}/`;

/** The session of this tab, or null. It survives a reload, and no other tab sees it. */
export function session() {
  return JSON.parse(sessionStorage.getItem(SESSION));
}

export function signOut() {
  sessionStorage.removeItem(SESSION);
}

/** Leaves for the authorization server, which sends the user back here. */
export async function signIn(resource) {
  const { issuer, scopes, server } = await discover(resource);
  const verifier = random();
  const state = random();
  const scope = [...scopes, ...["openid", "profile"].filter((each) => server.scopes_supported?.includes(each))].join(
    " ",
  );
  sessionStorage.setItem(
    ATTEMPT,
    JSON.stringify({ issuer, state, verifier, resource, endpoint: server.token_endpoint }),
  );
  const url = new URL(server.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: "code",
    client_id: CLIENT_ID,
    redirect_uri: REDIRECT_URI,
    resource,
    scope,
    state,
    code_challenge: base64url(
      new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))),
    ),
    code_challenge_method: "S256",
  });
  location.assign(url);
}

/** Takes the authorization response out of the address, where there is one, and begins the session. */
export async function finishSignIn() {
  const response = new URLSearchParams(location.search);
  if (!response.has("state")) return;
  history.replaceState(null, "", REDIRECT_URI);
  const attempt = JSON.parse(sessionStorage.getItem(ATTEMPT));
  sessionStorage.removeItem(ATTEMPT);
  // RFC 9207: a response of another issuer, or to another attempt, is nobody's.
  if (attempt?.state !== response.get("state") || attempt.issuer !== response.get("iss")) {
    throw new Error("The answer is not to the sign-in that this tab began. Sign in again.");
  }
  if (response.has("error")) throw new Error(`The authorization server said: ${response.get("error")}.`);
  const tokens = await fetchJson(attempt.endpoint, {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "authorization_code",
      code: response.get("code"),
      redirect_uri: REDIRECT_URI,
      client_id: CLIENT_ID,
      code_verifier: attempt.verifier,
      resource: attempt.resource,
    }),
  });
  sessionStorage.setItem(SESSION, JSON.stringify({ token: tokens.access_token, user: name(tokens.id_token) }));
}

/** RFC 9728 from the 401, then RFC 8414. */
async function discover(resource) {
  const refused = await fetch(resource, { method: "POST" });
  const challenge = refused.headers.get("www-authenticate") ?? "";
  const metadataUrl = challenge.match(/resource_metadata="([^"]+)"/)?.[1];
  if (!metadataUrl) throw new Error(`${resource} sends no challenge that names its metadata.`);
  const metadata = await fetchJson(metadataUrl);
  const issuer = metadata.authorization_servers[0];
  const server = await fetchJson(`${issuer}/.well-known/oauth-authorization-server`);
  if (server.issuer !== issuer) throw new Error(`The metadata of ${issuer} is another issuer's.`);
  return { issuer, scopes: metadata.scopes_supported ?? [], server };
}

async function fetchJson(url, options) {
  const response = await fetch(url, options);
  const body = await response.json();
  if (!response.ok)
    throw new Error(`${url} answered ${response.status}: ${body.error_description ?? body.error ?? ""}`);
  return body;
}

/** For display only. The ID token came from the token endpoint itself, so its signature adds nothing here. */
function name(idToken) {
  if (!idToken) return "you";
  const claims = atob(idToken.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
  const { name, sub } = JSON.parse(new TextDecoder().decode(Uint8Array.from(claims, (each) => each.charCodeAt(0))));
  return name ?? sub;
}

function random() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
