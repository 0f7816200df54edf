#!/usr/bin/python3
"""Speed and accuracy of the tangent kernel against PyTorch, both on one thread, in one run.

Usage: bench/tangent.py BUILD_FOLDER [DATA] [--rounds 5] [--a 100] [--b 1000]

The kernel of A training digits with B test digits by LeNet-5 as it is initialised. Each round
measures ours and PyTorch, one after the other; a ratio is taken within its round, and the median
over the rounds is printed, as key=value lines. Times are the processor's, so that a busy machine
does not count, the best of several repetitions.

PyTorch computes it in three ways:
  hooks  what each layer reads and, by one backward for each output, the gradient by what it
         writes; convolutions by unfolding and batched products, fully connected layers without
         ever forming gradients; the fastest of several batch sizes
  vmap   the same, all outputs in one backward (is_grads_batched)
  loop   a backward for each sample and output: the textbook's way, on the first samples only
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from lane import ENV, NETWORKS, say  # noqa: E402  (sets OpenBLAS up before PyTorch loads it)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

nn = torch.nn


def best_time(work, seconds):
    best, spent = float("inf"), 0.0
    while spent <= seconds:
        start = time.process_time()
        work()
        took = time.process_time() - start
        best, spent = min(best, took), spent + took
    return best


def load(folder, name, shape):
    return torch.from_numpy(np.fromfile(f"{folder}/{name}.f32", np.float32).reshape(shape))


def set_weights(model, weights):
    at = 0
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(weights[at:at + p.numel()].reshape(p.shape))
            at += p.numel()
    assert at == len(weights)


def gradients(model, x, batched):
    """For each layer with weights: what it reads, gradients by what it writes (n, outputs, ...)."""
    reads, writes = [], []
    for layer in model:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            reads.append(x.detach())
            x = layer(x)
            writes.append(x)
        else:
            x = layer(x)
    classes = x.shape[1]
    if batched:
        ones = torch.eye(classes)[:, None, :].expand(-1, len(x), -1)
        found = torch.autograd.grad(x, writes, ones, is_grads_batched=True)
        deltas = [d.transpose(0, 1) for d in found]
    else:
        each = [torch.autograd.grad(x[:, c].sum(), writes, retain_graph=c + 1 < classes)
                for c in range(classes)]
        deltas = [torch.stack(layer, 1) for layer in zip(*each)]
    return list(zip(reads, deltas))


def features(model, x, batched):
    """For each layer (left, right or None), as rows."""
    layers = [m for m in model if isinstance(m, (nn.Conv2d, nn.Linear))]
    out = []
    for layer, (read, delta) in zip(layers, gradients(model, x, batched)):
        n, classes = delta.shape[:2]
        if isinstance(layer, nn.Linear):
            out.append((delta.reshape(n, -1), read))
            continue
        columns = F.unfold(read, layer.kernel_size, padding=layer.padding)
        delta = delta.reshape(n, -1, columns.shape[2])
        filters = torch.bmm(delta, columns.transpose(1, 2)).reshape(n, -1)
        out.append((torch.cat([filters, delta.sum(2)], 1), None))
    return out


def by_layers(model, a, b, batch, batched=False):
    def kernel(fa, fb):
        total = 0
        for (left_a, right_a), (left_b, right_b) in zip(fa, fb):
            product = left_a @ left_b.T
            total = total + (product if right_a is None else product * (right_a @ right_b.T + 1))
        return total / 10
    parts = [features(model, x, batched) for x in a.split(batch)]
    fa = [(torch.cat([p[i][0] for p in parts]),
           None if parts[0][i][1] is None else torch.cat([p[i][1] for p in parts]))
          for i in range(len(parts[0]))]
    return torch.cat([kernel(fa, features(model, x, batched)) for x in b.split(batch)], 1)


def by_loop(model, a, b):
    def rows(x):
        out = []
        for sample in x:
            y = model(sample[None])[0]
            out.append(torch.cat([g.reshape(-1) for c in range(10) for g in torch.autograd.grad(
                y[c], list(model.parameters()), retain_graph=c < 9)]))
        return torch.stack(out)
    return rows(a) @ rows(b).T / 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("data", nargs="?", default=os.path.join(HERE, "../tests/data/mnist"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--a", type=int, default=100)
    parser.add_argument("--b", type=int, default=1000)
    args = parser.parse_args()
    program = os.path.join(args.build, "bench/bench-tangent")
    rows = {}

    def note(key, value):
        rows.setdefault(key, []).append(value)

    def ours(folder):
        out = subprocess.run([program, args.data, "lenet5", str(args.a), str(args.b), "1", folder],
                             env=ENV, check=True, text=True, stdout=subprocess.PIPE).stdout
        return float(dict(line.split("=") for line in out.split())["seconds"])

    with tempfile.TemporaryDirectory() as folder:
        model = NETWORKS["lenet5"]()
        for number in range(args.rounds):
            seconds = ours(folder)
            if number == 0:
                set_weights(model, load(folder, "weights", (-1,)))
                a, b = (load(folder, name, (-1, 1, 28, 28)) for name in "ab")
            batches = {n: best_time(lambda: by_layers(model, a, b, n), 0)
                       for n in (25, 50, 100, 250)}
            batch = min(batches, key=batches.get)
            hooks = best_time(lambda: by_layers(model, a, b, batch), 3.0)
            vmap = best_time(lambda: by_layers(model, a, b, batch, True), 0)
            few = 20
            loop = best_time(lambda: by_loop(model, a[:few], b[:few]), 0)
            loop *= (args.a + args.b) / (2 * few)
            theirs = min(hooks, vmap, min(batches.values()))
            note("tangent.s", seconds)
            note("tangent.torch_hooks_s", hooks)
            note("tangent.torch_vmap_s", vmap)
            note("tangent.torch_loop_s", loop)
            note("tangent.ratio_vs_torch", theirs / seconds)
            print(f"# round {number + 1} of {args.rounds} done", file=sys.stderr, flush=True)
        kernel = load(folder, "kernel", (args.a, args.b))
        exact = by_layers(model.double(), a.double(), b.double(), 50)
        theirs = by_layers(model.float(), a, b, 50)
    say("torch", torch.__version__)
    say("rounds", args.rounds)
    for key, values in rows.items():
        say(key, statistics.median(values), 4)
    for name, found in (("ours", kernel), ("torch", theirs)):
        off = (found.double() - exact).abs()
        print(f"tangent.{name}_off_greatest={float(off.max() / exact.abs().max()):.2e}")
        print(f"tangent.{name}_off_relative={float((off / exact.abs()).max()):.2e}")


if __name__ == "__main__":
    main()
