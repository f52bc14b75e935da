import torch
from diffusers import DDIMScheduler, UNet2DModel
from given import array, filled


def functions():
    unet = filled(
        UNet2DModel(
            sample_size=8,
            in_channels=1,
            out_channels=1,
            layers_per_block=1,
            block_out_channels=(8, 16),
            norm_num_groups=4,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        )
    ).eval()
    scheduler = DDIMScheduler(num_train_timesteps=20)
    scheduler.set_timesteps(4)

    def denoised(x):
        with torch.no_grad():
            for t in scheduler.timesteps:
                x = scheduler.step(unet(x, t).sample, t, x).prev_sample
        return x

    def trained(x, noise):
        unet.zero_grad()
        t = torch.tensor([3, 7])
        loss = (unet(scheduler.add_noise(x, noise, t), t).sample - noise).pow(2).mean()
        loss.backward()
        return loss.detach(), unet.conv_in.weight.grad

    x, noise = array(2, 1, 8, 8), array(2, 1, 8, 8, seed=1)
    return [("sampling", denoised, [x]), ("training loss", trained, [x, noise])]
