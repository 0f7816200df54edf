#!/usr/bin/python3
"""Speed of the lane engine against PyTorch, both on one thread, in one run.

Usage: bench/lane.py BUILD_FOLDER [DATA] [--rounds 5]

Each round measures the machine's sgemm peak, ours and PyTorch, one after the other; a ratio is taken
within its round, and the median over the rounds is printed, as key=value lines. PyTorch runs with
denormals flushed, OpenBLAS set to the processor's kernels, its data already in tensors, and for
evaluation the fastest of several batch sizes. For the wide network, training too has the fastest of
several batch sizes, with channels first and last; ours has batches of 16. Times are processor
seconds of one thread, the least of all repetitions.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ENV = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def best_coretype():
    """OpenBLAS takes an unknown processor for a very old one; tell it which kernels fit."""
    flags = open("/proc/cpuinfo").read() if os.path.exists("/proc/cpuinfo") else ""
    return "SkylakeX" if " avx512f" in flags else "Haswell" if " avx2" in flags else None


coretype = best_coretype()
if coretype and "OPENBLAS_CORETYPE" not in os.environ:
    # must be in place before PyTorch loads OpenBLAS
    os.environ["OPENBLAS_CORETYPE"] = ENV["OPENBLAS_CORETYPE"] = coretype

import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
torch.set_flush_denormal(True)
nn = torch.nn

NETWORKS = {
    "lenet5": lambda: nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
        nn.ReLU(), nn.Linear(84, 10)),
    "cnn": lambda: nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(32 * 49, 10)),
}
WIDE = ("conv:32x3p1,relu,conv:32x3p1,relu,maxpool,conv:64x3p1,relu,conv:64x3p1,relu,maxpool,"
        "fc:256,relu,fc:10")


def make_wide():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(4096, 256), nn.ReLU(), nn.Linear(256, 10))


def run(program, *arguments):
    """A program's key=value lines."""
    out = subprocess.run([program, *map(str, arguments)], env=ENV, check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return dict(line.split("=", 1) for line in out.split())


def best_time(work, seconds):
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.thread_time()
        work()
        best = min(best, time.thread_time() - start)
    return best


def torch_train(make, x, y):
    def work():
        model = make()
        optimizer, loss = torch.optim.Adam(model.parameters(), lr=1e-3), nn.CrossEntropyLoss()
        for _ in range(10):
            order = torch.randperm(len(x))
            for first in range(0, len(x), 16):
                batch = order[first:first + 16]
                optimizer.zero_grad(set_to_none=True)
                loss(model(x[batch]), y[batch]).backward()
                optimizer.step()
    return best_time(work, 2.0)


def torch_eval(make, x):
    model = make()

    def work(batch):
        with torch.no_grad():
            for first in range(0, len(x), batch):
                torch.softmax(model(x[first:first + batch]), 1)
    return min(best_time(lambda: work(batch), 0.5) for batch in (16, 64, 250, 1000)) / len(x)


def torch_wide(batch, layout):
    """Seconds per sample of training and of evaluation."""
    model = make_wide().to(memory_format=layout)
    x = torch.randn(batch, 3, 32, 32).contiguous(memory_format=layout)
    y = torch.arange(batch) % 10
    optimizer, loss = torch.optim.Adam(model.parameters(), lr=1e-3), nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        optimizer.step()

    def evaluate():
        with torch.no_grad():
            torch.softmax(model(x), 1)
    return best_time(step, 1.0) / batch, best_time(evaluate, 0.5) / batch


def wide(lane, top, note):
    """The wide network: PyTorch at the best of batch sizes and layouts, each for itself."""
    theirs = [torch_wide(batch, layout) for batch in (16, 32, 64, 128)
              for layout in (torch.contiguous_format, torch.channels_last)]
    for what, number, batch in (("train", 0, 16), ("train", 0, 64), ("eval", 1, 0)):
        arguments = (128, 1, batch, 1) if batch else (128,)
        ours = run(lane, "3x32x32", what, WIDE, *arguments)
        samples = 128 if batch else 1
        seconds, flops = float(ours["seconds"]) / samples, float(ours["flops"]) / samples
        name = f"wide.{what}" + (".batch64" if batch == 64 else "")
        best = min(times[number] for times in theirs)
        note(f"{name}.us_per_image", 1e6 * seconds)
        note(f"{name}.torch_us_per_image", 1e6 * best)
        note(f"{name}.ratio_vs_torch", best / seconds)
        note(f"{name}.peak_share", 1e-9 * flops / seconds / top)


def say(key, value, digits=3):
    print(f"{key}={value:.{digits}f}" if isinstance(value, float) else f"{key}={value}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("data", nargs="?", default=os.path.join(HERE, "../tests/data/mnist"))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    build, data, rounds = arguments.build, arguments.data, arguments.rounds
    lane, peak = os.path.join(build, "bench/bench-lane"), os.path.join(build, "bench/bench-peak")
    if not os.path.exists(peak):
        sys.exit("bench/lane.py: bench-peak was not built: libopenblas-dev or libdnnl-dev is missing")

    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(1000, 1, 28, 28)).astype(np.float32))
    y = torch.arange(1000) % 10
    rows = {}

    def note(key, value):
        rows.setdefault(key, []).append(value)

    for number in range(rounds):
        both = run(peak)
        top = max(float(both["openblas_gflops"]), float(both["onednn_gflops"]))
        note("sgemm.peak_gflops", top)
        for name, make in NETWORKS.items():
            ours = run(lane, data, "train", name, 100, 10, 16, 1)
            theirs = torch_train(make, x[:100], y[:100])
            seconds, flops = float(ours["seconds"]), float(ours["flops"])
            note(f"{name}.train.ms", 1e3 * seconds)
            note(f"{name}.train.torch_ms", 1e3 * theirs)
            note(f"{name}.train.ratio_vs_torch", theirs / seconds)
            note(f"{name}.train.gflops", 1e-9 * flops / seconds)
            note(f"{name}.train.peak_share", 1e-9 * flops / seconds / top)
            ours = run(lane, data, "eval", name, 1000)
            theirs = torch_eval(make, x)
            seconds, flops = float(ours["seconds"]), float(ours["flops"])
            note(f"{name}.eval.us", 1e6 * seconds)
            note(f"{name}.eval.torch_us", 1e6 * theirs)
            note(f"{name}.eval.ratio_vs_torch", theirs / seconds)
            note(f"{name}.eval.peak_share", 1e-9 * flops / seconds / top)
        wide(lane, top, note)
        one = float(run(lane, data, "train", "lenet5", 100, 10, 16, 1)["models_per_s"])
        two = float(run(lane, data, "train", "lenet5", 100, 10, 16, 2)["models_per_s"])
        note("threads2.models_per_s", two)
        note("threads2.speedup", two / one)
        for isa in ("avx2", "generic"):
            ENV["FDS_ISA"] = isa
            if isa != "generic" or number == 0:
                seconds = float(run(lane, data, "train", "lenet5", 100, 10, 16, 1)["seconds"])
                note(f"lenet5.train.{isa}_ms", 1e3 * seconds)
            del ENV["FDS_ISA"]
        print(f"# round {number + 1} of {rounds} done", file=sys.stderr, flush=True)

    say("isa", run(lane, data, "eval", "logistic", 16)["isa"])
    say("torch", torch.__version__)
    say("rounds", rounds)
    for key, values in rows.items():
        say(key, statistics.median(values))

    # growth: seconds a sample and epoch must stay level
    for samples in (50, 100, 200, 400):
        seconds = float(run(lane, data, "train", "lenet5", samples, 10, 16, 1)["seconds"])
        say(f"growth.samples{samples}.us_per_sample_epoch", 1e6 * seconds / samples / 10)
    for epochs in (5, 10, 20, 40):
        seconds = float(run(lane, data, "train", "lenet5", 100, epochs, 16, 1)["seconds"])
        say(f"growth.epochs{epochs}.us_per_sample_epoch", 1e6 * seconds / 100 / epochs)
    for batch in (1, 4, 8, 16, 20, 32, 64):
        seconds = float(run(lane, data, "train", "lenet5", 100, 10, batch, 1)["seconds"])
        say(f"growth.batch{batch}.us_per_sample_epoch", 1e6 * seconds / 100 / 10)


if __name__ == "__main__":
    main()
