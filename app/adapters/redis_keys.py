"""Every key that we keep in Redis. Nothing in it is usable or names a person without the key ring.

    key                     value                                                       lives, s   written by
    mcp:flow:{F}            hash: status, attempts, lock_until, reason     clear        900        redis_flows
                                  principal (H), session, state (S)        hashed
                                  owner, step                              nonces
                                  terms, verifier                          sealed
    mcp:ix:{U}              hash: H(client|entry) -> expires:open:F:sealed handle       900 after  redis_vault
                                                                                        the last
    mcp:vault:{U}           hash: entry -> version:sealed record           sealed       for ever   redis_vault
    mcp:lock:{U}:entry      nonce of whoever refreshes the entry                        10         redis_vault
    mcp:sess:{S}            sealed browser session                                      1800       redis_sessions
    mcp:login:{S}           sealed login attempt, read once and deleted                 300        redis_sessions
    mcp:once:{N}            hash: open; request (H), owner (nonce), lease               the state  redis_once
                                  result                                     sealed    + 60
    mcp:yes:{U}             hash: N -> expires:withdrawn:sealed approval                the last   redis_approvals
    mcp:rate:{N}            sorted set: nonce -> time           clear                   window     redis_limits

    F = SHA-256("flow" || handle)         S = SHA-256 of another random secret
    U = H(issuer|subject)                 H = HMAC-SHA256 under the pepper (app.sealing.BlindIndex)
    N = H(flow id|step), H(client|tool|arguments), H(kind|principal)

`entry` ("provider:github", "secret:stripe_key") is in clear: it tells what this server can connect to, and
nobody's name. Sealed values are bound to their key, so that a value moved elsewhere does not open.

The braces are hash tags: what one user has is in one slot of a cluster, and each script touches one slot.
No key is found by SCAN; to forget a user, delete `mcp:vault:{U}`, `mcp:ix:{U}` and `mcp:yes:{U}`. The policy must
be `noeviction`: an evicted mark lets an effect happen twice, an evicted vault disconnects its user. What else is
evicted costs a question asked twice.
"""


def flow(flow_id: str) -> str:
    return f"mcp:flow:{{{flow_id}}}"


def pointers(user: str) -> str:
    return f"mcp:ix:{{{user}}}"


def vault(user: str) -> str:
    return f"mcp:vault:{{{user}}}"


def lock(user: str, entry: str) -> str:
    return f"mcp:lock:{{{user}}}:{entry}"


def once(name: str) -> str:
    return f"mcp:once:{{{name}}}"


def approvals(user: str) -> str:
    return f"mcp:yes:{{{user}}}"


def rate(name: str) -> str:
    return f"mcp:rate:{{{name}}}"
