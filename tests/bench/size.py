"""How large an artefact is: what a deployment uploads, and what it is unpacked to."""

import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from tests.bench.peer import Peer


@dataclass(frozen=True, slots=True)
class Size:
    """In MB of 10^6 bytes, without the bytecode, and the bytecode by itself."""

    unpacked_mb: float
    packed_mb: float
    bytecode_mb: float
    packed_bytecode_mb: float
    files: int


def measure(peer: Peer) -> Size:
    sources = list(_files(peer.artefact, bytecode=False))
    compiled = list(_files(peer.artefact, bytecode=True))
    return Size(
        unpacked_mb=sum(each.stat().st_size for each in sources) / 1e6,
        packed_mb=_packed(sources) / 1e6,
        bytecode_mb=sum(each.stat().st_size for each in compiled) / 1e6,
        packed_bytecode_mb=_packed(compiled) / 1e6,
        files=len(sources),
    )


def _files(roots: Iterable[Path], *, bytecode: bool) -> Iterator[Path]:
    for root in roots:
        yield from (each for each in root.rglob("*") if each.is_file() and (each.suffix == ".pyc") is bytecode)


def _packed(files: Iterable[Path]) -> int:
    with TemporaryFile() as whole:
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for number, each in enumerate(files):
                archive.write(each, f"{number}/{each.name}")
        return whole.tell()
