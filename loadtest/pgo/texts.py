"""Documents and pages for the training: invented words in several scripts, and near-duplicates among them."""

import html
import json
import random

LATIN = "etaoinshrdlucmfwypvbgkqjxz"
ALPHABETS = {
    "english": LATIN,
    "accented": LATIN + "éèêëàâîïôöüùçñåøß",
    "cyrillic": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф",
}
# One in this many documents repeats an earlier one with some words changed.
REPEATED = 3


class Source:
    """Texts of about `size` bytes in one script, or twice as many bytes in Cyrillic. Equal seeds make equal texts."""

    def __init__(self, script: str, size: int, seed: int) -> None:
        self.script, self.size = script, size
        self.chance = random.Random(f"{script} {seed}")
        self.earlier: list[list[str]] = []
        if script in ALPHABETS:
            letters = ALPHABETS[script]
            words = ["".join(self.chance.choices(letters, k=self.chance.randint(2, 9))) for _ in range(8_000)]
            self.words, self.weights = words, [1 / (rank + 10) for rank in range(len(words))]
        else:
            self.words, self.weights = [chr(code) for code in range(0x4E00, 0x5E00)], None

    def text(self) -> str:
        if self.earlier and self.chance.randrange(REPEATED) == 0:
            words = list(self.chance.choice(self.earlier))
            for place in self.chance.sample(range(len(words)), len(words) // 200 + 1):
                words[place] = self.chance.choice(self.words)
        else:
            count = self.size // (7 if self.script in ALPHABETS else 3)
            words = self.chance.choices(self.words, self.weights, k=count)
            self.earlier.append(words)
        return self.prose(words)

    def prose(self, words: list[str]) -> str:
        """Joins words to sentences, which begin with a capital letter and have commas."""
        if self.script not in ALPHABETS:
            return "。".join("".join(words[first : first + 20]) for first in range(0, len(words), 20))
        sentences = []
        for first in range(0, len(words), 12):
            some = words[first : first + 12]
            sentences.append(" ".join([some[0].capitalize(), *some[1:6]]) + ", " + " ".join(some[6:]))
        return ". ".join(sentences) + "."


def page(source: Source) -> str:
    """A page of HTML whose article is a text, with the parts that pages have around it."""
    links = "".join(f'<li><a href="/{word}">{word}</a></li>' for word in source.chance.choices(source.words, k=20))
    paragraphs = "".join(f"<p>{html.escape(part)} &amp; <em>more</em>.</p>\n" for part in source.text().split(". "))
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{source.words[0]}</title>'
        '<link rel="canonical" href="https://pages.example/a"><style>p { color: black }</style>'
        f"<script>let a = 1 < 2;</script></head><body><nav><ul>{links}</ul></nav><main><article><h1>Title</h1>"
        f"{paragraphs}</article></main><aside><ul>{links}</ul></aside><footer>© 2026</footer></body></html>"
    )


def lines(source: Source, count: int, field: str) -> str:
    """JSON Lines with an id, a label, and a text or a page."""
    made = []
    for number in range(count):
        content = page(source) if field == "html" else source.text()
        labels = {"host": f"{number % 50}.example"}
        made.append(json.dumps({"id": f"{source.script}-{number}", "labels": labels, field: content}, ensure_ascii=False))
    return "\n".join(made) + "\n"
