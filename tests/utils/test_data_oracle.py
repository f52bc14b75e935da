"""Datasets, samplers, collating and the loader's arguments: what PyTorch's own show and raise."""

import collections
import importlib
import re
import warnings

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

Pair = collections.namedtuple("Pair", "a b")

EXPRESSIONS = """
Dataset()[0]
len(Dataset())
IterableDataset()
TensorDataset(lib.ones(2), lib.ones(3))
len(TensorDataset(lib.ones(2)))
TensorDataset(lib.ones(2), lib.ones(2, 2))[0]
TensorDataset(lib.arange(4), lib.ones(4))[1:3]
ConcatDataset([])
ConcatDataset([Stream()])
ConcatDataset([ds, ds])[-1]
ConcatDataset([ds, ds])[-11]
ConcatDataset([ds, ds])[10]
ConcatDataset([ds, ds]).cumulative_sizes
list(ChainDataset([Stream(), Stream()]))
list(ChainDataset([ds]))
len(ChainDataset([Stream()]))
len(ChainDataset([ds]))
StackDataset()
StackDataset(ds, Numbers(3))
StackDataset(ds, a=ds)
StackDataset(a=ds, b=Numbers(4))
StackDataset(ds, ds)[1]
StackDataset(a=ds)[1]
StackDataset(ds, ds).__getitems__([1, 2])
StackDataset(a=ds).__getitems__([1, 2])
StackDataset(Short(), ds).__getitems__([1, 2])
Subset(ds, [1, 2])[0]
Subset(ds, [1, 2])[[0, 1]]
len(Subset(ds, [1]))
Subset(ds, [1, 2]).__getitems__([0, 1])
random_split(ds, [2, 2])
[len(s) for s in random_split(ds, [.5, .5])]
random_split(ds, [.5, .6])
random_split(ds, [1.5, -.5])
[len(s) for s in random_split(ds, [.99, .01])]
sorted(sum((s.indices for s in random_split(ds, [1, 4])), []))
(ds + ds)[6]
list(Stream() + Stream())
list(Sampler())
len(Sampler())
Sampler(ds)
RandomSampler(ds, replacement=1)
RandomSampler(ds, num_samples=0)
RandomSampler(ds, num_samples=2.5)
sorted(list(RandomSampler(ds, num_samples=12))[:10])
len(list(RandomSampler(ds, num_samples=12)))
len(list(RandomSampler(ds, True, 70)))
len(RandomSampler(ds))
RandomSampler(Numbers(0))
RandomSampler(ds, num_samples=-1)
WeightedRandomSampler([1, 2], 0)
WeightedRandomSampler([1, 2], True)
WeightedRandomSampler([1, 2], 2, replacement=1)
WeightedRandomSampler([[1, 2]], 2)
len(WeightedRandomSampler([1, 2], 7))
list(WeightedRandomSampler([1., 2], 5, replacement=False))
sorted(WeightedRandomSampler([1., 2], 2, replacement=False))
WeightedRandomSampler([1, 2], 2).weights
BatchSampler([1], 0, False)
BatchSampler([1], 2, 1)
list(BatchSampler(range(5), 2, False))
list(BatchSampler(range(5), 2, True))
len(BatchSampler(range(5), 2, False))
len(BatchSampler(range(5), 2, True))
BatchSampler([1], True, True)
list(BatchSampler(iter(range(5)), 2, False))
list(SequentialSampler(ds))
sorted(SubsetRandomSampler([4, 5]))
len(SubsetRandomSampler([4, 5]))
DataLoader(ds, num_workers=-1)
DataLoader(ds, timeout=-1)
DataLoader(ds, prefetch_factor=2)
DataLoader(ds, num_workers=1, prefetch_factor=-2)
DataLoader(ds, persistent_workers=True)
DataLoader(Stream(), shuffle=True)
DataLoader(Stream(), shuffle=3)
DataLoader(Stream(), sampler=range(3))
DataLoader(Stream(), batch_sampler=[[1]])
DataLoader(ds, sampler=range(5), shuffle=True)
DataLoader(ds, batch_sampler=[[1]], batch_size=2)
DataLoader(ds, batch_sampler=[[1]], drop_last=True)
DataLoader(ds, batch_size=None, drop_last=True)
DataLoader(ds, batch_size=0)
DataLoader(ds, multiprocessing_context='fork')
DataLoader(ds, num_workers=1, multiprocessing_context='nope')
DataLoader(ds, num_workers=1, multiprocessing_context=3)
DataLoader(ds, num_workers=9999).num_workers
len(DataLoader(ds, batch_size=2))
len(DataLoader(ds, batch_size=2, drop_last=True))
len(DataLoader(Stream()))
len(DataLoader(ds, batch_size=None))
list(DataLoader(ds, batch_size=None))
list(DataLoader(ds, batch_size=2))
list(DataLoader(ds, 2, drop_last=True))
list(DataLoader(Stream(), batch_size=2))
list(DataLoader(Stream(), batch_size=2, drop_last=True))
list(DataLoader(Stream(), batch_size=None))
list(DataLoader(ds, batch_sampler=[[1, 2], [3]]))
list(DataLoader(ds, 2, sampler=[3, 1, 0]))
list(DataLoader(ds, 2, collate_fn=tuple))
sorted(int(x) for x in DataLoader(ds, shuffle=True))
setattr(DataLoader(ds), 'batch_size', 3)
setattr(DataLoader(ds), 'dataset', 3)
setattr(DataLoader(ds), 'num_workers', 0)
DataLoader(ds, batch_sampler=[[1]]).batch_size
DataLoader(ds).multiprocessing_context
DataLoader(ds, num_workers=2).prefetch_factor
DataLoader(ds).prefetch_factor
list(DataLoader(Numbers(0)))
list(DataLoader(ds, num_workers=2, timeout=30))
list(DataLoader(ds, 2, num_workers=2, in_order=True))
list(DataLoader(Stream(), 2, num_workers=2))
DataLoader(NoLength(), shuffle=True)
list(DataLoader(NoLength()))
len(DataLoader(NoLength()))
len(iter(DataLoader(ds)))
list(DataLoader([1, 2, 3], 2))
list(DataLoader({'a': 1}))
next(iter(DataLoader(ds, pin_memory=True)))
(len(wrong), list(wrong))
list(DataLoader(Batched(), 2))
get_worker_info()
default_collate([1, 2])
default_collate([1., 2.])
default_collate([True, False])
default_collate(['a', 'b'])
default_collate([b'a'])
default_collate([(1, 2), (3, 4)])
default_collate([[1, 2], [3, 4]])
default_collate([{'a': 1}, {'a': 2}])
default_collate([Pair(1, 2), Pair(3, 4)])
default_collate([np.float32(2), np.float32(3)])
default_collate([np.array([1, 2]), np.array([3, 4])])
default_collate([np.array(2.)])
default_collate([np.array(['a'])])
default_collate([[1], [1, 2]])
default_collate([object()])
default_collate([None])
default_collate([collections.OrderedDict(a=1)])
default_collate([collections.defaultdict(list, a=1)])
default_collate([1 + 2j])
default_collate([])
default_collate([range(3), range(3)])
default_collate([collections.deque([1, 2])])
default_collate([collections.UserDict(a=1)])
default_collate([lib.ones(2), lib.ones(2)])
default_collate([lib.ones(2), lib.ones(3)])
default_collate([lib.ones(2).bfloat16(), lib.ones(2).bfloat16()])
default_collate([lib.ones(2).int(), lib.ones(2).double()])
default_collate([lib.ones(2, requires_grad=True), lib.ones(2)]).requires_grad
default_collate([lib.ones(2, 2).t(), lib.zeros(2, 2)]).is_contiguous()
default_collate((lib.tensor(1), lib.tensor(2)))
default_collate([{'a': 1}, {'b': 2}])
default_collate([()])
default_collate([{'a': (1, 'x')}, {'a': (2, 'y')}])
default_convert([1, np.array([2]), (3, np.float32(4))])
default_convert({'a': np.array([1])})
default_convert(np.array(['a']))
default_convert(Pair(np.array([1]), 'x'))
default_convert(3)
default_convert('s')
default_convert(np.float64(2))
default_convert(lib.ones(1))
default_convert((1, 2))
default_convert(collections.UserList([1]))
list(DataLoader(Failing(KeyError('x\\ny')), num_workers=1))
list(DataLoader(Failing(ValueError('bad')), num_workers=2))
list(DataLoader(Failing(UnicodeDecodeError('utf8', b'', 0, 1, 'r')), num_workers=1))
list(DataLoader(ds, num_workers=2, worker_init_fn=fail))
list(DataLoader(ds, num_workers=1, collate_fn=fail))
[int(i) for i in DataLoader(Numbers(7), num_workers=3, prefetch_factor=1)]
list(DataLoader(Informed(), None, num_workers=2))
""".strip().splitlines()


def names(library):
    """What the expressions mention, made of one library."""
    data = importlib.import_module(f"{library}.utils.data")

    class Numbers(data.Dataset):
        def __init__(self, count=5):
            self.count = count

        def __len__(self):
            return self.count

        def __getitem__(self, index):
            return index

    class NoLength(data.Dataset):
        def __getitem__(self, index):
            return index

    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    class Wrong(Stream):
        def __len__(self):
            return 3

        def __repr__(self):
            return "Wrong()"

    class Short(Numbers):
        def __getitems__(self, indices):
            return indices[:1]

    class Batched(Numbers):
        def __getitems__(self, indices):
            return [10 * i for i in indices]

    class Failing(Numbers):
        def __init__(self, error):
            super().__init__(4)
            self.error = error

        def __getitem__(self, index):
            if index == 2:
                raise self.error
            return index

    class Informed(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            return iter([info.id, info.num_workers, info.dataset is self])

    def fail(argument):
        raise ValueError("failed")

    local = {n: getattr(data, n) for n in dir(data) if not n.startswith("_")}
    return local | {
        k: v for k, v in locals().items() if k not in ("data", "local", "library")
    } | {"lib": importlib.import_module(library), "np": np, "collections": collections,
         "Pair": Pair, "ds": Numbers(), "wrong": data.DataLoader(Wrong())}


def shown(expression, library):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = repr(eval(expression, names(library)))
        except Exception as error:
            lines = str(error).splitlines()
            # Of a worker's error: what it says first, and what its traceback ends with.
            found = f"{type(error).__name__}: {lines[:2] if len(lines) < 3 else lines[:1]}"
            found += str(lines[-1:])
    texts = [f"{w.category.__name__}: {w.message}" for w in warned
             if "fork" not in str(w.message)]
    return re.sub(r" at 0x\w+", "", f"{found} {texts}").replace(library, "lib")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression):
    assert shown(expression, "tracejit") == shown(expression, "torch")


def test_every_argument_is_pytorch_s():
    import inspect

    def arguments(cls):
        return [(p.name, p.kind, p.default) for p in inspect.signature(cls).parameters.values()
                if p.name != "generator"]

    for name in tracejit.utils.data.__all__:
        mine, theirs = (getattr(lib.utils.data, name) for lib in (tracejit, torch))
        assert arguments(mine) == arguments(theirs), name
