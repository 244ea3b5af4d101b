"""Opens every page of the built site in a headless browser, at desktop and phone width, and checks it.

    make docs-check                     build the site and check it
    python tools/site_check.py [SITE]   check a built site (default: build/site)

Owns: the checks. Pages and code blocks do not scroll sideways; a table scrolls only inside its frame, and names in
cells are not broken; images load; links inside the site work; text has enough contrast, light and dark; the search
finds a word; a wrong address shows the site's page 404. Needs Chromium. Threads: a server on loopback. Never: uses the
network, or changes the site.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
SITE: Final = re.findall(r"^site_url: (\S+)$", (ROOT / "tools" / "mkdocs.yml").read_text(encoding="utf-8"), re.M)[0]
BASE: Final = urllib.parse.urlsplit(SITE).path
WIDTHS: Final = (1280, 390)
CONTRAST: Final = 4.5  # WCAG 2.1 AA for text of normal size
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS: Final = 400
SCRIPT: Final = (Path(__file__).parent / "site_check.js").read_text(encoding="utf-8")


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site under BASE and the checking page, and receives its report."""

    def __init__(self, *arguments: Any, settings: dict[str, Any], report: list[str], done: threading.Event,
                 **options: Any) -> None:
        self.settings, self.report, self.done = settings, report, done
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        if self.path == f"{BASE}__check__":
            body = f"<!doctype html><script>const SETTINGS = {json.dumps(self.settings)};\n{SCRIPT}</script>".encode()
            self.respond(200, body)
            return
        self.path = self.path.removeprefix(BASE.rstrip("/")) or "/"
        if Path(self.translate_path(self.path.partition("?")[0])).exists():
            super().do_GET()
        else:
            self.respond(404, (Path(self.directory) / "404.html").read_bytes())

    def do_POST(self) -> None:
        lines = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.respond(200, b"")
        self.report += lines
        self.done.set()

    def respond(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit(f"site_check: no browser found: install one of {', '.join(BROWSERS)}")
    return found


def findings(site: Path, words: str = "rebalance") -> list[str]:
    """Return all errors of the site, one per line."""
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html")
    if not pages:
        raise SystemExit(f"site_check: {site} has no page: run make docs")
    report: list[str] = []
    done = threading.Event()
    settings = {"site": SITE, "base": BASE, "pages": pages, "widths": WIDTHS, "contrast": CONTRAST,
                "words": words}
    handler = functools.partial(Handler, directory=str(site), settings=settings, report=report, done=done)
    with (http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
          tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = subprocess.Popen(
            [browser(), "--headless", *sandbox, "--disable-gpu", "--disable-background-networking",
             f"--user-data-dir={profile}", "--window-size=1400,1000",
             "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}{BASE}__check__"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if not done.wait(SECONDS):
                report.append(f"no report from the browser within {SECONDS} s")
        finally:
            process.terminate()
            process.wait()
            server.shutdown()
    return report


def main() -> int:
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    found = findings(site)
    print("\n".join(found))
    return int(any(not line.startswith("checked ") for line in found))


if __name__ == "__main__":
    sys.exit(main())
