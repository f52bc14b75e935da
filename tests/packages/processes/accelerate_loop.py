"""Two epochs of a loop of accelerate. In: a path for the result, and who starts the processes:
"nobody" (or a launcher outside), "notebook" or "debug"."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
from accelerate import Accelerator, debug_launcher, notebook_launcher
from given import array, filled


def train(path):
    """Train, and write what the main process knows."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    data = torch.utils.data.TensorDataset(array(32, 4), array(32, 1, seed=1))
    loader = torch.utils.data.DataLoader(data, batch_size=8 // accelerator.num_processes)
    net = filled(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    net, optimizer, loader, scheduler = accelerator.prepare(net, optimizer, loader, scheduler)
    losses = []
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(net):
                loss = torch.nn.functional.mse_loss(net(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach()[None]).mean().item())
    ranks = accelerator.gather_for_metrics([accelerator.process_index], use_gather_object=True)
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        net = accelerator.unwrap_model(net)
        Path(path).write_text(json.dumps({
            "processes": len(ranks), "losses": losses,
            "parameters": [one.tolist() for one in net.parameters()],
        }))  # fmt: skip
    accelerator.end_training()


if __name__ == "__main__":
    path, starter = sys.argv[1:]
    if starter == "notebook":
        notebook_launcher(train, (path,), num_processes=2)
    elif starter == "debug":
        debug_launcher(train, (path,), num_processes=2)
    else:
        train(path)
