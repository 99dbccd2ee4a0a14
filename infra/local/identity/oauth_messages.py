"""What Authlib sees of a request and what it answers, independent of the web framework."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from authlib.oauth2.rfc6749 import JsonPayload, JsonRequest, OAuth2Payload, OAuth2Request

# mypy: allow-subclassing-any

Parameters = Sequence[tuple[str, str]]


class OAuthPayload(OAuth2Payload):
    """Parameters in order, so that a repeated one can be seen (RFC 6749 §3.1)."""

    def __init__(self, parameters: Parameters) -> None:
        self._datalist: defaultdict[str, list[str]] = defaultdict(list)
        for name, value in parameters:
            self._datalist[name].append(value)

    @property
    def data(self) -> dict[str, str]:
        # RFC 6749 §3.1: a parameter without a value counts as omitted.
        return {name: values[0] for name, values in self._datalist.items() if values[0]}

    @property
    def datalist(self) -> defaultdict[str, list[str]]:
        return self._datalist

    @property
    def repeated(self) -> list[str]:
        return [name for name, values in self._datalist.items() if len(values) > 1]


class OAuthRequest(OAuth2Request):
    """Parameters from one place only: the query of the authorization endpoint, the body of the others."""

    payload: OAuthPayload

    def __init__(self, method: str, uri: str, *, headers: Mapping[str, str], parameters: Parameters) -> None:
        super().__init__(method, uri, headers=headers)
        self.payload = OAuthPayload(parameters)

    @property
    def args(self) -> dict[str, str]:
        return self.payload.data

    @property
    def form(self) -> dict[str, str]:
        return self.payload.data


class RegistrationPayload(JsonPayload):
    """The client metadata as it came, of any JSON type."""

    def __init__(self, data: object) -> None:
        self._data = data

    @property
    def data(self) -> object:
        return self._data


class RegistrationRequest(JsonRequest):
    """An RFC 7591 registration request."""

    def __init__(self, uri: str, data: object, *, headers: Mapping[str, str]) -> None:
        super().__init__("POST", uri, headers)
        self.payload = RegistrationPayload(data)


@dataclass
class Answer:
    """A response to be. Authlib's `iss` extension (RFC 9207) rewrites `location` when there is one."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)
    location: str | None = None

    @classmethod
    def from_authlib(cls, status: int, body: Any, headers: Sequence[tuple[str, str]]) -> "Answer":
        fields = dict(headers)
        return cls(status=status, body=body, location=fields.pop("Location", None), headers=fields)
