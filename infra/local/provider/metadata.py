"""Where everything is at Local Hub, and its RFC 8414 metadata document."""

from typing import Any, Final

from infra.local.provider.settings import SCOPES

METADATA: Final = "/.well-known/oauth-authorization-server"
AUTHORIZE: Final = "/authorize"
SIGN_IN: Final = "/sign-in"
TOKEN: Final = "/token"  # noqa: S105  a path
REVOKE: Final = "/revoke"
USER: Final = "/api/user"
REPOSITORIES: Final = "/api/repositories"
STYLE: Final = "/hub.css"
CONTROL: Final = "/_control/faults"
RECORD: Final = "/_control/record"

_CLIENT_AUTHENTICATION: Final = ["client_secret_basic", "client_secret_post"]


def server_metadata(issuer: str) -> dict[str, Any]:
    """What RFC 8414 §2 lists, as far as it is here."""
    return {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZE,
        "token_endpoint": issuer + TOKEN,
        "revocation_endpoint": issuer + REVOKE,
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": _CLIENT_AUTHENTICATION,
        "revocation_endpoint_auth_methods_supported": _CLIENT_AUTHENTICATION,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
