"""Where the store is, and how a function signs in to it, read from environment variables."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit

_SCHEMES: Final = ("redis", "rediss")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_PATH = re.compile(r"(?:/(?P<database>[0-9]{0,5}))?\Z")
# User ids and cache names are lower case in what ElastiCache verifies, whatever case they were typed in.
_IAM_USER = re.compile(r"[a-z][a-z0-9-]{0,39}\Z")
_CACHE_NAME = re.compile(r"[a-z][a-z0-9-]{0,49}\Z")


@dataclass(frozen=True, slots=True)
class RedisIam:
    """How a function signs in to ElastiCache as its IAM role. `serverless` is what the endpoint's name says."""

    user: str
    cache_name: str
    region: str
    serverless: bool


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """The store. Environment variables, all with the prefix MCP_:

    REDIS_URL              rediss://... of the store
    REDIS_CLUSTER          1 for a cluster-mode server, such as ElastiCache Serverless
    REDIS_IAM_USER         ElastiCache user that the function's role signs in as, in place of a password in the URL
    REDIS_CACHE_NAME       name of the serverless cache, or id of the replication group, that the token is for
    REDIS_ALLOW_PLAINTEXT  1 to allow redis:// to another machine, in a network that is the deployment's alone
    """

    url: str = field(repr=False)
    cluster: bool
    iam: RedisIam | None

    @property
    def is_loopback(self) -> bool:
        """Whether the store is on this machine."""
        return urlsplit(self.url).hostname in _LOOPBACK

    @classmethod
    def read(cls, environment: Mapping[str, str], problems: list[str], *, local: bool) -> "RedisSettings | None":
        """Read and check everything. None with a problem more; no problem quotes the URL. `local` allows redis://."""

        def value(name: str) -> str:
            return environment.get(f"MCP_REDIS_{name}", "").strip()

        url, cluster = value("URL"), value("CLUSTER") == "1"
        store = _store(url, cluster=cluster, problems=problems)
        if store is None:
            return None
        if not (store.scheme == "rediss" or local or store.hostname in _LOOPBACK or value("ALLOW_PLAINTEXT") == "1"):
            problems.append(
                "MCP_REDIS_URL is redis://, which sends the password and browser sessions in clear: use rediss://, "
                "or set MCP_REDIS_ALLOW_PLAINTEXT=1 if nobody else is in that network."
            )
        iam = None
        if value("IAM_USER") or value("CACHE_NAME"):
            region = environment.get("AWS_REGION", "").strip()
            iam = RedisIam(value("IAM_USER"), value("CACHE_NAME"), region, ".serverless." in str(store.hostname))
            problems += _iam_problems(iam, store)
        return cls(url, cluster, iam)


def _store(url: str, *, cluster: bool, problems: list[str]) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        path = _PATH.match(parts.path)
        # Options after a ? would go before ours: no certificate asked for, or a minute to wait.
        plain = not parts.query and not parts.fragment and parts.port != 0
        if parts.scheme in _SCHEMES and parts.hostname and path and plain:
            if cluster and int(path["database"] or 0):
                problems.append("MCP_REDIS_URL names a database, and a cluster has only 0: leave it out.")
            return parts
    except ValueError:
        # Its message would quote what may be a part of the password.
        pass
    problems.append(
        "MCP_REDIS_URL must be a URL like rediss://cache.example.com:6379, or rediss://user:password@host:6379/0 with "
        "every special character of the password percent-encoded, and nothing after that."
    )
    return None


def _iam_problems(iam: RedisIam, store: SplitResult) -> list[str]:
    found = []
    if not _IAM_USER.match(iam.user):
        found.append(
            "MCP_REDIS_IAM_USER must be the id of the ElastiCache user, which is its name too, in lower case: set it, "
            "or leave MCP_REDIS_CACHE_NAME out for a store with a password."
        )
    if not _CACHE_NAME.match(iam.cache_name):
        found.append(
            "MCP_REDIS_CACHE_NAME must be the name of the serverless cache or the id of the replication group, in "
            "lower case: set it, or leave MCP_REDIS_IAM_USER out for a store with a password."
        )
    if not iam.region:
        found.append("AWS_REGION is not set, and MCP_REDIS_IAM_USER needs it: Lambda sets it, elsewhere set it.")
    if store.username or store.password:
        found.append("MCP_REDIS_URL has a user or password beside MCP_REDIS_IAM_USER: leave one of the two out.")
    if store.scheme != "rediss" and store.hostname not in _LOOPBACK:
        found.append("MCP_REDIS_IAM_USER needs TLS, which ElastiCache asks for too: use rediss:// in MCP_REDIS_URL.")
    return found
