"""A package registry on this machine, for Python and Node alike, with a few tiny packages.

uv and npm are pointed at it, with empty caches, so that tests of environments are about what
sinkprobe asks of the two and not about the network.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote


class Registry:
    """Packages that were put in, by language."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        """Paths that were asked for."""
        self._wheels: dict[str, list[dict[str, Any]]] = {}
        self._packages: dict[str, dict[str, dict[str, Any]]] = {}
        self._files: dict[str, bytes] = {}
        self.address = ""

    def python(
        self,
        name: str,
        version: str,
        uploaded: str,
        requires: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
    ) -> None:
        """A wheel; ``files`` by their path in site-packages."""
        plain = name.replace("-", "_")
        info = f"{plain}-{version}.dist-info"
        described = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
        described += [f"Requires-Dist: {one}\n" for one in requires]
        inside = {
            **(files or {f"{plain}/__init__.py": ""}),
            f"{info}/METADATA": "".join(described),
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        inside[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*inside, f"{info}/RECORD"])
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as wheel:
            for path, text in inside.items():
                wheel.writestr(path, text)
        file = f"{plain}-{version}-py3-none-any.whl"
        self._files[f"/files/{file}"] = packed.getvalue()
        self._wheels.setdefault(name, []).append(
            {
                "filename": file,
                "url": f"/files/{file}",
                "hashes": {"sha256": hashlib.sha256(packed.getvalue()).hexdigest()},
                "upload-time": f"{uploaded}T12:00:00.000000Z",
            }
        )

    def node(
        self, name: str, version: str, uploaded: str, dependencies: Mapping[str, str] | None = None
    ) -> None:
        """A package with an empty module."""
        described = {
            "name": name,
            "version": version,
            "main": "index.js",
            "dependencies": dict(dependencies or {}),
        }
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path, text in {"package.json": json.dumps(described), "index.js": ""}.items():
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
        path = f"/tarballs/{name.replace('/', '-')}-{version}.tgz"
        self._files[path] = packed.getvalue()
        digest = base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
        dist = {"tarball": path, "integrity": f"sha512-{digest}"}
        self._packages.setdefault(name, {})[version] = {
            **described, "dist": dist, "uploaded": f"{uploaded}T12:00:00.000Z",
        }  # fmt: skip

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Content type and body; ``None``: there is no such thing."""
        self.asked.append(path)
        if path in self._files:
            return "application/octet-stream", self._files[path]
        if path.startswith("/simple/"):
            return self._simple(path.removeprefix("/simple/").strip("/"))
        return self._packument(unquote(path).strip("/"))

    def _simple(self, name: str) -> tuple[str, bytes] | None:
        if name not in self._wheels:
            return None
        files = [{**file, "url": self.address + file["url"]} for file in self._wheels[name]]
        document = {"meta": {"api-version": "1.1"}, "name": name, "files": files}
        return "application/vnd.pypi.simple.v1+json", json.dumps(document).encode()

    def _packument(self, name: str) -> tuple[str, bytes] | None:
        versions = self._packages.get(name)
        if versions is None:
            return None
        listed = {}
        for version, told in versions.items():
            dist = {**told["dist"], "tarball": self.address + told["dist"]["tarball"]}
            listed[version] = {**told, "dist": dist}
        document = {
            "name": name,
            "dist-tags": {"latest": [*versions][-1]},
            "versions": listed,
            "time": {version: told["uploaded"] for version, told in versions.items()},
        }
        return "application/json", json.dumps(document).encode()


@contextmanager
def serving(registry: Registry, folder: Path) -> Iterator[dict[str, str]]:
    """Serves it meanwhile; yields the variables by which uv and npm find it and nothing else."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body_too=False)

        def do_GET(self) -> None:
            self._answer(body_too=True)

        def _answer(self, *, body_too: bool) -> None:
            found = registry.answer(self.path.partition("?")[0])
            self.send_response(404 if found is None else 200)
            kind, body = found or ("text/plain", b"there is none")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if body_too:
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Not on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield {
            "UV_DEFAULT_INDEX": f"{registry.address}/simple/",
            "UV_INDEX": "",
            "UV_FIND_LINKS": "",
            "UV_CACHE_DIR": str(folder / "uv"),
            "UV_NO_CONFIG": "1",
            "npm_config_registry": f"{registry.address}/",
            "npm_config_cache": str(folder / "npm"),
            "npm_config_fetch_retries": "0",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
