"""`python -m infra.keys`: the sealing keys of a deployment. Says what it would do, and does it with --apply.

Never sees a key: KMS draws them and gives only what it alone can unwrap.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from app.adapters.wrapped_keyring import RingKey, State, WrappedKeyring
from infra import key_rotation
from infra.key_rotation import FIRST_KID, PEPPER_KID, NotSafe, promotable_at, retirable_at, utc
from infra.key_store import KeyStore, StoredRing, StoreError

_STEPS: Final[Mapping[str, str]] = {
    "list": "show the ring",
    "create": "make a ring of one key",
    "add": "add a key that opens; it seals after `promote`",
    "promote": "let a key seal",
    "retire": "let a key open nothing any more",
    "restore": "let a retired key open again",
    "drop": "remove a retired key for good",
}
# What template.yaml calls them.
_RING_OUTPUT: Final = "KeyRingSecret"
_KMS_KEY_OUTPUT: Final = "SealingKey"


def run(step: argparse.Namespace, store: KeyStore, *, now: int) -> list[str]:
    """Take one step, and return what to tell. Raises NotSafe, StoreError and botocore's errors."""
    stored = store.read()
    if step.name == "create":
        ring, done, following = _created(step, store, stored, now)
    elif stored.ring is None:
        raise StoreError(f"The secret holds no ring yet: {_command(step, 'create')}")
    elif step.name == "list":
        return _described(stored.ring, now)
    else:
        ring, done, following = _next(step, store, stored.ring, now)
    if not step.apply:
        return [f"Would {done}.", *following, "Nothing is written: run it again with --apply."]
    store.write(ring, replaces=stored)
    return [f"Done: {done}.", *following]


def _created(
    step: argparse.Namespace, store: KeyStore, stored: StoredRing, now: int
) -> tuple[WrappedKeyring, str, list[str]]:
    if stored.ring is not None:
        raise NotSafe("The secret holds a ring, and a new one would open nothing that it sealed: add a key to it.")
    missing = [f"--{name.replace('_', '-')}" for name in ("app", "kms_key") if not getattr(step, name)]
    if missing:
        raise StoreError(f"A ring is made for an app, by a KMS key: give --stack, or {' and '.join(missing)}.")
    pepper, key = (_wrapped(step, store, step.kms_key, step.app, kid) for kid in (PEPPER_KID, FIRST_KID))
    ring = key_rotation.create(step.app, step.kms_key, pepper=pepper, key=key, now=now)
    done = f"make a ring of one key, {FIRST_KID}, and the pepper {PEPPER_KID}, for {step.app}"
    settings = f"MCP_SEALING_APP={step.app}, MCP_KMS_KEY={step.kms_key} and MCP_SEALING_SECRET={step.secret}"
    return ring, done, [f"The functions need {settings}, which template.yaml gives them."]


def _next(
    step: argparse.Namespace, store: KeyStore, ring: WrappedKeyring, now: int
) -> tuple[WrappedKeyring, str, list[str]]:
    """The ring after a step, what the step does, and what comes after it."""
    match step.name:
        case "add":
            kid = ring.last_kid + 1
            changed = key_rotation.add(ring, _wrapped(step, store, ring.kms_key, ring.app, kid), now=now)
            following = f"Then, at {utc(now + key_rotation.READ_BY_ALL)} or later: {_command(step, f'promote {kid}')}"
            return changed, f"add key {kid}, which opens", [following]
        case "promote":
            changed = key_rotation.promote(ring, step.kid, now=now, compromised=step.compromised)
            before = ring.mint.kid
            done = f"let key {step.kid} seal, and key {before} only open"
            if step.compromised:
                return changed, done, [f"Then, at once: {_command(step, f'retire {before} --compromised')}"]
            return changed, done, [_retire_later(step, before, now)]
        case "retire":
            changed = key_rotation.retire(ring, step.kid, now=now, compromised=step.compromised)
            lost = f"What key {step.kid} sealed and is on its way is lost: those users start over."
            following = f"Then, when nobody misses it: {_command(step, f'drop {step.kid}')}"
            unused = "Connections that nobody used since the promotion have to be made again by their users."
            told = [lost] if step.compromised else []
            return changed, f"let key {step.kid} open nothing any more", [*told, unused, following]
        case "restore":
            changed = key_rotation.restore(ring, step.kid, now=now)
            return changed, f"let key {step.kid} open again", [_retire_later(step, step.kid, now)]
        case _:
            return key_rotation.drop(ring, step.kid), f"remove key {step.kid} for good", []


def _wrapped(step: argparse.Namespace, store: KeyStore, kms_key: str, app: str, kid: int) -> bytes:
    # A dry run asks KMS for nothing: its ring is never written.
    return store.new_key(kms_key, app, kid) if step.apply else b""


def _retire_later(step: argparse.Namespace, kid: int, now: int) -> str:
    return f"Then, at {utc(now + key_rotation.OUTLIVED)} or later: {_command(step, f'retire {kid}')}"


def _command(step: argparse.Namespace, words: str) -> str:
    """The next command, for the same ring."""
    where = f" --stack {step.stack}" if step.stack else f" --secret {step.secret}"
    return f"python -m infra.keys {words}{where} --apply"


def _described(ring: WrappedKeyring, now: int) -> list[str]:
    lines = [f"The ring of {ring.app}, wrapped by {ring.kms_key}"]
    lines.append(f"  {ring.pepper.kid:>4}  pepper   names what is stored, and stays")
    lines += [f"  {key.kid:>4}  {key.state:<8} since {utc(key.since)}{_may(key, now)}" for key in ring.keys]
    return lines


def _may(key: RingKey, now: int) -> str:
    match key.state:
        case State.MINT:
            return ", seals"
        case State.RETIRED:
            return ", may be restored or dropped"
        case State.VERIFY:
            steps = (("promoted", promotable_at(key)), ("retired", retirable_at(key)))
            return "".join(f", may be {step} {'now' if at <= now else f'at {utc(at)}'}" for step, at in steps)


def arguments() -> argparse.ArgumentParser:
    """What can be said on the command line. The functions' own variables are the defaults."""
    parser = argparse.ArgumentParser(prog="python -m infra.keys", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--stack", default="", help="the stack of template.yaml: its outputs say which ring and key")
    common.add_argument(
        "--secret",
        default=os.environ.get("MCP_SEALING_SECRET", ""),
        help="without --stack: name or ARN of the secret that holds the ring (MCP_SEALING_SECRET)",
    )
    steps = parser.add_subparsers(dest="name", required=True, metavar="STEP")
    for name, summary in _STEPS.items():
        step = steps.add_parser(name, parents=[common], help=summary, description=f"{summary.capitalize()}.")
        if name == "list":
            continue
        step.add_argument("--apply", action="store_true", help="write it; without this, only say what would happen")
        if name == "create":
            app, kms_key = os.environ.get("MCP_SEALING_APP", ""), os.environ.get("MCP_KMS_KEY", "")
            step.add_argument("--app", default=app, help="without --stack: MCP_SEALING_APP, the stack's name")
            step.add_argument("--kms-key", default=kms_key, help="without --stack: MCP_KMS_KEY, an ARN")
        if name in ("promote", "retire", "restore", "drop"):
            step.add_argument("kid", type=int, help="id of the key")
        if name in ("promote", "retire"):
            step.add_argument("--compromised", action="store_true", help="do not wait; what the old key sealed is lost")
    return parser


def _look_up(step: argparse.Namespace, cloudformation: Any) -> None:
    """Put in what the stack says."""
    stack = cloudformation.describe_stacks(StackName=step.stack)["Stacks"][0]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", ())}
    missing = [name for name in (_RING_OUTPUT, _KMS_KEY_OUTPUT) if name not in outputs]
    if missing:
        raise StoreError(f"The stack {step.stack} has no output {' and no '.join(missing)}: give --secret instead.")
    step.secret, step.kms_key, step.app = outputs[_RING_OUTPUT], outputs[_KMS_KEY_OUTPUT], step.stack


def main(argv: Sequence[str] | None = None, *, now: int | None = None) -> int:
    """Take one step. 0 done or shown, 1 refused."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.session import get_session

    step = arguments().parse_args(argv)
    try:
        session = get_session()
        if step.stack:
            with closing(session.create_client("cloudformation")) as cloudformation:
                _look_up(step, cloudformation)
        if not step.secret:
            raise StoreError("Which ring? Give --stack or --secret, or set MCP_SEALING_SECRET.")
        with (
            closing(session.create_client("secretsmanager")) as secrets,
            closing(session.create_client("kms")) as kms,
        ):
            store = KeyStore(step.secret, secrets=secrets, kms=kms)
            lines = run(step, store, now=int(time.time()) if now is None else now)
    except (NotSafe, StoreError) as error:
        print(error, file=sys.stderr)
        return 1
    except (ClientError, BotoCoreError) as error:
        print(f"AWS refused: {error}\nCheck the region, the credentials and their grants.", file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
