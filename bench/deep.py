#!/usr/bin/python3
"""Speed of the deep engine against PyTorch, both on two threads, in one run.

Usage: bench/deep.py BUILD_FOLDER [--rounds 5] [--steps 5]

Training: batches of 64 images of 3 x 32 x 32, forward, backward and Adam. PyTorch is taken at its
best: plain or channels-last, and for bf16 autocast. Answers: one image at a time, 1,000 images,
against the frozen and optimised TorchScript module. Each round measures the machine's sgemm peak,
ours and PyTorch, one after the other; a ratio is taken within its round, and the median over the
rounds is printed, as key=value lines.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

ENV = dict(os.environ, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1")
os.environ.update(OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1")

import torch  # noqa: E402
import torchvision  # noqa: E402

torch.set_num_threads(2)
torch.set_flush_denormal(True)
BATCH, SIDE, IMAGES = 64, 32, 1000


def run(program, *arguments, **environment):
    """A program's key=value lines."""
    out = subprocess.run([program, *map(str, arguments)], env=dict(ENV, **environment), check=True,
                         text=True, stdout=subprocess.PIPE).stdout
    return dict(line.split("=", 1) for line in out.split())


def torch_train(network, precision, channels_last, steps):
    """Median seconds of a step."""
    model = getattr(torchvision.models, network)(num_classes=10)
    x = torch.randn(BATCH, 3, SIDE, SIDE)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    y = torch.nn.functional.one_hot(torch.arange(BATCH) % 10, 10).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    times = []
    for _ in range(steps + 2):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            out = model(x)
        (0.5 * (out.float() - y).square().sum() / BATCH).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


def torch_answer(network):
    """Median and 99th percentile of the seconds for one image."""
    model = getattr(torchvision.models, network)(num_classes=10).eval()
    model = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(model)))
    x = torch.randn(64, 3, SIDE, SIDE)
    times = []
    with torch.no_grad():
        for i in range(IMAGES + 20):
            start = time.perf_counter()
            model(x[i % 64:i % 64 + 1])
            times.append(time.perf_counter() - start)
    times = sorted(times[20:])
    return times[len(times) // 2], times[int(0.99 * len(times))]


def say(key, value, digits=3):
    print(f"{key}={value:.{digits}f}" if isinstance(value, float) else f"{key}={value}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5, help="of training, a measurement")
    parser.add_argument("--no-bf16", action="store_true", help="leave bf16 out")
    arguments = parser.parse_args()
    deep = os.path.join(arguments.build, "bench/bench-deep")
    peak = os.path.join(arguments.build, "bench/bench-peak")
    if not os.path.exists(peak):
        sys.exit("bench/deep.py: bench-peak was not built: libopenblas-dev or libdnnl-dev is "
                 "missing")
    flags = open("/proc/cpuinfo").read() if os.path.exists("/proc/cpuinfo") else ""
    has_bf16 = "avx512_bf16" in flags
    rows, isa = {}, ""

    def note(key, value):
        rows.setdefault(key, []).append(value)

    def train(network, precision, top):
        nonlocal isa
        steps = arguments.steps if precision == "f32" or has_bf16 else 2
        ours = run(deep, "train", network, precision, 3, SIDE, BATCH, 2, 4 * steps)
        theirs = {form: torch_train(network, precision, form == "channels_last", steps)
                  for form in ("plain", "channels_last")}
        seconds, key = float(ours["seconds"]), f"{network}.train.{precision}"
        isa = ours["isa"]
        note(f"{key}.images_per_s", BATCH / seconds)
        for form, value in theirs.items():
            note(f"{key}.torch_{form}_images_per_s", BATCH / value)
        if precision == "f32":
            for part in ("forward", "backward", "adam"):
                note(f"{key}.{part}_ms", 1e3 * float(ours[f"{part}_s"]))
            note(f"{key}.peak_share", 1e-9 * float(ours["flops"]) / seconds / top)
            note(f"{network}.adam.share", float(ours["adam_s"]) / seconds)
        return seconds, min(theirs.values())

    for number in range(arguments.rounds):
        both = run(peak, OPENBLAS_NUM_THREADS="2")
        top = max(float(both["openblas_gflops"]), float(both["onednn_gflops"]))
        note("sgemm.peak_gflops", top)
        for network in ("resnet50", "resnet18"):
            results = {precision: train(network, precision, top)
                       for precision in (["f32"] if arguments.no_bf16 else ["f32", "bf16"])}
            best = min(theirs for _, theirs in results.values())  # of both precisions and layouts
            for precision, (seconds, _) in results.items():
                note(f"{network}.train.{precision}.ratio_vs_torch", best / seconds)
        ours = run(deep, "infer", "resnet50", "f32", 3, SIDE, 2, IMAGES)
        p50, p99 = torch_answer("resnet50")
        note("resnet50.infer.p50_ms", 1e3 * float(ours["p50_s"]))
        note("resnet50.infer.p99_ms", 1e3 * float(ours["p99_s"]))
        note("resnet50.infer.torch_p50_ms", 1e3 * p50)
        note("resnet50.infer.torch_p99_ms", 1e3 * p99)
        note("resnet50.infer.ratio_vs_torch", p50 / float(ours["p50_s"]))
        ours = run(deep, "infer", "cnn", "f32", 1, 28, 2, IMAGES)
        note("cnn.infer.p50_ms", 1e3 * float(ours["p50_s"]))
        note("cnn.infer.p99_ms", 1e3 * float(ours["p99_s"]))
        ours = run(deep, "train", "cnn", "f32", 1, 28, BATCH, 2, 20)
        note("cnn.train.f32.images_per_s", BATCH / float(ours["seconds"]))
        note("cnn.train.f32.peak_share", 1e-9 * float(ours["flops"]) / float(ours["seconds"]) / top)
        print(f"# round {number + 1} of {arguments.rounds} done", file=sys.stderr, flush=True)

    say("isa", isa)
    say("cpu_bf16", "yes" if has_bf16 else "no (bf16 is computed by f32 instructions)")
    say("torch", torch.__version__)
    say("rounds", arguments.rounds)
    for key, values in rows.items():
        say(key, statistics.median(values))


if __name__ == "__main__":
    main()
