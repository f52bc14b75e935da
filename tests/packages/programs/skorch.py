import numpy as np
import torch
from given import filled
from skorch import NeuralNetClassifier


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
        )
        filled(self)

    def forward(self, x):
        return self.layers(x).softmax(-1)


def functions():
    values = np.random.RandomState(0)
    x, y = values.randn(24, 4).astype("float32"), values.randint(0, 3, 24).astype("int64")

    def fitted():
        net = NeuralNetClassifier(
            Net, max_epochs=2, lr=0.1, iterator_train__shuffle=False, train_split=None, verbose=0
        )
        net.fit(x, y)
        return [float(v) for v in net.history[:, "train_loss"]], torch.from_numpy(
            net.predict_proba(x)
        )

    return [("fit and predict", fitted, [])]
