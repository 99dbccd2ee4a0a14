"""What clients discover: RFC 8414 metadata and the OpenID Connect discovery document, one dict for both."""

from typing import Any, Final

from infra.local.identity.client_metadata import GRANT_TYPES, RESPONSE_TYPES, TOKEN_ENDPOINT_AUTH_METHODS
from infra.local.identity.settings import IdentitySettings
from infra.local.identity.signing_keys import ALGORITHM

AUTHORIZE: Final = "/authorize"
SIGN_IN: Final = "/sign-in"
TOKEN: Final = "/token"  # noqa: S105  a path
REGISTER: Final = "/register"
REVOKE: Final = "/revoke"
USERINFO: Final = "/userinfo"
JWKS: Final = "/jwks"
STYLE: Final = "/style.css"


def server_metadata(settings: IdentitySettings) -> dict[str, Any]:
    """`issuer` is first byte for byte what clients compare `iss` with (RFC 8414 §3.3, RFC 9207 §2.4)."""
    issuer = settings.issuer
    return {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZE,
        "token_endpoint": issuer + TOKEN,
        "registration_endpoint": issuer + REGISTER,
        "revocation_endpoint": issuer + REVOKE,
        "userinfo_endpoint": issuer + USERINFO,
        "jwks_uri": issuer + JWKS,
        "scopes_supported": list(settings.scope_descriptions),
        "response_types_supported": list(RESPONSE_TYPES),
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        "token_endpoint_auth_methods_supported": list(TOKEN_ENDPOINT_AUTH_METHODS),
        "revocation_endpoint_auth_methods_supported": list(TOKEN_ENDPOINT_AUTH_METHODS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
        "claims_supported": ["iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "name", "email"],
        "prompt_values_supported": ["none", "login", "consent", "select_account"],
        "request_uri_parameter_supported": False,
    }
