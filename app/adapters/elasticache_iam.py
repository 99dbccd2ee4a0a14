"""ElastiCache IAM authentication: a user name, and a signed token where a password would be.

The token is a presigned request "connect" (Signature Version 4) without its scheme, and good for 15 minutes. It is
made here from the role's credentials, without asking AWS. botocore is imported by the first one.
"""

import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from app.adapters.aws_client import RETRY_AFTER, AwsRefused
from app.errors import Unavailable

LIFETIME: Final = 900
KEPT: Final = 600
"""Seconds for which a token is used again. It ends with the role's session as well, and botocore renews that
10 minutes before its end at the latest."""


class ElastiCacheIam:
    """The credentials of a new connection, for `redis_connection.connect`. Safe to share between threads."""

    def __init__(
        self, user: str, cache_name: str, *, region: str, serverless: bool, clock: Callable[[], float] = time.time
    ) -> None:
        """`cache_name` is the serverless cache's name or the replication group's id, in lower case."""
        self._user = user
        self._cache_name = cache_name
        self._region = region
        self._resource = {"ResourceType": "ServerlessCache"} if serverless else {}
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Drop the token, as after a SnapStart restore."""
        self._signed: tuple[float, str] = (float("-inf"), "")

    def __call__(self) -> tuple[str, str]:
        """User name and token. Raises Unavailable, and AwsRefused where there are no credentials to sign with."""
        now = self._clock()
        signed_at, token = self._signed
        # A clock that was set back has no say in how old a token is.
        if not 0 <= now - signed_at < KEPT:
            token = self._sign()
            self._signed = (now, token)
        return self._user, token

    def _sign(self) -> str:
        from botocore.exceptions import BotoCoreError, NoCredentialsError
        from botocore.model import ServiceId
        from botocore.session import get_session
        from botocore.signers import RequestSigner

        # A session of its own: one that is kept would keep credentials that the environment has replaced.
        session = get_session()
        query = urlencode({"Action": "connect", "User": self._user, **self._resource})
        request = {
            "method": "GET",
            "url": f"https://{self._cache_name}/?{query}",
            "body": {},
            "headers": {},
            "context": {},
        }
        try:
            signer = RequestSigner(
                ServiceId("elasticache"),
                self._region,
                "elasticache",
                "v4",
                session.get_credentials(),
                session.get_component("event_emitter"),
            )
            url: str = signer.generate_presigned_url(request, operation_name="connect", expires_in=LIFETIME)
        except NoCredentialsError as error:
            raise AwsRefused(
                "elasticache: no credentials to sign with: run under a role", retry_after=RETRY_AFTER
            ) from error
        except BotoCoreError as error:
            raise Unavailable(f"elasticache: {type(error).__name__}", retry_after=RETRY_AFTER) from error
        return url.removeprefix("https://")
