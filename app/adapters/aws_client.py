"""Calls to AWS services, bounded in time, and their failures sorted: what a wait mends, and what somebody must mend.

botocore takes longer to import than a request to answer: a function that asks AWS for nothing does not pay for it.
"""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final

from app.errors import Unavailable

CONNECT_TIMEOUT: Final = 1
READ_TIMEOUT: Final = 2
ATTEMPTS: Final = 2
RETRY_AFTER: Final = 5


class AwsRefused(Unavailable):
    """AWS will answer the same until somebody changes a grant or a setting, which the reason names."""


class AwsClients:
    """The clients of one function, made by the first call to each service. Safe to share between threads.

    `open_client` makes the client of a service in place of botocore.
    """

    def __init__(self, open_client: Callable[[str], Any] | None = None) -> None:
        self._open_client = open_client
        self._lock = Lock()
        self._session: Any = None
        self._clients: dict[str, Any] = {}

    def forget(self) -> None:
        """Drop connections and credentials, as after a SnapStart restore."""
        with self._lock:
            clients, self._clients, self._session = self._clients, {}, None
        for client in clients.values():
            client.close()

    def prepare(self) -> None:
        """Import what the first call would import. Connects nothing, and resolves no credentials."""
        import botocore.session  # noqa: F401

    def call(
        self, service: str, operation: str, *, remedies: Mapping[str, str], **parameters: Any
    ) -> Mapping[str, Any]:
        """Call an operation. `remedies` says for each error code that no wait will mend what to do about it.

        Raises Unavailable, and AwsRefused for those codes and for a function without credentials or region.
        """
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

        try:
            response: Mapping[str, Any] = getattr(self._client(service), operation)(**parameters)
            return response
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "no error code"))
            # The code alone: the service's own message may quote what was sent.
            if code in remedies:
                raise AwsRefused(f"{service}: {code}: {remedies[code]}", retry_after=RETRY_AFTER) from error
            raise Unavailable(f"{service}: {code}", retry_after=RETRY_AFTER) from error
        except (NoCredentialsError, NoRegionError) as error:
            remedy = "run it under a role, with AWS_REGION set"
            raise AwsRefused(f"{service}: {type(error).__name__}: {remedy}", retry_after=RETRY_AFTER) from error
        except BotoCoreError as error:
            raise Unavailable(f"{service}: {type(error).__name__}", retry_after=RETRY_AFTER) from error

    def _client(self, service: str) -> Any:
        with self._lock:
            if service not in self._clients:
                self._clients[service] = (self._open_client or self._botocore_client)(service)
            return self._clients[service]

    def _botocore_client(self, service: str) -> Any:
        from botocore.config import Config
        from botocore.session import get_session

        # The defaults wait for a minute, five times over: longer than any request may take.
        config = Config(
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=READ_TIMEOUT,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        )
        self._session = self._session or get_session()
        return self._session.create_client(service, config=config)
