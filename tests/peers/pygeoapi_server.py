"""pygeoapi (OGC API Processes) with one process: started as `pygeoapi_server.py FOLDER`, it prints its port.

The process `slow` works until FOLDER/release is there; FOLDER/effects gets a line when it begins and one when it is
done.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from pygeoapi.process.base import BaseProcessor

METADATA = {
    "version": "1.0.0",
    "id": "slow",
    "title": {"en": "Slow"},
    "description": {"en": "Waits, and says what for."},
    "jobControlOptions": ["async-execute", "sync-execute"],
    "keywords": ["slow"],
    "links": [],
    "inputs": {"month": {"title": "Month", "schema": {"type": "string"}, "minOccurs": 1, "maxOccurs": 1}},
    "outputs": {"report": {"title": "Report", "schema": {"type": "object", "contentMediaType": "application/json"}}},
    "example": {"inputs": {"month": "2026-10"}},
}


class Slow(BaseProcessor):  # type: ignore[misc]
    def __init__(self, processor_def: dict[str, Any]) -> None:
        super().__init__(processor_def, METADATA)

    def execute(self, data: dict[str, Any], outputs: Any = None) -> tuple[str, dict[str, Any]]:
        folder = Path(os.environ["SLOW_FOLDER"])
        self._note(folder, f"began {data['month']}")
        while not (folder / "release").exists():
            time.sleep(0.05)  # a file is all that the test has to say
        self._note(folder, f"done {data['month']}")
        return "application/json", {"id": "report", "value": data["month"]}

    @staticmethod
    def _note(folder: Path, line: str) -> None:
        with (folder / "effects").open("a") as effects:
            effects.write(line + "\n")


def _configuration(folder: Path, port: int) -> dict[str, Any]:
    words = {"en": "x"}
    return {
        "server": {
            "bind": {"host": "127.0.0.1", "port": port},
            "url": f"http://127.0.0.1:{port}",
            "mimetype": "application/json; charset=UTF-8",
            "encoding": "utf-8",
            "languages": ["en-US"],
            "map": {"url": "http://127.0.0.1/", "attribution": "none"},
            "manager": {"name": "TinyDB", "connection": str(folder / "jobs.db"), "output_dir": str(folder)},
        },
        "logging": {"level": "ERROR"},
        "metadata": {
            "identification": {
                "title": words,
                "description": words,
                "keywords": {"en": ["x"]},
                "keywords_type": "theme",
                "terms_of_service": "none",
                "url": "http://127.0.0.1/",
            },
            "license": {"name": "none", "url": "http://127.0.0.1/"},
            "provider": {"name": "x", "url": "http://127.0.0.1/"},
            "contact": {"name": "x"},
        },
        "resources": {"slow": {"type": "process", "processor": {"name": "pygeoapi_server.Slow"}}},
    }


def main(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings, openapi = folder / "pygeoapi.json", folder / "openapi.json"
        settings.write_text(json.dumps(_configuration(folder, port)))
        openapi.write_text(json.dumps({"openapi": "3.0.2", "info": {}, "paths": {}}))
        os.environ |= {
            "PYGEOAPI_CONFIG": str(settings),
            "PYGEOAPI_OPENAPI": str(openapi),
            "SLOW_FOLDER": str(folder),
        }
        from pygeoapi.flask_app import APP  # reads its configuration when it is imported
        from werkzeug.serving import make_server

        server = make_server("127.0.0.1", port, APP, threaded=True, fd=listener.fileno())
        print(port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
