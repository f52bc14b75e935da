import numpy as np
import torch
from given import filled
from skorch import NeuralNet


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)
        )
        filled(self)

    def forward(self, x):
        return self.layers(x)


def functions():
    values = np.random.RandomState(0)
    x, y = values.randn(24, 4).astype("float32"), values.randint(0, 3, 24).astype("int64")
    net = NeuralNet(
        Net,
        criterion=torch.nn.CrossEntropyLoss,
        max_epochs=2,
        lr=0.1,
        iterator_train__shuffle=False,
        train_split=None,
        verbose=0,
    )
    net.fit(x, y)
    losses = [float(v) for v in net.history[:, "train_loss"]]

    predicted = torch.from_numpy(net.predict(x))

    def step(inputs, targets):
        net.optimizer_.zero_grad()
        found = net.train_step_single((inputs, targets))
        net.optimizer_.step()
        return found["loss"].detach(), found["y_pred"].detach(), losses, predicted + 0

    return [("training step", step, [torch.from_numpy(x), torch.from_numpy(y)])]
