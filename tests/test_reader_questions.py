"""Questions of a reader: one link from the start of the site, and from README, to the answer."""

import re
from pathlib import Path

import pytest

from tests.test_users_pages import anchors, slug

ROOT = Path(__file__).resolve().parent.parent
STARTS = {"README.md": ROOT, "docs/index.md": ROOT / "docs"}
ROW = re.compile(r"^\| ([^|]+\?) \| ([^|]+) \| \[[^\]]+\]\(([^)]+)\) \|$", re.MULTILINE)
LINES = 60  # of a page or a section that a reader has before the eyes
# What a reader asks -> what the answer must have: code to type, or the sentence.
ANSWERS = {
    "recompile": ("report().recompiles", "cause.path"),
    "kernel is this line": (".report().kernels", "kernel.locations"),
    "kernel is slow": ("f.profile(x)", ".slowest"),
    "editors": ("mypy", "pyright", "What is `Any`"),
    "error": ("tracejit: in matmul", "TRACEJIT_TRACEBACKS=full"),
    "loop": ("report().breaks", "report().unrolled"),
    "breaks": ("report().breaks", "`fullgraph=True` makes a break an error"),
    "cache": ("cache export", "cache import"),
    "NaN": ("TRACEJIT_CHECK_NANS=1", "names the line"),
    "difference": ("tj.compare(f", "first_bad"),
    "debugger": ("TRACEJIT_MODE=eager python -m pdb", "stops in your frame"),
    "processes": ("tracejitrun", "tracejit[distributed]"),
    "older processor": ("x86-64-v2", "TargetError"),
    "first call": ("report().compile_seconds", "loads the compiler"),
    "memory": ("report().peak_bytes", "TRACEJIT_LOGS=memory"),
    "pass changed": ("f.graphs.items()", "TRACEJIT_PRINT_AFTER="),
    "last digit": ("numerics=\"eager\"", "added in another order", "tj.compare("),
    "threads": ("tracejit-worker-1", "get_num_threads()", "TRACEJIT_NUM_THREADS"),
    "check my model": ("\"tracejit\", \"check\"", "report().breaks"),
    "reproduce": ("manual_seed(", "pip freeze", "print(run() == run())"),
    "backward": ("def backward(ctx", "autograd.Function"),
    "random": ("bit for bit",),
    "resume": ("state_dict()", "get_rng_state()"),
}


def rows(start):
    return ROW.findall((ROOT / start).read_text())


def shown(target):
    """Return what a reader sees who follows a link: the section of the anchor, or the page."""
    file, _, anchor = target.partition("#")
    text = Path(file).read_text()
    if anchor:
        assert anchor in anchors(text), target
        headings = re.finditer(r"^#+ (.+)$", text, re.MULTILINE)
        text = text[next(m.start() for m in headings if slug(m[1]) == anchor):]
    return text


@pytest.mark.parametrize("start", STARTS)
def test_each_question_has_a_row(start):
    found = [question.lower() for question, _, _ in rows(start)]
    assert len(found) == len(ANSWERS)
    assert [sum(word.lower() in question for question in found) for word in ANSWERS] == [
        1] * len(ANSWERS)


def test_both_starts_have_the_same_rows():
    ours, theirs = rows("README.md"), rows("docs/index.md")
    assert [(q, a, t.removeprefix("docs/")) for q, a, t in ours] == theirs


@pytest.mark.parametrize("word", ANSWERS)
@pytest.mark.parametrize("start", STARTS)
def test_the_answer_stands_where_the_link_leads(start, word):
    (target,) = [t for question, _, t in rows(start) if word.lower() in question.lower()]
    text = shown(str(STARTS[start] / target))
    seen = "\n".join(text.splitlines()[:LINES])
    assert [part for part in ANSWERS[word] if part not in seen] == []
