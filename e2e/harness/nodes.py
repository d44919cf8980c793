"""Several Longshore servers on one database: one owns the shards, the others pass requests on."""

import signal
import socket
import time
from pathlib import Path

from .postgres import DATABASE, Postgres
from .server import QUICK, Server
from .wait import until

FLAGS = ("--allow-private-webhooks", "--rate-limits", "off")

OWNER = "SELECT node.name FROM longshore.cluster JOIN longshore.node ON node.id = cluster.owner WHERE NOT node.is_dead"
EPOCH = "SELECT epoch FROM longshore.cluster"


METRICS = {
    "longshore_forwarded_total", "longshore_lease_left_seconds", "longshore_nodes", "longshore_shards_owned", "longshore_takeover_seconds",
}
"""The metrics that only a server with peers has."""


class Node(Server):
    """A server with a name and an address for the other nodes."""

    def __init__(self, database: Postgres, name: str, config: str = ""):
        self.name = name
        self._for_peers = socket.socket()
        self._for_peers.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._for_peers.bind(("127.0.0.1", 0))
        self.peer_port = self._for_peers.getsockname()[1]
        own = f'cluster_listen = "127.0.0.1:{self.peer_port}"\nnode_name = "{name}"\n'
        self.turns = 0
        """Counts the starts and the ends: callers see the second one only after it was counted."""
        self.will_end = False
        """From its end, or from a pause, to the next start. A paused server ends by itself once it goes on, for another node has
        declared it dead."""
        super().__init__(config=QUICK + database.config + own + config, flags=FLAGS)

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> "Node":
        super().start()
        self.turns += 1
        self.will_end = False
        return self

    def kill(self) -> None:
        self.turns += 1
        self.will_end = True
        super().kill()

    def terminate(self, timeout_s: float = 60) -> int:
        self.turns += 1
        self.will_end = True
        return super().terminate(timeout_s)

    def pause(self) -> None:
        """Stops the process as a computer does that hangs: its connections stay open."""
        self.turns += 1
        self.will_end = True
        self.process.send_signal(signal.SIGSTOP)
        # Its threads stop one after the other, and could answer a request before.
        until(self._is_stopped, "all threads of the node have stopped", 20, 0.001)

    def _is_stopped(self) -> bool:
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/stat")
        return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in threads)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        super().close()
        self._for_peers.close()


class Nodes:
    """The nodes of one database."""

    def __init__(self, database: Postgres, names: tuple[str, ...], config: str = ""):
        self.database = database
        self.all = [Node(database, name, config) for name in names]

    def start(self) -> "Nodes":
        """The first node becomes the owner."""
        for node in self.all:
            node.start()
        return self

    def owner(self) -> Node:
        """The node that owns the shards now, by the database."""

        def there():
            name = self.database.sql(OWNER, DATABASE)
            found = [node for node in self.all if node.name == name and node.is_running()]
            assert found, f"the owner is {name!r}"
            return found[0]

        return until(there, "a node owns the shards", 30)

    def epoch(self) -> int:
        """How many owners there were."""
        return int(self.database.sql(EPOCH, DATABASE))

    def standbys(self) -> list[Node]:
        owner = self.owner()
        return [node for node in self.all if node is not owner and node.is_running()]

    def close(self) -> None:
        for node in self.all:
            if node.is_running():
                node.go_on()
        for node in self.all:
            node.close()


def seconds_of(action) -> float:
    """How long `action` takes, in seconds."""
    began = time.monotonic()
    action()
    return time.monotonic() - began
