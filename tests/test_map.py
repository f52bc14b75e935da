"""docs/map.md has one line for each file of the package, and no line for a file that is gone."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = re.compile(r"^- `(tracejit/[\w/]+\.py)` - \S.*$")


def listed(text: str) -> list[str]:
    return [match[1] for match in map(LINE.match, text.splitlines()) if match]


def test_the_map_lists_every_file_once():
    on_map = listed((ROOT / "docs/map.md").read_text())
    on_disk = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tracejit").rglob("*.py")}
    assert sorted(on_disk - set(on_map)) == [], "not on docs/map.md"
    assert sorted(set(on_map) - on_disk) == [], "on docs/map.md, but gone"
    assert sorted({name for name in on_map if on_map.count(name) > 1}) == [], "listed twice"


def test_a_line_needs_a_text():
    assert listed("- `tracejit/jit.py` - the whole flow") == ["tracejit/jit.py"]
    assert listed("- `tracejit/jit.py` -\n- tracejit/logs.py - no ticks") == []
