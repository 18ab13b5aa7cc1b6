"""A server that can be written in Python in an afternoon: FastAPI and uvicorn over a MinHash library and its index.

Usage: peers.py rensa|datasketch ADDRESS < documents. Each document is a line of JSON. The documents are stored before
the first request. Nothing is durable.
"""

import json
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

THRESHOLD = 0.8
BANDS, ROWS = 31, 8
WORDS = 5


class Document(BaseModel):
    id: str | None = None
    text: str


def shingles(text: str) -> list[str]:
    words = text.lower().split()
    return [" ".join(words[at : at + WORDS]) for at in range(max(len(words) - WORDS + 1, 1))]


class Datasketch:
    def __init__(self) -> None:
        from datasketch import MinHash, MinHashLSH

        self.minhash = lambda: MinHash(num_perm=BANDS * ROWS)
        self.index = MinHashLSH(params=(BANDS, ROWS), num_perm=BANDS * ROWS)
        self.stored = {}

    def sign(self, text: str):
        minhash = self.minhash()
        minhash.update_batch([shingle.encode() for shingle in shingles(text)])
        return minhash

    def check(self, minhash) -> list[dict]:
        found = ((id, minhash.jaccard(self.stored[id])) for id in self.index.query(minhash))
        return [{"id": id, "similarity": similarity} for id, similarity in found if similarity >= THRESHOLD]

    def insert(self, id: str, minhash) -> None:
        self.index.insert(id, minhash, check_duplication=False)
        self.stored[id] = minhash


class Rensa:
    def __init__(self) -> None:
        from rensa import RMinHash, RMinHashLSH

        self.minhash = lambda: RMinHash(num_perm=BANDS * ROWS, seed=1)
        self.index = RMinHashLSH(threshold=THRESHOLD, num_perm=BANDS * ROWS, num_bands=BANDS)
        self.stored, self.ids = [], []

    def sign(self, text: str):
        minhash = self.minhash()
        minhash.update(shingles(text))
        return minhash

    def check(self, minhash) -> list[dict]:
        found = ((number, minhash.jaccard(self.stored[number])) for number in self.index.query(minhash))
        return [{"id": self.ids[number], "similarity": similarity} for number, similarity in found if similarity >= THRESHOLD]

    def insert(self, id: str, minhash) -> None:
        self.index.insert(len(self.ids), minhash)
        self.stored.append(minhash)
        self.ids.append(id)


def app(index) -> FastAPI:
    app = FastAPI()

    @app.post("/v1/collections/{collection}/check")
    async def check(document: Document) -> dict:
        matches = index.check(index.sign(document.text))
        return {"verdict": "near_duplicate" if matches else "unique", "stored": False, "matches": matches}

    @app.post("/v1/collections/{collection}/documents")
    async def insert(document: Document) -> dict:
        minhash = index.sign(document.text)
        matches = index.check(minhash)
        if not matches:
            index.insert(document.id, minhash)
        return {"verdict": "near_duplicate" if matches else "unique", "stored": not matches, "matches": matches}

    return app


def main() -> None:
    index = {"rensa": Rensa, "datasketch": Datasketch}[sys.argv[1]]()
    for line in sys.stdin:
        document = json.loads(line)
        index.insert(document["id"], index.sign(document["text"]))
    host, port = sys.argv[2].rsplit(":", 1)
    print("ready", flush=True)
    uvicorn.run(app(index), host=host, port=int(port), log_level="error", access_log=False)


if __name__ == "__main__":
    main()
