"""A room imports only from rooms above it; docs/design.md lists each exception and its reason."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "core": ["memory", "ops", "eager"],
    "jit": ["ir", "capture", "autodiff", "passes", "lowering", "runtime"],
}
ROOMS = [f"{folder}.{room}" for folder, rooms in FOLDERS.items() for room in rooms]
ORDER = {"config": -2, "logs": -1, **{room: place for place, room in enumerate([*ROOMS, "jit"])}}
# Above all rooms: what users build on them, and the package's own front.
FRONT = len(ORDER)


def imported(path: Path, root: Path) -> set[str]:
    """The modules of the package that a file names in its imports, relative ones resolved."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(root).parts[: -node.level] if node.level else ()
            stem = ".".join([*package, *(node.module or "").split(".")]).strip(".")
            # `from tracejit.core import ops` names a room.
            folder = stem in ("tracejit", *(f"tracejit.{name}" for name in FOLDERS))
            found |= {f"{stem}.{a.name}" for a in node.names} if folder else {stem}
    return {name for name in found if name.split(".")[0] == "tracejit"}


def place(module: str) -> int:
    parts = module.split(".")[1:3]
    return ORDER.get(".".join(parts), ORDER.get(".".join(parts[:1]), FRONT))


def upward_imports(root: Path) -> set[tuple[str, str]]:
    """(file, module) for each import of a room from a place above it."""
    found = set()
    for path in sorted((root / "tracejit").rglob("*.py")):
        file = path.relative_to(root).as_posix()
        own = place(file.removesuffix(".py").replace("/", "."))
        found |= {(file, name) for name in imported(path, root) if place(name) > own}
    return found


def listed_exceptions(text: str) -> set[tuple[str, str]]:
    """(file, module) for each row `| file | imports | why |` that gives a reason."""
    file, module = r"`?(tracejit/[\w/]+\.py)`?", r"`?(tracejit[\w.]*)`?"
    row = re.compile(rf"^\|\s*{file}\s*\|\s*{module}\s*\|\s*[^\s|].*\|\s*$")
    return {match.groups() for match in map(row.match, text.splitlines()) if match}


def test_rooms_import_only_from_rooms_above_them():
    exceptions = listed_exceptions((ROOT / "docs/design.md").read_text())
    upward = upward_imports(ROOT)
    assert sorted(upward - exceptions) == [], "imports from a later room"
    assert sorted(exceptions - upward) == [], "exceptions in docs/design.md that nobody uses"


def test_an_upward_import_is_found(tmp_path):
    sources = {
        "core/memory/good.py": "from tracejit import config\nfrom .storage import Storage",
        "core/memory/bad.py": "from ..eager import tensor\nfrom tracejit import jit",
        "core/ops/bad.py": "def late():\n    import tracejit.jit.runtime.cache",
        "jit/passes/good.py": "from tracejit.core.ops.operators import x",
        "jit/passes/bad.py": "from tracejit.jit import lowering",
        "nn/good.py": "from tracejit import jit\nimport tracejit",
    }
    for name, text in sources.items():
        path = tmp_path / "tracejit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert upward_imports(tmp_path) == {
        ("tracejit/core/memory/bad.py", "tracejit.core.eager"),
        ("tracejit/core/memory/bad.py", "tracejit.jit"),
        ("tracejit/core/ops/bad.py", "tracejit.jit.runtime.cache"),
        ("tracejit/jit/passes/bad.py", "tracejit.jit.lowering"),
    }


def test_an_exception_needs_a_reason():
    rows = ["| `tracejit/core/ops/a.py` | `tracejit.core.eager` | the tape |",
            "| tracejit/core/ops/b.py | tracejit.jit.ir | |", "| file | imports | why |",
            "|---|---|---|"]
    assert listed_exceptions("\n".join(rows)) == {("tracejit/core/ops/a.py", "tracejit.core.eager")}
