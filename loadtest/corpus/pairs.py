"""Lists all pairs of similar documents among generated job ads with `hapax pairs`, and compares them with the exact truth.

Each ad has the words of its company and the words of its role. Ads of one role are copies with a few other words, as
agencies post them again and again. Ads of different roles share at most the words of a company, so their similarity is
below 0.35. So all pairs at or above that are pairs of one role, and their exact similarities can be computed: for a
sample of the roles, because there are many millions of pairs. Run it with `make bench-pairs`.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BANDING = ["--bands", "42", "--rows", "3", "--shingle", "word3"]
COMPANIES, COMPANY_WORDS = 2_000, 40
ROLE_WORDS, ROLE_ADS_MAX = 80, 200
CHANGED = [0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15]
EDGES = [0.5, 0.6, 0.7, 0.8, 0.9, 1.01]
PAIR = re.compile(rb'^\{"a":"(\d+)-(\d+)","b":"(\d+)-(\d+)","similarity":([0-9.]+)')


def ads(count, seed):
    """Returns ads in random order, as (role, number, words)."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    pick = lambda k: chance.choices(words, weights, k=k)
    companies = [pick(COMPANY_WORDS) for _ in range(COMPANIES)]
    made, role = [], 0
    while len(made) < count:
        base = chance.choice(companies) + pick(ROLE_WORDS)
        ads_of_role = min(int(chance.paretovariate(1.2)), ROLE_ADS_MAX, count - len(made))
        for number in range(ads_of_role):
            share, ad = chance.choice(CHANGED), list(base)
            for at in range(len(ad)):
                if chance.random() < share:
                    ad[at] = chance.choice(words)
            made.append((role, number, ad))
        role += 1
    chance.shuffle(made)
    return made, role


def run(binary, arguments):
    """Runs hapax. Returns the seconds, those of its processors, the peak of its memory in KiB, and its summary."""
    with tempfile.TemporaryFile() as summary:
        begun = time.monotonic()
        process = subprocess.Popen([binary, "pairs", *arguments], stdout=summary, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        assert status == 0, status
        summary.seek(0)
        return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, summary.read().decode()


def truth(made, sampled, threshold):
    """Returns the exact similarities of all similar pairs of the sampled roles."""
    by_role = {}
    for role, number, ad in made:
        if role in sampled:
            by_role.setdefault(role, []).append((number, {tuple(ad[at : at + 3]) for at in range(len(ad) - 2)}))
    pairs = {}
    for role, of_role in by_role.items():
        for at, (a, a_set) in enumerate(of_role):
            for b, b_set in of_role[at + 1 :]:
                both = len(a_set & b_set)
                jaccard = both / (len(a_set) + len(b_set) - both)
                if jaccard >= threshold:
                    pairs[role, *sorted((a, b))] = jaccard
    return pairs


def compare(binary, arguments, made, sampled, threshold):
    """Prints how many of the true pairs of the sampled roles were found, by similarity, and how many other pairs."""
    expected = truth(made, sampled, threshold)
    found, of_different_roles = {}, 0
    listing = subprocess.Popen([binary, "pairs", *arguments, "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for line in listing.stdout:
        role, a, other, b, similarity = PAIR.match(line).groups()
        if role != other:
            of_different_roles += 1
        elif int(role) in sampled:
            found[int(role), *sorted((int(a), int(b)))] = float(similarity)
    assert listing.wait() == 0
    others = sum(1 for pair in found if pair not in expected)
    print(f"pairs of different roles: {of_different_roles}")
    print(f"sampled roles: {len(expected):,} true pairs, {len(found):,} found, {others:,} of them not true")
    errors = [abs(found[pair] - jaccard) for pair, jaccard in expected.items() if pair in found]
    print(f"mean error of the similarity {sum(errors) / max(len(errors), 1):.6f}")
    for low, high in zip(EDGES, EDGES[1:]):
        part = [pair for pair, jaccard in expected.items() if low <= jaccard < high]
        missed = sum(1 for pair in part if pair not in found)
        print(f"  J {low} to {min(high, 1.0)}: {len(part):>9,} pairs, missed {missed:,} ({missed / max(len(part), 1):.4%})")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--ads", type=int, default=400_000)
    parser.add_argument("--threshold", type=float, default=0.5)
    parser.add_argument("--sample", type=float, default=0.02, help="share of the roles whose exact truth is computed")
    parser.add_argument("--verify", nargs="+", default=["estimate", "exact"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="folder for the files; by default, a temporary one")
    args = parser.parse_args()
    made, roles = ads(args.ads, args.seed)
    sampled = set(random.Random(args.seed).sample(range(roles), max(1, int(roles * args.sample))))
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        corpus = folder / "ads.jsonl"
        with corpus.open("w", encoding="utf-8") as lines:
            for role, number, ad in made:
                lines.write(json.dumps({"id": f"{role}-{number}", "text": " ".join(ad)}) + "\n")
        print(f"{len(made):,} ads of {roles:,} roles, {corpus.stat().st_size / 1e6:.0f} MB", flush=True)
        for verify in args.verify:
            arguments = [str(corpus), *BANDING, "--threshold", str(args.threshold), "--verify", verify]
            plot = ["--plot", str(folder / f"{verify}.svg")]
            output = folder / "pairs.parquet"
            seconds, processor, peak, summary = run(args.binary, [*arguments, *plot, "-o", str(output)])
            size = output.stat().st_size / 1e6
            print(f"\n{verify}: {seconds:.1f} s, {processor:.1f} s of processors, peak {peak / 1024:.0f} MiB, {size:.0f} MB")
            print(summary, flush=True)
            compare(args.binary, arguments, made, sampled, args.threshold)


if __name__ == "__main__":
    sys.exit(main())
