"""Devices behave as PyTorch's; a missing library says what to install; threads obey limits."""

import copy
import pickle
import sys

import numpy
import pytest

from tracejit import config
from tracejit.core import memory
from tracejit.core.memory import device, threads


def test_devices_compare_by_type_and_index():
    assert device("cuda:0") == device("cuda", 0) == device(device("cuda:0"))
    assert device("cuda") != device("cuda:0") and device("cpu") != "cpu"
    assert hash(device("cuda:1")) == hash(device("cuda", 1))
    assert (device("cuda:3").type, device("cuda:3").index, device("cpu").index) == ("cuda", 3, None)
    assert repr(device("cpu")) == "device(type='cpu')"
    assert repr(device("cuda:0")) == "device(type='cuda', index=0)"
    assert (str(device("cuda:0")), str(device("cpu"))) == ("cuda:0", "cpu")


def test_devices_pickle_and_copy():
    for each in (device("cpu"), device("cuda", 2)):
        assert pickle.loads(pickle.dumps(each)) == each == copy.deepcopy(each)


@pytest.mark.oracle
@pytest.mark.parametrize("bad", ["", "no place", "c-u", "cpu1", "cuda:01", "cuda:", "cuda:x"])
def test_malformed_devices_are_refused_in_pytorch_s_words(bad):
    torch = pytest.importorskip("torch")
    said = []
    for make in (torch.device, device):
        with pytest.raises(RuntimeError) as error:
            make(bad)
        said.append(str(error.value).splitlines()[0])
    assert said[1] == said[0]


@pytest.mark.parametrize("bad", ["gpu", "cuda:", "cuda:x", "cuda:-1", "", "cpu:1"])
def test_bad_devices_are_named(bad):
    with pytest.raises(RuntimeError):
        device(bad)


def test_bad_arguments():
    with pytest.raises(RuntimeError, match="twice"):
        device("cuda:0", 1)
    with pytest.raises(TypeError, match="float"):
        device(1.5)
    with pytest.raises(AttributeError, match="read-only"):
        device("cpu").type = "cuda"


def test_as_device():
    assert memory.as_device(None) is memory.CPU
    assert memory.as_device("cuda:1") == memory.as_device(1) == device("cuda", 1)


def test_array_modules(monkeypatch):
    assert memory.array_module(memory.CPU) is numpy
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(memory.DeviceUnavailable, match=r"pip install tracejit\[cuda\]"):
        memory.array_module(device("cuda"))


def test_threads(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="0"):
        memory.set_num_threads(0)
    monkeypatch.setattr(threads, "_available", 4)
    monkeypatch.setattr(threads, "_chosen", None)  # other tests set a count and set it back
    with config.override(num_threads=0):  # whatever this process was started with
        assert memory.get_num_threads() == 4
    with config.override(num_threads=2):
        assert memory.get_num_threads() == 2
    with config.override(num_threads=9):
        assert memory.get_num_threads() == 4
    memory.set_num_threads(3)
    try:
        assert memory.get_num_threads() == 3
    finally:
        memory.set_num_threads(None)


def test_cgroup_quotas(tmp_path):
    assert threads.cgroup_quota(tmp_path) is None
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("150000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert threads.cgroup_quota(tmp_path) == 1.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert threads.cgroup_quota(tmp_path) is None
    (tmp_path / "cpu.max").write_text("200000 100000\n")
    assert threads.cgroup_quota(tmp_path) == 2.0
