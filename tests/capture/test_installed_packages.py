"""Packages beside NumPy run code of the user's: what their modules read is guarded, whoever calls
them."""

import json
import os
import sys

import numpy
import pytest

import tracejit
from tracejit.jit.capture import watcher

SITE = os.path.dirname(os.path.dirname(numpy.__file__))
CODE = """
class Inner(nn.Module):
    scale = 2.0

    def forward(self, x):
        return x * self.scale if self.training else x - len(STATE)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x) + 1
"""


@pytest.fixture
def installed():
    """Names of a package that lies where packages are installed."""
    path = os.path.join(SITE, "a_package_of_others", "net.py")
    names = {"nn": tracejit.nn, "STATE": [1], "__name__": "a_package_of_others.net"}
    exec(compile(CODE, path, "exec"), names)
    return names


@pytest.mark.parametrize("jit", [tracejit.script, tracejit.trace])
def test_what_an_installed_module_reads_is_guarded(installed, jit):
    net = installed["Net"]()
    f, x = jit(lambda x: net(x)), tracejit.ones(2)
    assert [f(x).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3
    net.inner.scale = 5.0
    assert [f(x).tolist() for _ in range(2)] == [[6.0, 6.0]] * 2
    net.eval()
    assert [f(x).tolist() for _ in range(2)] == [[1.0, 1.0]] * 2
    installed["STATE"].append(2)
    assert [f(x).tolist() for _ in range(2)] == [[0.0, 0.0]] * 2
    assert f.report().breaks == [] and f.report().cache_hits >= 4


def test_libraries_that_ours_calls_are_not_looked_into():
    standard = os.path.dirname(os.__file__)
    for path in (json.__file__, numpy.__file__, "<frozen posixpath>"):
        assert watcher._is_called_by_us(path)
    for folder in (SITE, os.path.join(standard, "site-packages")):
        assert not watcher._is_called_by_us(os.path.join(folder, "a_package_of_others", "net.py"))


FINDER = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        asked.append((name, os.getpid(), len(sys.modules)))
"""


def test_a_finder_of_modules_that_a_package_put_there_is_not_looked_into(monkeypatch):
    names = {"asked": [], "os": os, "sys": sys}
    path = os.path.join(SITE, "a_package_of_others", "finder.py")
    exec(compile(FINDER, path, "exec"), names)
    monkeypatch.setattr(sys, "meta_path", [names["Finder"](), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "wsgiref.headers", raising=False)

    @tracejit.script
    def f(x):
        import wsgiref.headers

        return x * len(wsgiref.headers.__name__)

    x = tracejit.ones(2)
    assert [f(x).tolist() for _ in range(4)] == [[15.0, 15.0]] * 4
    assert f.report().breaks == [] and f.report().cache_hits >= 2
    assert "wsgiref.headers" in [name for name, *_ in names["asked"]]
