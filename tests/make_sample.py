"""Makes the sample recording anew, after a vocabulary has changed: `PYTHONPATH=src:. .venv/bin/python -m tests.make_sample`."""

import tarfile
import tempfile
from pathlib import Path

from tests.conftest import DATA, prometheus_server

from obs import bundle, collect
from obs.config import SourceSettings
from obs.prometheus import Prometheus
from obs.window import Window

WHOLE = Window(1796036330, 1796040410)  # 2026-11-30 10:58:50Z to 12:06:50Z
TARGET = Path(bundle.__file__).parent / "sample" / f"lab{bundle.SUFFIX}"


def main() -> None:
    """Reads the lab recording through a real Prometheus, as `obs bundle` does."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(DATA / "lab-tsdb.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        collect.SPREAD_SECONDS = 0.0  # it is opened on ten minutes of it, which have a distribution at every step
        with prometheus_server(Path(folder) / "tsdb-snapshot") as url:
            print(bundle.write(TARGET, Prometheus(SourceSettings(url=url, name="lab")), WHOLE, {}))


if __name__ == "__main__":
    main()
