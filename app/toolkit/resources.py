"""The decorator `resource`: from a function to a resource, or to a template of many."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from app.errors import ConfigurationError
from app.protocol import messages
from app.protocol.content import Annotations, BlobResourceContents, Icon, ResourceContents, TextResourceContents
from app.protocol.features import Call, Completed, Completer, Outcome, Resource
from app.protocol.uri_template import UriTemplate
from app.strict_json import JsonObject
from app.toolkit.prompts import completers, crashed
from app.toolkit.running import run
from app.toolkit.signature import Signature, icons_and_meta, read_scopes


def resource(
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    scopes: tuple[str, ...] | list[str] = (),
    icons: Sequence[Icon] = (),
    annotations: Annotations | None = None,
    complete: Mapping[str, Completer] | None = None,
    ttl_ms: int = 0,
    public: bool = False,
    meta: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Resource]:
    """Make a resource of a function, `def` or `async def`, that returns text, bytes, contents, or a list of them.

    A URI with `{variables}` is a template (RFC 6570: `{id}` is one segment, `{+path}` may hold slashes), and its
    variables are the function's parameters. Their values are the caller's words: check them as you check arguments.
    None means that there is no such resource. A resource may ask like a tool. A client may keep what it read for
    `ttl_ms` milliseconds, for other users too where it is `public`.

    Raises ConfigurationError, when the module is imported, for a template or signature that cannot work.
    """

    def define(function: Callable[..., Any]) -> Resource:
        signature = Signature(function, kind="resource", name=name)
        template = UriTemplate(uri)
        if set(template.variables) != set(signature.parameters):
            raise ConfigurationError(
                [
                    f"{signature.name} takes ({', '.join(signature.parameters)}) and its URI has "
                    f"({', '.join(template.variables)}): give both the same names."
                ]
            )
        entry: JsonObject = {
            "uriTemplate" if template.variables else "uri": uri,
            "name": signature.name,
            "description": signature.description,
        }
        optional = {"title": title, "mimeType": mime_type, "size": size}
        entry |= {member: value for member, value in optional.items() if value is not None}
        if annotations is not None:
            entry["annotations"] = annotations.to_json()
        entry |= icons_and_meta(icons, meta)
        return Resource(
            uri=template,
            definition=lambda: entry,
            run=_Reader(signature, template, mime_type).run,
            scopes=read_scopes(signature.name, scopes),
            completers=completers(signature, complete or {}),
            ttl_ms=ttl_ms,
            public=public,
        )

    return define


class _Reader:
    def __init__(self, signature: Signature, template: UriTemplate, mime_type: str | None) -> None:
        self._signature = signature
        self._template = template
        self._mime_type = mime_type
        self._arguments = signature.arguments()

    def run(self, call: Call) -> Outcome:
        """Run one round. A variable that does not fit its type names nothing."""
        try:
            arguments = self._arguments.validate_strings(call.arguments)
        except ValidationError:
            return _contents([])
        uri = call.target

        def completed(result: Any) -> Outcome:
            given = list(result) if isinstance(result, list | tuple) else [result]
            return _contents([self._read(each, uri) for each in given if each is not None])

        return run(self._signature, call, arguments, completed=completed, crashed=crashed)

    def _read(self, given: ResourceContents | str | bytes, uri: str) -> ResourceContents:
        match given:
            case TextResourceContents() | BlobResourceContents():
                return given
            case str():
                return TextResourceContents(uri, given, self._mime_type)
            case bytes():
                return BlobResourceContents(uri, given, self._mime_type)
        raise TypeError(f"A resource returns text, bytes and contents, and not {type(given).__name__}")


def _contents(contents: Sequence[ResourceContents]) -> Outcome:
    return Completed(messages.complete({"contents": [each.to_json() for each in contents]}))
