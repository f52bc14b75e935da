"""Names that programs import from places inside PyTorch, and small tools they use: as there."""

import warnings
from importlib import import_module

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """
its('types').Device, its('types').Number, its('types')._size, its('types').FileLike
its('types')._TensorOrTensors, isinstance(1.5, its('types')._Number), its('types')._int(2.5)
m.types is its('types')
[*map(m.overrides.is_tensor_like, (m.ones(1), m.nn.Parameter(m.ones(1)), 1, [m.ones(1)], Like()))]
its('autograd.grad_mode').no_grad is m.no_grad
its('autograd.grad_mode').enable_grad is m.enable_grad
m.autograd.grad_mode.set_grad_enabled is m.set_grad_enabled
its('autograd.anomaly_mode').detect_anomaly is m.autograd.detect_anomaly
m.autograd.anomaly_mode.set_detect_anomaly is m.autograd.set_detect_anomaly
m.is_anomaly_enabled(), m.is_anomaly_check_nan_enabled()
(m.set_anomaly_enabled(True, False), m.is_anomaly_enabled(), m.is_anomaly_check_nan_enabled())
(m.set_anomaly_enabled(False), m.is_anomaly_enabled(), m.is_anomaly_check_nan_enabled())
its('utils.data._utils.collate').default_collate([1, 2])
its('utils.data._utils').worker.get_worker_info()
m.utils.data._utils.collate.default_collate_err_msg_format
its('utils.data._utils.worker').get_worker_info()
its('utils.data._utils.collate').np_str_obj_array_pattern.search('<U3') is not None
sorted(its('multiprocessing').get_all_sharing_strategies()), m.multiprocessing.cpu_count() > 0
sorted(set(its('multiprocessing').__all__) - {'spawn', 'reducer'})
made(m.float32), made(m.float64, low=1.5, high=2), made(m.float16), made(m.bfloat16, low=1)
made(m.int64), made(m.int8, low=-400, high=400), made(m.uint8), made(m.bool), made(m.int32, low=0.5)
made(m.float32, low=-1e38, high=1e38), made(m.float64, low=-1.7e308, high=1.7e308)
m.testing.make_tensor(2, 3, dtype=m.complex64, device='cpu').shape
m.testing.make_tensor((2, 3), dtype=m.float32, device='cpu', noncontiguous=True).stride()
m.testing.make_tensor(1, dtype=m.float32, device='cpu', noncontiguous=True).stride()
m.testing.make_tensor([2], dtype=m.float32, device='cpu', requires_grad=True).requires_grad
m.testing.make_tensor(9, dtype=m.int64, device='cpu', low=0, high=1, exclude_zero=True)
m.testing.make_tensor(2, dtype=m.float32, device='cpu', low=0, high=0, exclude_zero=True)
made(m.int64, requires_grad=True)
made(m.int64, low=3, high=3)
made(m.float32, low=float('nan'))
made(m.uint8, low=-9, high=-3)
made(m.float32, noncontiguous=True, memory_format=m.contiguous_format)
""".strip().splitlines()


class Like:
    """Tensor-like, as it says itself."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return -1


def shown(library, call):
    def its(name):
        return import_module(f"{library.__name__}.{name}")

    def made(dtype, low=None, high=None, **options):
        """What is known of 2000 random elements."""
        x = library.testing.make_tensor(2000, dtype=dtype, device="cpu", low=low, high=high,
                                        **options)
        least, most = (float(y) for y in x.double().aminmax())
        width = max(most - least, 1)
        return x.dtype, x.shape, round(least / width, 1), round(most / width, 1)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = repr(eval(call, {"m": library, "its": its, "made": made, "Like": Like}))
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    texts = [found, *(str(w.message) for w in told)]
    for word in ("torch.", "tracejit.", "core.eager.tensor.", "core.eager.size.",
                 "core.memory.devices."):
        texts = [text.replace(word, "") for text in texts]
    return texts


@pytest.mark.parametrize("call", CALLS)
def test_it_is_what_pytorch_has(call):
    assert shown(tracejit, call) == shown(torch, call)


def _add(x, answers):
    x.add_(1)
    answers.put((float(x.sum()), "done"))


@pytest.mark.parametrize("library", ["tracejit", "torch"])
def test_forked_processes_share_tensors_and_send_others(library):
    library = import_module(library)
    mp = import_module(f"{library.__name__}.multiprocessing")
    context = mp.get_context("fork")
    x, answers = library.ones(3).share_memory_(), context.Queue()
    child = context.Process(target=_add, args=(x, answers))
    child.start()
    total, word = answers.get(timeout=60)
    child.join(60)
    assert (total, word, x.tolist()) == (6.0, "done", [2.0] * 3)
    with mp.Value("i", 3).get_lock(), mp.Lock():
        assert mp.current_process().name == "MainProcess"


def test_a_shared_tensor_is_not_copied_to_another_process():
    from multiprocessing.reduction import ForkingPickler

    import tracejit.multiprocessing

    x, queue = tracejit.ones(2), tracejit.multiprocessing.SimpleQueue()
    queue.put({"weight": x, "bias": tracejit.nn.Parameter(x * 2)})
    sent = queue.get()
    assert sent["weight"].tolist() == [1, 1] and sent["bias"].tolist() == [2, 2]
    for shared in (x.share_memory_(), tracejit.nn.Parameter(tracejit.ones(2)).share_memory_()):
        with pytest.raises(NotImplementedError, match="give it to processes that are forked"):
            ForkingPickler.dumps(shared)


def test_random_tensors_are_made_in_programs():
    def drawn(x):
        made = tracejit.testing.make_tensor(3, 4, dtype=tracejit.float32, device="cpu", low=2)
        return made + x

    tracejit.manual_seed(0)
    want = drawn(tracejit.ones(4))
    tracejit.manual_seed(0)
    assert tracejit.equal(tracejit.script(drawn)(tracejit.ones(4)), want)
