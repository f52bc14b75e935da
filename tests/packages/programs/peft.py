import torch
from given import array, filled, trained
from peft import LoraConfig, get_peft_model


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def functions():
    model = get_peft_model(
        Net(), LoraConfig(r=2, target_modules=["first"], modules_to_save=["second"])
    )
    filled(model)
    step = trained(model, lambda m, x, y: torch.nn.functional.mse_loss(m(x), y))
    return [("LoRA step", step, [array(5, 6), array(5, 3, seed=1)])]
