"""Datasets of local files: what they read, and what they say of files that are damaged."""

import gzip
import pickle
import re
import struct
import sys

import numpy as np
import pytest

import tracejit
from tracejit.datasets import MNIST, CSVTable, Digits, FashionMNIST, ImageFolder, read_idx
from tracejit.utils.data import DataLoader

CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}


def idx(array):
    """The bytes of an IDX file."""
    array = np.asarray(array)
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    start = bytes([0, 0, CODES[array.dtype.str[1:]], array.ndim])
    return start + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.fixture
def mnist(tmp_path):
    """A root with six images to train on, and three to test with, compressed."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for part, count, suffix in (("train", 6, ""), ("t10k", 3, ".gz")):
        images = rng.integers(0, 256, (count, 28, 28)).astype(np.uint8)
        for name, array in ((f"{part}-images-idx3-ubyte", images),
                            (f"{part}-labels-idx1-ubyte", np.arange(count, dtype=np.uint8))):
            data = idx(array)
            (folder / (name + suffix)).write_bytes(gzip.compress(data, mtime=0) if suffix else data)
    return tmp_path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", CODES)
def test_idx(kind, packed, tmp_path):
    array = (np.arange(24).reshape(2, 3, 4) - 5).astype(kind)
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(idx(array)) if packed else idx(array))
    found = read_idx(path)
    assert found.numpy().dtype == array.dtype and (found.numpy() == array).all()
    found.add_(1)  # its memory is its own


GOOD = idx(np.arange(6, dtype=np.int16).reshape(2, 3))


@pytest.mark.parametrize(("data", "message"), [
    (b"", "not an IDX file: it starts with nothing"),
    (b"\0\0", "not an IDX file"),
    (b"\x89PNG\r\n", "not an IDX file: it starts with 89 50 4e 47"),
    (b"\0\0\x07\x01" + GOOD[4:], "not an IDX file"),
    (GOOD[:7], "ends within the sizes of its 2 dimensions"),
    (GOOD[:-1], r"12 bytes of elements expected for shape \(2, 3\), the file has 11"),
    (GOOD[:12], "the file has 0"),
    (GOOD + b"\0", "the file has 13"),
    (b"\0\0\x08\x03" + b"\xff" * 12, "the file has 0"),
    (gzip.compress(GOOD, mtime=0)[:-9], "gzip cannot read it"),
    (gzip.compress(GOOD, mtime=0)[:5], "gzip cannot read it"),
    (gzip.compress(GOOD, mtime=0)[:-6] + b"abcdef", "gzip cannot read it"),
    (gzip.compress(GOOD, mtime=0)[:10] + b"\xff" * 20, "gzip cannot read it"),
    (gzip.compress(GOOD[:-1], mtime=0), "the file has 11"),
])
def test_damaged_idx(data, message, tmp_path):
    path = tmp_path / "damaged"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"damaged: .*{message}"):
        read_idx(path)


def test_mnist(mnist):
    train = MNIST(mnist, transform=lambda x: x * 2, target_transform=lambda y: -y, download=True)
    test = MNIST(mnist, train=False)
    assert (len(train), len(test)) == (6, 3) and test.data.shape == (3, 28, 28)
    image, target = test[1]
    assert image.dtype is tracejit.float32 and image.shape == (1, 28, 28) and target == 1
    assert (image[0] * 255).round().tolist() == test.data[1].tolist()
    assert train[2][1] == -2 and train[2][0].max() > 1
    assert train.class_to_idx["3 - three"] == 3
    with pytest.raises(IndexError):
        test[3]
    images, targets = next(iter(DataLoader(pickle.loads(pickle.dumps(test)), batch_size=3)))
    assert images.shape == (3, 1, 28, 28) and targets.tolist() == [0, 1, 2]
    for folder in (mnist / "MNIST", mnist / "MNIST" / "raw"):
        assert len(MNIST(folder.parent if folder.name == "MNIST" else folder)) == 6


@pytest.mark.parametrize("download", [False, True])
def test_missing_files_are_named_with_their_places(download, mnist):
    with pytest.raises(RuntimeError) as error:
        FashionMNIST(mnist, download=download)
    for text in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", ".gz",
                 str(mnist / "FashionMNIST" / "raw"), "downloads nothing" if download else "not f"):
        assert text in str(error.value)
    (mnist / "MNIST" / "raw" / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(RuntimeError, match="not found"):
        MNIST(mnist)


@pytest.mark.parametrize(("name", "array", "message"), [
    ("labels-idx1", np.zeros(5, "u1"), "5 labels for the 6 images"),
    ("labels-idx1", np.full(6, 10, "u1"), "label 10, expected 0 to 9"),
    ("labels-idx1", np.zeros((6, 28, 28), "u1"), "expected uint8 in 1 dimensions"),
    ("images-idx3", np.zeros((6, 28, 28), "f4"), "expected uint8 in 3 dimensions, got tracejit.fl"),
])
def test_files_that_do_not_belong_together(name, array, message, mnist):
    (mnist / "MNIST" / "raw" / f"train-{name}-ubyte").write_bytes(idx(array))
    with pytest.raises(ValueError, match=message):
        MNIST(mnist)


def test_transforms_are_callable(mnist):
    with pytest.raises(TypeError, match="transform must be callable, got int"):
        MNIST(mnist, transform=3)


def test_digits(monkeypatch):
    pytest.importorskip("sklearn")
    train, test = Digits(), Digits(train=False)
    assert (len(train), len(test)) == (1437, 360)
    image, target = train[0]
    assert image.shape == (1, 8, 8) and 0 <= image.min() and image.max() <= 1
    assert isinstance(target, int) and int(train.data.max()) == 16
    assert sorted(set(train.targets.tolist() + test.targets.tolist())) == list(range(10))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"pip install tracejit\[examples\]"):
        Digits()


def table(tmp_path, text, **options):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return CSVTable(path, **options)


def test_table(tmp_path):
    text = '\ufeffa, b,"kind, of",n\n1,2,x,3\n\n-1e3,.5," y",4\n'
    whole = table(tmp_path, text, target="kind, of")
    assert whole.columns == ["a", "b", "n"] and whole.classes == ["x", "y"]
    assert whole.data.tolist() == [[1, 2, 3], [-1000, 0.5, 4]]
    assert whole.targets.tolist() == [0, 1] and whole.targets.dtype is tracejit.int64
    number = table(tmp_path, text, target="n", features=["b", 0])
    assert number[1][0].tolist() == [0.5, -1000] and number[1][1].item() == 4
    assert number.targets.dtype is tracejit.int64
    assert table(tmp_path, text, target="b", features=[0]).targets.dtype is tracejit.float32
    several = table(tmp_path, text, target=["a", "n"], features=["b"], transform=lambda x: -x)
    assert several.targets.shape == (2, 2) and several[0][0].item() == -2
    bare = table(tmp_path, "1;2\n3;4\n", header=False, delimiter=";")
    assert bare[1].tolist() == [3, 4] and len(bare) == 2 and bare.columns == ["0", "1"]
    last = table(tmp_path, "1,2\n3,4\n", header=False, target=-1)
    assert last.data.tolist() == [[1], [3]] and last.targets.tolist() == [2, 4]
    (x, y), = DataLoader(last, batch_size=2)
    assert x.shape == (2, 1) and y.tolist() == [2, 4]


@pytest.mark.parametrize(("text", "options", "error", "message"), [
    ("a,b\n1,2\n3\n", {}, ValueError, "t.csv:3: 1 columns, expected 2"),
    ("a,b\n1,2\n3,x\n", {}, ValueError, "t.csv:3: column 'b' has 'x', expected a number"),
    ("a,b\n1,\n", {}, ValueError, "t.csv:2: column 'b' has '', expected a number"),
    ("", {}, ValueError, "no rows"),
    ("a,b\n", {}, ValueError, "no rows"),
    ('a\n"1\n', {}, ValueError, "t.csv:2: unexpected end of data"),
    (b"a\n\xff\n", {}, ValueError, "not a text in UTF-8"),
    ("a,b\n1,2\n", {"target": "c"}, KeyError, "no column 'c' among"),
    ("a,b\n1,2\n", {"target": 2}, KeyError, "no column 2 among"),
])
def test_damaged_tables(text, options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        table(tmp_path, text, **options)


@pytest.fixture
def pictures(tmp_path):
    """Two classes of small pictures, one in a folder deeper down, and a file that is none."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for name in ("dog/b.png", "dog/a/c.PNG", "cat/1.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(rng.integers(0, 256, (5, 4, 3)).astype(np.uint8)).save(path, "PNG")
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    return tmp_path


def test_image_folder(pictures):
    folder = ImageFolder(pictures, target_transform=lambda y: y + 10)
    assert folder.classes == ["cat", "dog"] and folder.class_to_idx == {"cat": 0, "dog": 1}
    places = [path.removeprefix(str(pictures)) for path, _ in folder.imgs]
    assert places == ["/cat/1.png", "/dog/b.png", "/dog/a/c.PNG"] and folder.targets == [0, 1, 1]
    image, target = folder[1]
    assert image.shape == (3, 5, 4) and image.dtype is tracejit.float32 and target == 11
    from PIL import Image
    assert (image * 255).round().permute(1, 2, 0).tolist() == np.array(
        Image.open(folder.samples[1][0])).tolist()
    grey = ImageFolder(pictures, loader=lambda path: tracejit.datasets.load_image(path, "L"))
    assert grey[0][0].shape == (1, 5, 4)
    assert len(ImageFolder(pictures, is_valid_file=lambda path: path.endswith("txt"),
                           allow_empty=True)) == 1
    for images, _ in DataLoader(folder, batch_size=3):
        assert images.shape == (3, 3, 5, 4)


def test_damaged_image_folders(pictures, monkeypatch):
    data = (pictures / "cat" / "1.png").read_bytes()
    for damaged in (b"", data[:50], data[:20], b"no image"):
        (pictures / "cat" / "1.png").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"1\.png: Pillow cannot read it"):
            ImageFolder(pictures)[0]
    (pictures / "bird").mkdir()
    with pytest.raises(FileNotFoundError, match=re.escape("for the classes bird.")):
        ImageFolder(pictures)
    with pytest.raises(FileNotFoundError, match="Couldn't find any class folder"):
        ImageFolder(pictures / "bird")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install tracejit\[images\]"):
        ImageFolder(pictures, allow_empty=True)[0]
