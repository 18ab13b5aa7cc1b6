"""The Redis and Valkey nodes of a benchmark, and a wait until they have no work left."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import redis

CONTRIB = Path(__file__).resolve().parents[2] / "contrib" / "redis-cluster"
# A busy node must not be taken for a dead one.
NODE_TIMEOUT_MS = 15_000
# Nodes may need so long to finish their work.
SETTLE_MAX_S = 300


class Nodes:
    """Some nodes, the primaries first."""

    def __init__(self, ports: list[int], primaries: int) -> None:
        self.ports = ports
        self.all = [redis.Redis("127.0.0.1", port, socket_timeout=60) for port in ports]
        self.primaries = self.all[:primaries]

    def wait_until_settled(self) -> None:
        """Waits until all nodes and replicas have the same writes, and no node writes a file."""
        before = None
        for _ in range(SETTLE_MAX_S * 2):
            infos = [node.info("everything") for node in self.all]
            offsets = [info["master_repl_offset"] for info in infos]
            calm = all(is_calm(info) for info in infos) and offsets == before
            if calm and all(replicas_have(info, info["master_repl_offset"]) for info in infos):
                return
            before = offsets
            time.sleep(0.5)
        sys.exit(f"the nodes have not finished their work in {SETTLE_MAX_S} s")

    def used_memory(self) -> int:
        return sum(node.info("memory")["used_memory"] for node in self.primaries)

    def keys(self) -> int:
        return sum(node.dbsize() for node in self.primaries)


def is_calm(info: dict) -> bool:
    writes = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled", "loading")
    if info["role"] == "slave" and info["master_link_status"] != "up":
        return False
    return not any(info[name] for name in writes)


def replicas_have(info: dict, offset: int) -> bool:
    return all(info[f"slave{number}"]["offset"] == offset for number in range(info.get("connected_slaves", 0)))


class Cluster(Nodes):
    """Three primaries, each with `replicas` replicas."""

    def __init__(self, folder: Path, server: str, replicas: int = 1, lines: tuple[str, ...] = ()) -> None:
        self.folder = folder
        command = [CONTRIB, "up", "--dir", folder, "--server", server, "--port", "0", "--replicas", str(replicas)]
        command += ["--node-timeout-ms", str(NODE_TIMEOUT_MS), "--appendonly", "yes" if replicas else "no"]
        for line in lines:
            command += ["--config", line]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.addresses = printed.split()
        super().__init__([int(address.rsplit(":", 1)[1]) for address in self.addresses], 3)

    def stop(self) -> None:
        for node in self.all:
            node.close()
        subprocess.run([CONTRIB, "down", "--dir", self.folder], check=True, stdout=subprocess.DEVNULL)


class Single(Nodes):
    """One Redis that is in no cluster and writes no files, as datasketch uses it."""

    def __init__(self, folder: Path, server: str) -> None:
        folder.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        log = (folder / "server.log").open("wb")
        self.process = subprocess.Popen([*command, "--dir", str(folder)], stdout=log, stderr=log)
        super().__init__([port], 1)
        for _ in range(100):
            try:
                self.all[0].ping()
                return
            except redis.ConnectionError:
                time.sleep(0.1)
        sys.exit(f"{server} did not start: see {folder / 'server.log'}")

    def stop(self) -> None:
        self.all[0].close()
        self.process.terminate()
        self.process.wait(60)
