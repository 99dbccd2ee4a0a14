"""Cold starts: whole processes, from their start to the first question, all peers interleaved in shuffled order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from tests.bench.correctness import WrongAnswer, is_question
from tests.bench.order import Order
from tests.bench.peer import Peer, Start, cold_start
from tests.bench.quantities import paired_ratio
from tests.bench.workload import Workload


@dataclass(frozen=True, slots=True)
class Cold:
    """All starts of one peer, one in each round."""

    starts: Sequence[Start]

    def middle(self, quantity: str) -> float:
        return median(self.values(quantity))

    def values(self, quantity: str) -> list[float]:
        return [getattr(start, quantity) for start in self.starts]

    def ratio(self, base: "Cold", quantity: str) -> float:
        return paired_ratio(self.values(quantity), base.values(quantity))


def measure(
    peers: Sequence[Peer], environment: Mapping[str, str], work: Workload, *, rounds: int, order: Order
) -> dict[str, Cold]:
    """Each peer once in each round. Raises WrongAnswer: every answer is looked at."""
    command = work.delete_report().command()
    starts: dict[str, list[Start]] = {peer.name: [] for peer in peers}
    for _ in range(rounds):
        for peer in order.of(peers):
            start = cold_start(peer, environment, command)
            if not is_question(start.answer):
                raise WrongAnswer(peer, "the first call must ask whether to delete the report", start.answer)
            starts[peer.name].append(start)
    return {name: Cold(each) for name, each in starts.items()}
