"""What programs ask of `__version__` before they use a name: answers as PyTorch gives them."""

import io
import itertools
import operator

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

TEXTS = """2.13.0+cpu 2.13 2.13.0 2.2 1.10.0a 1.10.0 1.10.0a0+git 1.10.0.dev2 1.10.0rc1 1.10.0.post1
1.10.0-3 v1.10 1!0.1 parrot 1.10.0a1.dev3 1.10.0.post1.dev2 1.10+abc 1.10+1 1.10+1.abc 1.10.0beta
1.10.0.rev2 1.10dev 2 1.10+ABC.1 1.10.preview.2""".split()
OTHERS = [*TEXTS, "", (1, 10), (2,), (2, 13, 0), [2, 13], ("1", "10"), (2, 13, "a"), (), 2, 2.1,
          None]
QUESTIONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt)


def answer(question, left, right):
    try:
        return question(left, right)
    except TypeError:
        return TypeError


@pytest.mark.parametrize("question", QUESTIONS)
def test_versions_are_ordered_as_in_pytorch(question):
    ours, theirs = (lib.torch_version.TorchVersion for lib in (tracejit, torch))
    for text, other in itertools.product(TEXTS, OTHERS):
        for swap in (1, -1):
            pairs = [(cls(text), other)[::swap] for cls in (ours, theirs)]
            assert answer(question, *pairs[0]) is answer(question, *pairs[1]), (text, other, swap)


@pytest.mark.parametrize("question", [
    "v >= '1.5.0'", "v >= (2, 0)", "v[0] == '2'", "v < '1.13'", "v.startswith('2.13.')",
    "tuple(map(int, v.split('.')[:2])) >= (1, 10)", "int(v.split('.')[0])", "isinstance(v, str)",
    "v.split('+')[0]", "'2.2' < v", "len({v: 1})",
])
def test_programs_find_the_version_that_they_ask_for(question):
    """The release whose names these are is the one that the tests compare with."""
    assert eval(question, {"v": tracejit.__version__}) == eval(question, {"v": torch.__version__})
    assert tracejit.version.__version__ is tracejit.__version__


def test_versions_of_packaging():
    packaging = pytest.importorskip("packaging.version")
    assert tracejit.__version__ >= packaging.Version("2.0") > packaging.Version("1")
    assert packaging.parse(tracejit.__version__) > packaging.Version("2.12")
    assert packaging.Version("2.0") < tracejit.__version__


def test_the_version_is_asked_within_captured_functions():
    @tracejit.script
    def padded(x):
        padding = 1 if tracejit.__version__ >= "1.5.0" else 2
        return tracejit.nn.functional.pad(x, (padding, padding))

    for _ in range(2):
        assert padded(tracejit.ones(2)).tolist() == [0, 1, 1, 0]
    assert padded.report().breaks == [] and padded.report().cache_misses == 1


def test_checkpoints_say_which_version_wrote_them():
    file = io.BytesIO()
    torch.save({"version": torch.__version__}, file)
    file.seek(0)
    assert tracejit.load(file, weights_only=False) == {"version": torch.__version__}
    file = io.BytesIO()
    tracejit.save({"version": tracejit.__version__}, file)
    file.seek(0)
    found = torch.load(file, weights_only=False)["version"]
    assert type(found) is torch.torch_version.TorchVersion and found == str(tracejit.__version__)
    file.seek(0)
    assert tracejit.load(file)["version"] == tracejit.__version__
