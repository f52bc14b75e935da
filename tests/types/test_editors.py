"""What jedi, the engine of many editors, knows of the package."""

from __future__ import annotations

import tempfile

import pytest

import tracejit
from tests.types.checkers import ROOT

jedi = pytest.importorskip("jedi")
# Processes that share jedi's own folder read files that others are writing.
jedi.settings.cache_directory = tempfile.mkdtemp(prefix="jedi")
IMPORT = "import tracejit\n"
STEP = '''\
import tracejit
@tracejit.{decorator}
def step(x: tracejit.Tensor) -> tracejit.Tensor:
    return x
'''


def completions(source: str) -> set[str]:
    project = jedi.Project(ROOT, added_sys_path=[str(ROOT)], smart_sys_path=False)
    return {found.name for found in jedi.Script(source, project=project).complete()}


def inferred(expression: str) -> list[str]:
    project = jedi.Project(ROOT, added_sys_path=[str(ROOT)], smart_sys_path=False)
    script = jedi.Script(f"{IMPORT}y = {expression}\ny", project=project)
    return [found.name for found in script.infer(3, 1)]


def test_all_public_names_are_offered() -> None:
    methods = {name for name in dir(tracejit.Tensor) if not name.startswith("_")}
    assert methods - completions(IMPORT + "tracejit.Tensor.") == set()
    assert methods - completions(IMPORT + "tracejit.ones(2).") == set()


@pytest.mark.oracle
def test_names_of_pytorch_that_are_here_are_offered() -> None:
    torch = pytest.importorskip("torch")
    for theirs, ours, text in ((torch.Tensor, tracejit.Tensor, "tracejit.Tensor."),
                               (torch, tracejit, "tracejit."),
                               (torch.nn.functional, tracejit.nn.functional,
                                "tracejit.nn.functional."),
                               (torch.linalg, tracejit.linalg, "tracejit.linalg."),
                               (torch.nn, tracejit.nn, "tracejit.nn.")):
        both = {name for name in dir(theirs) if not name.startswith("_") and hasattr(ours, name)}
        offered = completions(IMPORT + text)
        assert len(both & offered) >= 0.95 * len(both), sorted(both - offered)


@pytest.mark.parametrize("expression, kind", [
    ("tracejit.ones(2) + 1", "Tensor"), ("tracejit.rand(3).sum()", "Tensor"),
    ("tracejit.ones(2)[0]", "Tensor"), ("tracejit.ones(2).shape", "Size"),
    ("tracejit.nn.functional.relu(tracejit.ones(1))", "Tensor"),
    ("tracejit.fft.fft(tracejit.ones(2))", "Tensor"),
    ("tracejit.linalg.svd(tracejit.eye(2)).S", "Tensor"),
    ("tracejit.nn.Linear(2, 3).weight", "Parameter"),
    ("tracejit.optim.Adam([])", "Adam"),
])
def test_types_of_expressions(expression: str, kind: str) -> None:
    assert inferred(expression) == [kind]


@pytest.mark.parametrize("decorator", ["script", "script(fullgraph=True)", "compile",
                                       "compile(mode='default')", "jit.trace"])
def test_captured_functions_offer_their_report(decorator: str) -> None:
    source = STEP.format(decorator=decorator)
    assert {"report", "graph", "graphs"} <= completions(source + "step.")
