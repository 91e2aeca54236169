"""The training step of the same model in PyTorch: torch_step.py BENCH.json OUT.json

BENCH.json is what `ropewalk bench --output=` wrote: the model's sizes, the threads and our step's time. Times PyTorch's
step eagerly and, where it works, under torch.compile, prints both beside ours, and writes them to OUT.json. The model:
RMSNorm, causal attention by scaled_dot_product_attention, SwiGLU, no biases, an untied head, rope or nope; cross entropy
on all positions, clipping, AdamW. Random tokens."""

import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

SECONDS = 3  # of each way
LEAST = 3
WARM_UP = 3


class Block(nn.Module):
    def __init__(self, m):
        super().__init__()
        C, hidden = m["width"], m["hidden"]
        self.heads = m["heads"]
        self.input_norm = nn.RMSNorm(C, m["rms_eps"])
        self.qkv = nn.Linear(C, 3 * C, bias=False)
        self.o = nn.Linear(C, C, bias=False)
        self.post_norm = nn.RMSNorm(C, m["rms_eps"])
        self.gate_up = nn.Linear(C, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, C, bias=False)

    def forward(self, x, angles):
        B, T, C = x.shape
        q, k, v = self.qkv(self.input_norm(x)).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        if angles is not None:
            q, k = rotate(q, angles), rotate(k, angles)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(B, T, C))
        gate, up = self.gate_up(self.post_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def rotate(x, angles):
    cosine, sine = angles
    a, b = x.chunk(2, -1)
    return torch.cat((a * cosine - b * sine, a * sine + b * cosine), -1)


class Model(nn.Module):
    def __init__(self, m):
        super().__init__()
        C, T, half = m["width"], m["train_length"], m["head_dim"] // 2
        self.embedding = nn.Embedding(m["vocabulary"], C)
        self.blocks = nn.ModuleList(Block(m) for _ in range(m["layers"]))
        self.norm = nn.RMSNorm(C, m["rms_eps"])
        self.head = nn.Linear(C, m["vocabulary"], bias=False)
        self.rope = m["encoding"].startswith("rope")
        angles = torch.arange(T)[:, None] * 500.0 ** (-torch.arange(half) / half)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, token):
        x = self.embedding(token)
        for block in self.blocks:
            x = block(x, (self.cosine, self.sine) if self.rope else None)
        return self.head(self.norm(x))


def measure(m, compiled):
    """Milliseconds of each step."""
    torch.manual_seed(1)
    model = Model(m)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.1, fused=True)
    call = torch.compile(model) if compiled else model
    token = torch.randint(m["vocabulary"], (m["batch"], m["train_length"] + 1))

    def step():
        optimiser.zero_grad(set_to_none=True)
        logits = call(token[:, :-1])
        F.cross_entropy(logits.reshape(-1, m["vocabulary"]), token[:, 1:].reshape(-1)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    for _ in range(WARM_UP):
        step()
    times, begin = [], time.perf_counter()
    while len(times) < LEAST or time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def summary(times, bench):
    best, median = min(times), statistics.median(times)
    return {"best_ms": best, "median_ms": median, "repetitions": len(times),
            "over_ours_best": best / bench["step"]["best_ms"], "over_ours_median": median / bench["step"]["median_ms"]}


def main():
    with open(sys.argv[1]) as f:
        bench = json.load(f)
    m = bench["model"]
    if m["tied"] or not m["hidden"] or m["encoding"].partition("(")[0] not in ("rope", "nope"):
        sys.exit("torch_step.py: only untied models with a SwiGLU and the encoding rope or nope")
    torch.set_num_threads(bench["version"]["threads"])
    found = {"version": torch.__version__, "threads": torch.get_num_threads(), "eager": None, "compiled": None}
    for name, compiled in ("eager", False), ("compiled", True):
        try:
            found[name] = summary(measure(m, compiled), bench)
        except Exception as e:  # torch.compile needs a C++ compiler, and more
            if not compiled:
                raise
            print(f"PyTorch {torch.__version__} {name}: {type(e).__name__}", file=sys.stderr)
            continue
        s = found[name]
        print(f"PyTorch {torch.__version__} {name}: a step in {s['best_ms']:.2f} ms at best, {s['median_ms']:.2f} median; "
              f"over ours {s['over_ours_best']:.2f}, {s['over_ours_median']:.2f}")
    with open(sys.argv[2], "w") as f:
        json.dump(found, f, indent=2)
        f.write("\n")


main()
