"""Which modules a command passes through, and how large the package is.

    python benchmarks/trace.py                    # beside the lists of docs/architecture.md
    python benchmarks/trace.py --table OLD NEW    # two checkouts: files, lines, imports, lengths, names offered

A module counts as entered when one of its functions is called, other than while modules are imported. Three ways are
traced in processes of their own: `accuacl run`, one label over HTTP, and `accuacl select` from Parquet.
"""

from __future__ import annotations

import argparse
import ast
import http.cookiejar
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WAYS = {"run": "How a run works", "label": "How a label gets to the model", "select": "How a selection works"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=ROOT / "src", help="the source tree that is traced")
    parser.add_argument("--table", type=Path, nargs=2, metavar=("OLD", "NEW"), help="compare two checkouts instead")
    parser.add_argument("--traced", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.traced:
        trace(Path(given.traced[0]), given.traced[1:])
    elif given.table:
        print_table(*given.table)
    else:
        print_ways(given.source)


# -- tracing, in the process of the command ----------------------------------------------------------------------------


def trace(out: Path, arguments: list[str]) -> None:
    """Run a command; the modules that it enters are written to a file, in order, when it ends or on SIGUSR2.

    From SIGUSR1 on only what comes then is counted.
    """
    entered: dict[str, None] = {}

    def on_call(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith("accuacl") and name not in entered and not _importing(frame):
            entered[name] = None

    def restart(*_: object) -> None:
        entered.clear()
        out.with_suffix(".begun").touch()

    def write(*_: object) -> None:
        files = [Path(str(sys.modules[name].__file__)) for name in list(entered)]
        package = Path(str(sys.modules["accuacl"].__file__)).parent
        out.write_text(json.dumps([path.relative_to(package).as_posix() for path in files]))

    signal.signal(signal.SIGUSR1, restart)
    signal.signal(signal.SIGUSR2, write)
    threading.setprofile(on_call)
    sys.setprofile(on_call)
    sys.argv = ["accuacl", *arguments]
    try:
        from accuacl.cli import main as command

        command()
    finally:
        sys.setprofile(None)
        write()


def _importing(frame: FrameType | None) -> bool:
    """Whether a call comes from a module that is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__", "").startswith("accuacl"):
            return True
        frame = frame.f_back
    return False


# -- the three ways ----------------------------------------------------------------------------------------------------


def print_ways(source: Path) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        for way, title in WAYS.items():
            entered = {"run": trace_run, "label": trace_label, "select": trace_select}[way](source, Path(folder))
            section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
            listed = set(re.findall(r"`([a-z_]+/[\w/]+\.py|[a-z]+\.py)`", section))
            shown = [name for name in entered if not name.startswith("base/") and not name.endswith("__init__.py")]
            print(f"{way}: {len(entered)} modules, {len(shown)} without base and packages")
            for name in entered:
                mark = "*" if name in listed else " "
                print(f"  {mark} {name}")
            for name in sorted(listed - set(entered)):
                print(f"  - {name} is in the list, but not entered")
    print("*: named in docs/architecture.md")


def trace_run(source: Path, folder: Path) -> list[str]:
    small = ["--tasks", "2", "--labels", "8", "--epochs", "1", "--pool", "60", "--out", "run"]
    return finished(source, folder, "run", *small)


def trace_select(source: Path, folder: Path) -> list[str]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    for name, rows in (("pool", 400), ("memory", 40)):
        h, p = rng.normal(size=(rows, 8)).astype(np.float32), rng.dirichlet(np.ones(4), rows).astype(np.float32)
        columns = {"id": pa.array(np.arange(rows))}
        columns |= {
            n: pa.FixedSizeListArray.from_arrays(x.ravel(), x.shape[1])
            for n, x in (("embedding", h), ("probability", p))
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    words = [
        "--pool",
        "pool.parquet",
        "--memory",
        "memory.parquet",
        "--past",
        "1000",
        "--budget",
        "10",
        "--workers",
        "1",
    ]
    return finished(source, folder, "select", *words, "--out", "picked.parquet")


def trace_label(source: Path, folder: Path) -> list[str]:
    """A person labels one text of an open round: POST /api/label, from the socket to the answer."""
    (folder / "texts.txt").write_text("\n".join(f"text number {i}" for i in range(60)))
    command(source, folder, "project", "new", "p", "--texts", "texts.txt", "--classes", "a,b")
    command(source, folder, "project", "train", "p", codes=(0, 75))
    token = command(source, folder, "project", "person", "p", "add", "Ada").splitlines()[0]
    out = folder / "label.json"
    server = started(source, folder, out, "project", "serve", "p", "--no-open", "--port", "0")
    try:
        assert server.stdout is not None
        address = next(m[0] for line in server.stdout if (m := re.search(r"http://127\.0\.0\.1:\d+", line)))
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

        def post(path: str, body: dict[str, Any]) -> Any:
            data, headers = json.dumps(body).encode(), {"Content-Type": "application/json", "Origin": address}
            with browser.open(urllib.request.Request(address + path, data, headers)) as answer:
                return json.loads(answer.read() or b"null")

        post("/api/login", {"token": token})
        item = post("/api/next", {})["pick"]["item"]
        server.send_signal(signal.SIGUSR1)
        wait_for(out.with_suffix(".begun"))
        post("/api/label", {"item": item, "class_id": 0, "request": str(uuid.uuid4())})
        server.send_signal(signal.SIGUSR2)
        wait_for(out)
        return list(json.loads(out.read_text()))
    finally:
        server.kill()
        server.wait()


def started(source: Path, folder: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    code = [sys.executable, __file__, "--traced", str(out), *words]
    return subprocess.Popen(
        code, cwd=folder, env=_environment(source), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finished(source: Path, folder: Path, *words: str) -> list[str]:
    out = folder / "trace.json"
    process = started(source, folder, out, *words)
    said, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"accuacl {' '.join(words)} failed:\n{said}")
    return list(json.loads(out.read_text()))


def command(source: Path, folder: Path, *words: str, codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "accuacl", *words], cwd=folder, env=_environment(source), capture_output=True, text=True
    )
    if done.returncode not in codes:
        raise SystemExit(f"accuacl {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _environment(source: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def wait_for(path: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not path.exists() or (path.suffix == ".json" and not path.read_text()):
        if time.monotonic() > end:
            raise SystemExit(f"{path} was not written")
        time.sleep(0.01)


# -- the size of a checkout --------------------------------------------------------------------------------------------


def print_table(old: Path, new: Path) -> None:
    rows = [measure(root) for root in (old, new)]
    print("| | before | after |\n|---|---|---|")
    for name in rows[0]:
        print(f"| {name} | {rows[0][name]} | {rows[1][name]} |")


def measure(root: Path) -> dict[str, str]:
    """What the table has of the package in a checkout."""
    files = sorted((root / "src" / "accuacl").rglob("*.py"))
    lines = [len(path.read_text().splitlines()) for path in files]
    names = Counter(path.name for path in files if path.name != "__init__.py")
    offered = {
        path.parent.relative_to(root / "src").as_posix(): len(_offered(path))
        for path in files
        if path.name == "__init__.py"
    }
    many = sorted(((count, name.removeprefix("accuacl/")) for name, count in offered.items() if count), reverse=True)
    return {
        "files": f"{len(files)}",
        "lines": f"{sum(lines):,}",
        "lines of imports": f"{sum(map(_import_lines, files)):,}",
        "median length": f"{statistics.median(lines):.0f}",
        "files under 60 lines": f"{sum(count < 60 for count in lines)}",
        "files over 400 lines": f"{sum(count > 400 for count in lines)}",
        "names of modules used twice": f"{sum(count == 2 for count in names.values())}",
        "names of modules used more often": f"{sum(count > 2 for count in names.values())}",
        "names offered by all `__init__`": f"{sum(offered.values())}",
        "most names offered": ", ".join(f"{name} {count}" for count, name in many[:5]),
    }


def _import_lines(path: Path) -> int:
    nodes = ast.walk(ast.parse(path.read_text()))
    return sum(node.end_lineno - node.lineno + 1 for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def _offered(init: Path) -> set[str]:
    """The names that an `__init__` imports from its own package, or loads when they are used, for others."""
    nodes = list(ast.walk(ast.parse(init.read_text())))
    own = [node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("accuacl")]
    names = {alias.asname or alias.name for node in own if "base" not in str(node.module) for alias in node.names}
    late = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_attributes"]
    texts = [part.value.value for call in late for part in call.keywords if isinstance(part.value, ast.Constant)]
    return {name for text in [*names, *texts] for name in text.split()} - {"*"}


if __name__ == "__main__":
    main()
