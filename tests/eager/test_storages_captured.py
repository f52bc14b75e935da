"""Storages and captured calls: memory that is given back, replaced or written as bytes is never
read as it was."""

import pytest

import tracejit


def weighted(x, w):
    return (x * w * w).sum()


@pytest.mark.parametrize("jit", [tracejit.trace, tracejit.script])
def test_memory_given_back_between_calls(jit):
    captured = jit(weighted)
    x, w = tracejit.arange(3.0), tracejit.ones(3) * 2
    for _ in range(4):
        assert captured(x, w) == 12
    memory = w.untyped_storage()
    memory.resize_(0)
    spare = tracejit.ones(3) * 100  # may get the memory
    with pytest.raises(RuntimeError, match="its storage has no memory"):
        captured(x, w)
    memory.resize_(12)
    w.copy_(spare)
    assert captured(x, w) == 30000 and captured(x, w) == 30000
    assert not captured.report().breaks


@pytest.mark.parametrize("jit", [tracejit.trace, tracejit.script])
def test_backwards_after_memory_was_given_back(jit):
    """Between forward and backward, as sharded training does it."""

    def step(x, w):
        return weighted(x * x, w)

    captured = jit(step)
    for factor in (1.0, 2.0, 3.0, 4.0):
        grads = []
        for run in (step, captured):
            x = tracejit.arange(3.0, requires_grad=True)
            w = (tracejit.ones(3) * factor).requires_grad_()
            loss = run(x * 1, w)
            memory = w.untyped_storage()
            memory.resize_(0)
            memory.resize_(12)
            w.data.fill_(factor)
            loss.backward()
            grads.append([x.grad.tolist(), w.grad.tolist()])
        assert grads[0] == grads[1]


def test_read_in_a_captured_call():
    @tracejit.script
    def size(x):
        y = x * 2
        return y, y.untyped_storage().nbytes(), x.untyped_storage().nbytes()

    for count in (2, 3, 3, 5):
        y, its, other = size(tracejit.ones(count)[:1])
        assert (y.tolist(), its, other) == ([2.0], 4, 4 * count)
    assert "the function reads a storage" in [b.reason for b in size.report().breaks]


def test_written_in_a_captured_call():
    x = tracejit.ones(2)
    memory = x.untyped_storage()

    @tracejit.script
    def write(byte):
        before = x * 2
        memory[3] = byte
        after = x * 2
        memory.fill_(0)
        return before, after, x + 1

    for byte in (0x40, 0xC0, 0x40):
        x.fill_(1)
        before, after, last = write(byte)
        assert before.tolist() == [2, 2] and last.tolist() == [1, 1]
        assert after[0] == {0x40: 8, 0xC0: -8}[byte]


def test_asked_in_a_captured_call():
    x = tracejit.ones(2)
    memory = x.untyped_storage()

    @tracejit.script
    def scaled(y):
        return y * memory.nbytes() * memory[3]

    for _ in range(3):
        assert scaled(tracejit.ones(1)) == 8 * 63
    memory.resize_(16)
    x.fill_(-1)
    assert scaled(tracejit.ones(1)) == 16 * 191


def test_set_in_a_captured_call():
    weights = tracejit.ones(2)

    @tracejit.script
    def swap(x, memory, offset):
        before = weights * x
        weights.set_(memory, offset, (2,))
        return before, weights * x

    memory = tracejit.arange(6.0).untyped_storage()
    last = [1.0, 1.0]
    for offset in (0, 3, 1):
        before, after = swap(tracejit.ones(2), memory, offset)
        assert before.tolist() == last
        last = after.tolist()
        assert last == [offset, offset + 1]


def test_a_released_tensor_is_not_captured():
    x = tracejit.ones(3)
    x.untyped_storage().resize_(0)
    for jit in (tracejit.trace, tracejit.script):
        with pytest.raises(RuntimeError, match="its storage has no memory"):
            jit(lambda x: x + 1)(x)


def test_writes_as_bytes_reach_what_a_captured_call_kept():
    """A backward computes again from its inputs what the plain function keeps."""

    def step(x):
        return (x.exp() * 2).sin().sum()

    captured = tracejit.script(step)
    for _ in range(3):
        grads = []
        for run in (step, captured):
            x = tracejit.arange(3.0, requires_grad=True)
            loss = run(x)
            x.untyped_storage().copy_(tracejit.ones(3).untyped_storage())
            loss.backward()
            grads.append(x.grad.tolist())
        assert grads[0] == grads[1]


def test_storages_where_files_are_loaded(tmp_path):
    tracejit.save({"x": tracejit.ones(3)}, tmp_path / "x.pt")
    seen = []

    def place(storage, location):
        seen.append((storage.nbytes(), location))
        return storage.cpu()

    loaded = tracejit.load(tmp_path / "x.pt", map_location=place)
    assert seen == [(12, "cpu")] and loaded["x"].tolist() == [1, 1, 1]


def test_set_counts_as_a_write():
    def move(x):
        x.set_(x.clone())
        return x

    for do in (move, tracejit.script(move), tracejit.trace(move)):
        for _ in range(2):
            x = tracejit.ones(2)
            assert (do(x) is x, x._version) == (True, 1)


@pytest.mark.parametrize("looks", [lambda x: x[1:], lambda x: x.untyped_storage(),
                                   lambda x: x.detach()])
def test_memory_is_shared_only_where_nothing_else_looks_at_it(looks):
    x = tracejit.arange(3.0)
    other = looks(x)
    with pytest.raises(NotImplementedError, match="other tensors or arrays look at the memory"):
        x.share_memory_()
    assert not other.is_shared()
    alone = tracejit.arange(3.0).share_memory_()
    assert alone.is_shared() and alone.tolist() == [0, 1, 2]
