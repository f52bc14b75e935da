"""Steps of docs/shipping_the_cache.md, run with real folders; its Dockerfile without docker."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tracejit.commands import parsers
from tracejit.config import TARGETS
from tracejit.jit.lowering.target import BASELINES, missing_features

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/shipping_the_cache.md").read_text()
WARM_UP = """
import tracejit as tj
from tracejit.jit.runtime import cache

@tj.script
def predict(x, w):
    return (x @ w).relu().sum(1)

predict(tj.ones(4, 3), tj.ones(3, 2))
print("compiled", cache.counts["compiled"], "loaded", cache.counts["loaded"])
"""
pytestmark = pytest.mark.skipif(bool(missing_features("x86-64-v3")), reason="no x86-64-v3")


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)[1]


def shell(lines, cwd, **variables):
    """Run lines of a shell, where `python` is this interpreter; return what they print."""
    text = f'set -e\npython() {{ {shlex.quote(sys.executable)} "$@"; }}\n{lines}'
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run(["sh", "-c", text], cwd=cwd, env=environment, capture_output=True,
                          text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def counts(printed):
    return [tuple(map(int, found)) for found in
            re.findall(r"compiled (\d+) loaded (\d+)", printed)]


def test_the_steps(tmp_path):
    (tmp_path / "warm_up.py").write_text(WARM_UP)
    printed = shell(block("sh"), tmp_path)
    (compiled, loaded), (again, shipped) = counts(printed)
    assert compiled > 0 and loaded == 0 and again == 0 and shipped == compiled
    assert "kernels for target x86-64-v3" in printed and "sha256 " in printed
    assert (tmp_path / "image").stat().st_mode & 0o777 == 0o755


@pytest.mark.full
def test_the_dockerfile(tmp_path):
    """Each stage is a folder; ENV, COPY, RUN and CMD do there what docker would."""
    (tmp_path / "context").mkdir()
    (tmp_path / "context/warm_up.py").write_text(WARM_UP)
    (tmp_path / "context/serve.py").write_text(WARM_UP)
    stages: dict[str, Path] = {}
    printed, root, variables, user = "", tmp_path, {}, ""
    for line in block("dockerfile").splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            root, variables, user = tmp_path / f"stage{len(stages)}", {}, ""
            stages[rest.rpartition(" ")[2]] = root
            for name in ("tmp", "app", "opt"):
                (root / name).mkdir(parents=True)
        elif word == "ENV":
            pairs = dict(pair.split("=") for pair in rest.split())
            variables |= {k: v if v in TARGETS else f"{root}{v}" for k, v in pairs.items()}
        elif word == "COPY" and rest.startswith("--from="):
            stage, source, target = rest.removeprefix("--from=").split()
            (root / target[1:]).write_bytes((stages[stage] / source[1:]).read_bytes())
        elif word == "COPY":
            shell(f"cp {tmp_path}/context/*.py {root}/app", tmp_path)
        elif word == "RUN" and not rest.startswith("pip "):
            own = re.sub(r"(?<= )(?=/)", str(root), rest)
            printed += shell(own, root / "app", **variables)
        elif word == "USER":
            user = rest
        elif word == "CMD":
            assert user and user != "0", "it runs as a user, see tests/runtime/test_cache_trust.py"
            printed += shell(" ".join(eval(rest)), root / "app", **variables)
        else:
            assert word in ("", "WORKDIR") or rest.startswith("pip install tracejit"), line
    (compiled, _), (again, shipped) = counts(printed)
    assert compiled > 0 and again == 0 and shipped == compiled, printed
    assert not list((root / "tmp").iterdir()), "the archive is removed again"


def test_the_page_names_each_target_and_its_commands_parse():
    assert all(f"`{name}`" in PAGE for name in ("native", *BASELINES))
    lines = re.findall(r"python -m tracejit ([^`\n&|#]+)", PAGE)
    assert len(lines) >= 5
    for line in lines:
        parsers.parser().parse_args(shlex.split(line))
