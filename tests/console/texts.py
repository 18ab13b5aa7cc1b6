"""Makes English-like texts, and copies of them with small changes. The same seed makes the same texts."""

import random

NOUNS = """anchor archive atlas bakery balcony bell bridge canal captain carpenter castle cellar chapel clock cloud coast
    compass copper corner cottage daughter desert diary doctor engine farmer ferry fisherman forest fountain garden glacier
    harbour hill horse island keeper kitchen ladder lake lantern letter library lighthouse map market meadow merchant mill
    mirror monastery mountain museum neighbour notebook orchard painter paper pilot pipe railway rain river road rope sailor
    school shepherd ship shop sister snow soldier station steamer stone storm stranger street summer table teacher telescope
    theatre tower tram traveller valley village violin wagon wall watchmaker weather wheel widow window winter wood workshop""".split()
ADJECTIVES = """ancient bright broken careful clever cold crooked dark distant dry early empty faithful famous foreign
    forgotten friendly gentle golden green grey heavy hidden honest hollow iron kind large late lonely loud narrow new northern
    old pale patient plain proud quiet red rough round rusty secret sharp silent silver slow small southern steep strange
    sturdy sudden tall tired warm western white wild wise wooden yellow young""".split()
VERBS = """admires avoids builds buys carries chooses counts crosses describes discovers draws enters examines finds follows
    forgets guards hears helps hides joins keeps knows leaves likes mends misses names needs notices opens paints passes
    promises reaches reads remembers repairs rescues sells shows steers studies surrounds teaches trusts visits watches
    welcomes writes""".split()
LINKS = ["and", "but", "while", "because", "until", "so", "although", "before"]


class Texts:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def noun(self):
        article = self.random.choice(["the", "a", "this", "every", "another"])
        adjective = self.random.choice(ADJECTIVES)
        article = "an" if article == "a" and adjective[0] in "aeiou" else article
        return f"{article} {adjective} {self.random.choice(NOUNS)}"

    def sentence(self):
        first, second = (f"{self.noun()} {self.random.choice(VERBS)} {self.noun()}" for _ in range(2))
        return f"{first} {self.random.choice(LINKS)} {second}.".capitalize()

    def text(self, sentences):
        return " ".join(self.sentence() for _ in range(sentences))

    def changed(self, text, words):
        """Returns the text with other words at some places."""
        parts = text.split(" ")
        for at in self.random.sample(range(len(parts)), words):
            parts[at] = self.random.choice(NOUNS) + ("." if parts[at].endswith(".") else "")
        return " ".join(parts)
