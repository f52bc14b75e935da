"""Temporaries never overlap while both live, and share memory when they can."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tracejit.jit.runtime.memory_plan import Life, plan

LIVES = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 12), st.integers(0, 6)).map(
        lambda t: Life(t[0], t[1], t[1] + t[2])
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(LIVES)
def test_no_two_living_temporaries_overlap(lives):
    found = plan(lives)
    spans = [(o, o + max(1, -(-x.nbytes // 64)) * 64) for o, x in zip(found.offsets, lives)]
    for (start, stop), life in zip(spans, lives):
        assert start % 64 == 0 and 0 <= start and stop <= found.nbytes
        for (other_start, other_stop), other in zip(spans, lives):
            if other is not life and other.first <= life.last and life.first <= other.last:
                assert stop <= other_start or other_stop <= start
    assert found.nbytes <= sum(stop - start for start, stop in spans)


def test_a_chain_needs_two():
    assert plan([Life(6400, k, k + 1) for k in range(50)]).nbytes == 2 * 6400


def test_the_tightest_hole_is_taken():
    wide, wall, tight, end = Life(1024, 0, 3), Life(64, 1, 9), Life(128, 2, 3), Life(64, 3, 9)
    found = plan([wide, wall, tight, end, Life(128, 4, 9)])
    assert found.offsets == [0, 1024, 1088, 1216, 1088]
