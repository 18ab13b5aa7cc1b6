"""The output of a benchmark: tables, and figures with their bars."""

import statistics
from dataclasses import dataclass


@dataclass
class Bar:
    """A figure that must be at least or at most so much. With several rounds, the median counts."""

    name: str
    values: list[float]
    least: float | None = None
    most: float | None = None
    form: str = ".2f"

    @property
    def value(self) -> float:
        return statistics.median(self.values)

    @property
    def is_missed(self) -> bool:
        return (self.least is not None and self.value < self.least) or (
            self.most is not None and self.value > self.most
        )

    def row(self) -> list[str]:
        form = self.form
        wanted = f"at least {self.least:{form}}" if self.least is not None else f"at most {self.most:{form}}"
        spread = f"{min(self.values):{form}} to {max(self.values):{form}}" if len(self.values) > 1 else ""
        return [self.name, f"{self.value:{form}}", spread, wanted, "MISSED" if self.is_missed else "met"]


def table(head: list[str], rows: list[list[str]], words: int = 1) -> str:
    """Returns a table. The first `words` columns have words, and the others have figures."""
    rule = ["---"] * words + ["--:"] * (len(head) - words)
    lines = ["| " + " | ".join(row) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]])


def bars(some: list[Bar]) -> str:
    return table(["figure", "median", "spread", "bar", ""], [bar.row() for bar in some])


def median_and_spread(values: list[float], form: str = ",.0f") -> str:
    if not values:
        return ""
    spread = f" ({min(values):{form}} to {max(values):{form}})" if len(values) > 1 else ""
    return f"{statistics.median(values):{form}}{spread}"
