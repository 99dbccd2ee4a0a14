"""The floor: the least that does the work, one function by hand on pyjwt and AES-GCM.

What it leaves out is what a server must have: headers that match the body, strict JSON, media types, schemas,
rounds and their limits, keys that rotate, a log.
"""

import base64
import hashlib
import json
import os
import time
from typing import Any

import jwt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

RESOURCE = os.environ["MCP_RESOURCE_URL"]
ISSUER = os.environ["MCP_ISSUER"]
CIPHER = AESGCM(base64.urlsafe_b64decode(os.environ["MCP_SEALING_KEYS"].partition(":")[2]))
FORM = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "description": "Tick to delete the report for good"}},
    "required": ["confirm"],
}
NAMES = ["delete_report", *(f"tool_{number:04}" for number in range(1, int(os.environ.get("BENCH_TOOLS", "1"))))]
TOOLS = [
    {
        "name": name,
        "description": "Delete a quarterly report for good. Asks the user first.",
        "inputSchema": {
            "type": "object",
            "properties": {"target": {"type": "string", "description": "Report name, like Q3"}},
            "required": ["target"],
        },
    }
    for name in NAMES
]

if "BENCH_JWKS" in os.environ:
    _keys = {key["kid"]: jwt.PyJWK(key) for key in json.loads(os.environ["BENCH_JWKS"])["keys"]}

    def signing_key(token: str) -> jwt.PyJWK:
        return _keys[jwt.get_unverified_header(token)["kid"]]
else:
    signing_key = jwt.PyJWKClient(os.environ["MCP_JWKS_URL"]).get_signing_key_from_jwt  # noqa: TID251  what people use


def handler(event: Any, context: Any) -> dict[str, Any]:
    try:
        token = event["headers"]["authorization"].removeprefix("Bearer ")
        user = jwt.decode(token, signing_key(token), algorithms=["ES256"], audience=RESOURCE, issuer=ISSUER)
    except (KeyError, jwt.PyJWTError):
        return {"statusCode": 401, "headers": {"www-authenticate": "Bearer"}, "body": "", "isBase64Encoded": False}
    message = json.loads(event["body"])
    method, params = message["method"], message["params"]
    try:
        result = {"tools": TOOLS} if method == "tools/list" else call(params, user)
    except (InvalidTag, ValueError):
        return answer(400, message["id"], "error", {"code": -32602, "message": "Invalid or expired requestState"})
    return answer(200, message["id"], "result", {"resultType": "complete", **result})


def answer(status: int, message_id: object, member: str, value: object) -> dict[str, Any]:
    body = json.dumps({"jsonrpc": "2.0", "id": message_id, member: value}, separators=(",", ":"))
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    return {"statusCode": status, "headers": headers, "body": body, "isBase64Encoded": False}


def call(params: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    arguments = params["arguments"]
    digest = hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()
    bound_to = json.dumps([RESOURCE, user["iss"], user["sub"], user["client_id"], params["name"], digest]).encode()
    state = opened(params["requestState"], bound_to) if "requestState" in params else None
    response = params.get("inputResponses", {}).get("confirm")
    if state is None or response is None:
        subject = arguments.get("target", "")
        carried = "x" * arguments.get("size", 0)
        request = {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": f"Delete the report {subject}? This cannot be undone.",
                "requestedSchema": FORM,
            },
        }
        sealed_state = sealed({"asked": ["confirm"], "carried": carried, "exp": time.time() + 600}, bound_to)
        return {"resultType": "input_required", "inputRequests": {"confirm": request}, "requestState": sealed_state}
    if response["action"] != "accept" or response["content"].get("confirm") is not True:
        return {"content": [{"type": "text", "text": "The user declined. The report is still there."}], "isError": True}
    text = f"{len(state['carried'])} bytes came back." if "size" in arguments else f"{arguments['target']} is deleted."
    return {"content": [{"type": "text", "text": text}]}


def sealed(claims: dict[str, Any], bound_to: bytes) -> str:
    nonce = os.urandom(12)
    return base64.urlsafe_b64encode(nonce + CIPHER.encrypt(nonce, json.dumps(claims).encode(), bound_to)).decode()


def opened(state: str, bound_to: bytes) -> dict[str, Any]:
    raw = base64.urlsafe_b64decode(state)
    claims: dict[str, Any] = json.loads(CIPHER.decrypt(raw[:12], raw[12:], bound_to))
    if not time.time() < claims["exp"]:
        raise ValueError("expired")
    return claims
