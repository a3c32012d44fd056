"""Fills a basin in PyTorch as lacuna lab basin does: the same two UNets, the same
flow with recursive jumps, one window over the whole grid, everything kept on
the device. The networks have random weights and the planes random numbers,
which cost what real ones cost. Optimal interpolation and files are left out:
compare with the look and the members of lacuna lab basin. Prints one line of JSON.

    python torch_basin.py --size base --device cuda --mode eager-bf16 --tiers fast,standard,full
    python torch_basin.py --size tiny --height 24 --width 32 --tiers fast,standard --members 2
"""

import argparse
import json
import math
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "train", "testdata"))
from torch_unet import CHANNELS, UNet, configure  # noqa: E402

# Planes of the imputer (values, mask, sea, last, next and analysis in pairs)
# and those of a denoiser of residuals beside them: mean, sigma, the residual
# and its mask.
PLANES, EXTRA = 9, 4
TIERS = {"fast": (0, 0, 1), "standard": (4, 10, 1), "full": (16, 20, 3)}  # members, steps, jumps
MULTIPLE = 8  # divides height and width of a UNet


def alpha_sigma(t):
    if t <= 0:
        return 1.0, 0.0
    if t >= 1:
        return 0.0, 1.0
    return math.cos(math.pi / 2 * t), math.sin(math.pi / 2 * t)


def log_snr(t):
    alpha, sigma = alpha_sigma(t)
    return math.log(alpha / sigma) if alpha > 0 and sigma > 0 else (-math.inf if sigma > 0 else math.inf)


class Basin:
    def __init__(self, a):
        self.device, self.bf16 = torch.device(a.device), "bf16" in a.mode
        up = lambda n: (n + MULTIPLE - 1) // MULTIPLE * MULTIPLE  # noqa: E731
        self.height, self.width = up(a.height), up(a.width)
        self.batch = a.batch
        nets = [UNet(a.size, PLANES, 2), UNet(a.size, PLANES + EXTRA, 1)]
        for net in nets:
            for w in net.parameters():
                w.data.add_(0.1 * torch.randn_like(w))
            net.to(self.device).eval()
            if a.channels_last:
                net.to(memory_format=torch.channels_last)
        self.params = sum(w.numel() for w in nets[0].parameters())
        self.imputer, self.residual = (torch.compile(n) if "compiled" in a.mode else n for n in nets)
        self.image = torch.rand(1, PLANES, self.height, self.width, device=self.device)
        self.hidden = (torch.rand(1, 1, self.height, self.width, device=self.device) < 0.5).float()
        self.calls = 0

    def apply(self, net, x, t):
        self.calls += 1
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16):
            return net(x, torch.full((x.shape[0],), t, device=self.device))

    def look(self):
        said = self.apply(self.imputer, self.image, 0.0)
        return said[:, :1], torch.exp(said[:, 1:] / 2)

    def draw(self, mean, sigma, members, steps, jumps):
        """Returns members of the field, batch by batch on the host."""
        still = torch.cat([self.image, mean * self.hidden, sigma * self.hidden], 1)
        out = []
        for first in range(0, members, self.batch):
            n = min(self.batch, members - first)
            x = torch.randn(n, 1, self.height, self.width, device=self.device) * self.hidden
            scenery, known = still.expand(n, -1, -1, -1), self.hidden.expand(n, -1, -1, -1)

            def clean(x, t):
                return self.apply(self.residual, torch.cat([scenery, x * known, known], 1), t) * known

            for k in range(jumps, 0, -1):
                start = steps * k // jumps
                if k < jumps:
                    alpha, sigma_t = alpha_sigma(start / steps)
                    x = (alpha * x + sigma_t * torch.randn_like(x)) * known
                x = self.down(clean, x, start, steps)
            out.append((mean + sigma * x).cpu())
        return out

    @staticmethod
    def down(clean, x, start, steps):
        before = None
        for s in range(start, 0, -1):
            t, nxt = s / steps, (s - 1) / steps
            e = clean(x, t)
            expected = e
            if before is not None and s > 1:
                ahead = (log_snr(nxt) - log_snr(t)) / (2 * (log_snr(t) - log_snr((s + 1) / steps)))
                if ahead > 0:
                    expected = e + ahead * (e - before)
            (alpha, sigma), (alpha_next, sigma_next) = alpha_sigma(t), alpha_sigma(nxt)
            x = alpha_next * expected + sigma_next * (x - alpha * expected) / sigma
            before = e
        return x


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--size", default="small", choices=CHANNELS)
    p.add_argument("--height", type=int, default=790)
    p.add_argument("--width", type=int, default=1101)
    p.add_argument("--batch", type=int, default=1, help="members at a time")
    p.add_argument("--members", type=int, default=0, help="default: 4 for standard, 16 for full")
    p.add_argument("--tiers", default="fast,standard,full")
    p.add_argument("--device", default="cpu")
    p.add_argument("--mode", default="eager", choices=["eager", "eager-tf32", "eager-bf16", "compiled-bf16"])
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--threads", type=int, default=0)
    a = p.parse_args()
    configure(a)
    with torch.inference_mode():
        basin = Basin(a)

        def fill(members, steps, jumps):
            start, basin.calls = time.perf_counter(), 0
            mean, sigma = basin.look()
            mean.sum().item()  # waits for the device
            look = time.perf_counter() - start
            if members:
                basin.draw(mean, sigma, members, steps, jumps)
            return {"look_seconds": look, "members_seconds": time.perf_counter() - start - look, "calls": basin.calls}

        start = time.perf_counter()
        fill(0, 0, 0)
        if a.tiers != "fast":
            fill(a.batch, 2, 1)  # algorithms are chosen at the first call
        warm = time.perf_counter() - start
        rows = []
        for name in a.tiers.split(","):
            members, steps, jumps = TIERS[name]
            rows.append({"name": name, **fill(a.members or members if members else 0, steps, jumps)})
    peak = torch.cuda.max_memory_allocated() >> 20 if basin.device.type == "cuda" else 0
    print(json.dumps({
        "torch": torch.__version__, "device": a.device, "mode": a.mode, "channels_last": a.channels_last, "size": a.size,
        "weights": basin.params, "height": basin.height, "width": basin.width, "batch": a.batch, "warmup_seconds": warm,
        "peak_device_mb": peak, "rows": rows,
    }))


if __name__ == "__main__":
    main()
