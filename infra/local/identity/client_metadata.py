"""What a client says about itself (RFC 7591 §2), checked alike for registration and for metadata documents."""

from typing import Annotated, Any, Final, Literal, get_args

from authlib.oauth2.rfc7591 import InvalidClientMetadataError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from infra.local.identity.redirect_uris import check_redirect_uri

GRANT_TYPES: Final = ("authorization_code", "refresh_token")
RESPONSE_TYPES: Final = ("code",)
AuthMethod = Literal["none", "client_secret_basic", "client_secret_post"]
TOKEN_ENDPOINT_AUTH_METHODS: Final = get_args(AuthMethod)

ShortText = Annotated[str, Field(max_length=200)]


class ClientMetadata(BaseModel):
    """The fields that this server acts on or echoes; it ignores the rest, as RFC 7591 §2 asks."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    redirect_uris: Annotated[list[Annotated[str, Field(max_length=2000)]], Field(min_length=1, max_length=20)]
    token_endpoint_auth_method: AuthMethod = "client_secret_basic"  # noqa: S105  a method, not a secret
    grant_types: list[str] = ["authorization_code"]
    response_types: list[str] = ["code"]
    client_name: ShortText | None = None
    scope: Annotated[str, Field(max_length=1000)] | None = None
    application_type: Literal["native", "web"] = "web"
    software_id: ShortText | None = None
    software_version: ShortText | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_null_as_absent(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {name: value for name, value in data.items() if value is not None}
        return data

    @field_validator("grant_types")
    @classmethod
    def _keep_supported_grant_types(cls, value: list[str]) -> list[str]:
        # RFC 7591 §2 lets a server replace values; clients list grants that they will never use here.
        return _supported(value, GRANT_TYPES, needed="authorization_code")

    @field_validator("response_types")
    @classmethod
    def _keep_supported_response_types(cls, value: list[str]) -> list[str]:
        return _supported(value, RESPONSE_TYPES, needed="code")


def parse_client_metadata(data: object) -> ClientMetadata:
    """Check untrusted client metadata; an error names the field and never repeats its value."""
    try:
        metadata = ClientMetadata.model_validate(data)
    except ValidationError as error:
        fields = sorted({str(item["loc"][0]) if item["loc"] else "document" for item in error.errors()})
        raise InvalidClientMetadataError(
            f"Missing or not acceptable: {', '.join(fields)}. See RFC 7591 section 2"
        ) from error
    for uri in metadata.redirect_uris:
        check_redirect_uri(uri)
    return metadata


def _supported(value: list[str], supported: tuple[str, ...], *, needed: str) -> list[str]:
    if needed not in value:
        raise ValueError(f"{needed} is the only flow here: include it")
    return [item for item in supported if item in value]
