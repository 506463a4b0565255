"""The database users of docs/operate/install.md: what is written there is enough, and no more is needed."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import helm_python
import psycopg
import pytest

from counterfoil.ledger.gauges import Gauges
from counterfoil.tests.fleet.clusters import Cluster, Clusters
from counterfoil.tests.fleet.conftest import Server, fleet_at
from counterfoil.tests.memory import server_folder

from .rendered import due_rows
from .table import CHART

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "of the drill"


def users_sql() -> list[str]:
    page = (ROOT / "docs" / "operate" / "install.md").read_text()
    (block,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    include = re.compile(r"^\\i (\S+)$", re.MULTILINE)
    parts = re.split(r"(?<=;)\n(?=[A-Z\\])|(?<=\.sql)\n", block.strip().replace("…", PASSWORD))
    return [(ROOT / found[1]).read_text() if (found := include.search(part)) else part for part in parts]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Roles are a whole cluster's, so it is one of this test's own."""
    folder = server_folder("test")
    folder.chmod(0o755)  # as root, Postgres's account must be able to pass
    machines = Clusters(folder)
    try:
        yield machines.primary("own")
    finally:
        machines.close()
        shutil.rmtree(folder)


def test_the_users_of_the_page_migrate_and_work_and_the_one_that_works_writes_no_receipts(
    cluster: Cluster, server: Server, tmp_path: Path
) -> None:
    with cluster.connect("postgres") as admin:
        admin.execute("DROP DATABASE counterfoil")
        for statement in users_sql():
            admin.execute(statement.encode())
    where = f"127.0.0.1:{cluster.server.record.port}/counterfoil"
    migrates = f"postgresql://counterfoil_migrates:{PASSWORD.replace(' ', '%20')}@{where}"
    works = f"postgresql://counterfoil_works:{PASSWORD.replace(' ', '%20')}@{where}"
    with fleet_at(works, server, tmp_path) as fleet:
        assert fleet.run("db", "upgrade", COUNTERFOIL_DATABASE_URL=migrates).returncode == 0
        fleet.say("epoch", "adopt", "1", "--reason", "release 1")
        worker = fleet.start(solo=True, COUNTERFOIL_GENERATION="1", COUNTERFOIL_SELF_TICK_S="0.5")
        fleet.until("it is ready", lambda: "worker ready" in worker.log.read_text(), 30)
        nodes = fleet.submit(3, secs=0)
        fleet.until("all have receipts", lambda: len(fleet.receipts(nodes)) == 3, 30)
        assert worker.stop() == 0
        fleet.say("rollback", "--generation", "1", "--once", "job", "--reason", "drill")
    reads = f"postgresql://counterfoil_reads:{PASSWORD.replace(' ', '%20')}@{where}"
    gauges = Gauges(reads, "main")
    reading = gauges.read()
    gauges.close()
    assert reading.failed == {}
    with helm_python.Chart.load(CHART) as chart, psycopg.connect(reads) as reader:
        assert reader.execute(due_rows(chart).encode()).fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            reader.execute("SELECT * FROM counterfoil.operation")
    with cluster.connect("counterfoil") as admin:
        admin.execute("SET ROLE counterfoil_works")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            admin.execute("DELETE FROM counterfoil.terminal_receipt")
