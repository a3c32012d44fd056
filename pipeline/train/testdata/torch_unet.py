"""Times the UNet of package nn in PyTorch: the same layers, sizes and training
step (Adam, clipping, moving average). Prints one line of JSON.

    python torch_unet.py --size small --batch 8 --side 64 --device cpu --threads 2
    python torch_unet.py --size base --batch 64 --side 64 --device cuda --mode eager-tf32
    python torch_unet.py --size base --batch 64 --side 64 --device cuda --mode compiled-bf16
"""

import argparse
import json
import math
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

CHANNELS = {"tiny": 16, "small": 32, "base": 64, "large": 128}
BLOCKS = {"tiny": 1, "small": 2, "base": 2, "large": 2}
MULTIPLIERS = [1, 2, 2, 3]
SILU_GAIN = 1 / 0.596
KEEP, ADD = (v / math.hypot(0.7, 0.3) for v in (0.7, 0.3))


class Conv(nn.Module):
    def __init__(self, cin, cout, side, gain=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cout, cin, side, side) / math.sqrt(cin * side * side))
        self.gain, self.pad = gain, side // 2

    def forward(self, x):
        w = self.weight
        length = (w.square().sum(dim=(1, 2, 3), keepdim=True) + 1e-8).sqrt()
        return F.conv2d(x, (w * (self.gain / length)).to(x.dtype), padding=self.pad)


def unit(x, dim):
    y = x.float()
    return (y / (y.square().mean(dim=dim, keepdim=True) + 1e-4).sqrt()).to(x.dtype)


class Residual(nn.Module):
    def __init__(self, cin, cout, time, attention):
        super().__init__()
        self.first = Conv(cin, cout, 3, SILU_GAIN)
        self.time = nn.Linear(time, cout)
        nn.init.zeros_(self.time.weight)
        nn.init.zeros_(self.time.bias)
        self.second = Conv(cout, cout, 3, SILU_GAIN * ADD)
        self.short = Conv(cin, cout, 1, KEEP) if cin != cout else None
        self.qkv = Conv(cout, 3 * cout, 1) if attention else None
        self.merge = Conv(cout, cout, 1, ADD) if attention else None
        self.heads = max(1, cout // 32)

    def forward(self, x, emb):
        h = self.first(F.silu(x))
        h = h * (1 + self.time(emb))[:, :, None, None]
        h = self.second(F.silu(h))
        x = (self.short(x) if self.short is not None else x * KEEP) + h
        if self.qkv is None:
            return x
        n, c, height, width = x.shape
        q, k, v = (unit(p, 2).transpose(2, 3) for p in self.qkv(x).reshape(n, 3, self.heads, c // self.heads, -1).unbind(1))
        y = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(n, c, height, width)
        return x * KEEP + self.merge(y)


class UNet(nn.Module):
    def __init__(self, size, cin, cout):
        super().__init__()
        c, blocks = CHANNELS[size], BLOCKS[size]
        emb = 4 * c
        waves = 2 * math.pi * 0.25 * (64 / 0.25) ** (torch.arange(16) / 15)
        self.register_buffer("waves", waves)
        self.t1, self.t2 = nn.Linear(32, emb), nn.Linear(emb, emb)
        self.lift = Conv(cin, c, 3)
        self.lift_bias = nn.Parameter(torch.zeros(c))
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        ch, skips = c, []
        for level, m in enumerate(MULTIPLIERS):
            for _ in range(blocks):
                self.down.append(Residual(ch, m * c, emb, level == len(MULTIPLIERS) - 1))
                ch = m * c
                skips.append(ch)
        for level in reversed(range(len(MULTIPLIERS))):
            for _ in range(blocks):
                self.up.append(Residual(ch + skips.pop(), MULTIPLIERS[level] * c, emb, level == len(MULTIPLIERS) - 1))
                ch = MULTIPLIERS[level] * c
        self.last = nn.Conv2d(ch, cout, 3, padding=1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)
        self.blocks = blocks

    def forward(self, x, t):
        angle = t[:, None] * self.waves
        emb = torch.cat([angle.sin(), angle.cos()], 1) * math.sqrt(2)
        emb = F.silu(self.t2(F.silu(self.t1(emb))))
        h = self.lift(x) + self.lift_bias[None, :, None, None]
        skips = []
        for i, block in enumerate(self.down):
            if i > 0 and i % self.blocks == 0:
                h = F.avg_pool2d(h, 2)
            h = block(unit(h, 1), emb)
            skips.append(h)
        for i, block in enumerate(self.up):
            if i > 0 and i % self.blocks == 0:
                h = F.interpolate(h, scale_factor=2, mode="nearest")
            h = block(torch.cat([h, skips.pop()], 1), emb)
        return self.last(F.silu(h)).float()


def configure(a):
    """Sets threads, precision and seed as the command line wants them."""
    if a.threads:
        torch.set_num_threads(a.threads)
    tf32 = "tf32" in a.mode or "bf16" in a.mode
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--size", default="small", choices=CHANNELS)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--side", type=int, default=64)
    p.add_argument("--cin", type=int, default=5)
    p.add_argument("--cout", type=int, default=1)
    p.add_argument("--device", default="cpu")
    p.add_argument("--mode", default="eager", choices=["eager", "eager-tf32", "eager-bf16", "compiled-tf32", "compiled-bf16"])
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--forward-only", action="store_true", help="time no training steps")
    p.add_argument("--warmup", type=int, default=3)
    a = p.parse_args()
    configure(a)
    dev = torch.device(a.device)
    net = UNet(a.size, a.cin, a.cout).to(dev)
    if a.channels_last:
        net = net.to(memory_format=torch.channels_last)
    average = [w.detach().clone() for w in net.parameters()]
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.999), fused=dev.type == "cuda")
    x = torch.rand(a.batch, a.cin, a.side, a.side, device=dev)
    if a.channels_last:
        x = x.to(memory_format=torch.channels_last)
    t, y = torch.rand(a.batch, device=dev), torch.rand(a.batch, a.cout, a.side, a.side, device=dev)
    bf16 = "bf16" in a.mode
    run = torch.compile(net) if "compiled" in a.mode else net

    def forward():
        with torch.autocast(dev.type, dtype=torch.bfloat16, enabled=bf16):
            return run(x, t)

    def step():
        adam.zero_grad(set_to_none=True)
        loss = (forward() - y).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, list(net.parameters()), 0.001)
        return loss.item()

    def inference():
        with torch.inference_mode():
            return forward().sum().item()

    def timed(f):
        start = time.perf_counter()
        for _ in range(a.warmup):
            f()
        warm, times = time.perf_counter() - start, []
        for _ in range(a.steps):
            start = time.perf_counter()
            f()
            times.append(time.perf_counter() - start)
        return statistics.median(times), warm

    step_s, warm_s = (None, None) if a.forward_only else timed(step)
    forward_s, _ = timed(inference)
    print(json.dumps({
        "torch": torch.__version__, "device": a.device, "mode": a.mode, "channels_last": a.channels_last, "size": a.size,
        "params": sum(w.numel() for w in net.parameters()), "batch": a.batch, "side": a.side,
        "threads": torch.get_num_threads(), "warmup_seconds": warm_s,
        "step_seconds": step_s, "forward_seconds": forward_s,
    }))


if __name__ == "__main__":
    main()
