#!/usr/bin/python3
"""Whether to compress the columns of a table before least squares: a table of docs/scale.md.

Usage: bench/columns.py BUILD_FOLDER [DATA] [--players N] [--coalitions M] [--test T] [--utility U ...]

Values are linear in the table's columns, the probabilities of test samples: solving only the principal components of
the columns gives the projection of all values onto these components, for the same strengths of shrinkage. So values of
all labels are solved once, and projected. Printed for each number of components: their share of the table's variance,
how far values move in standard errors, root mean square, and what the largest 1 % of each column keep of their values,
median. Seconds are processor seconds: of a command that finds all utilities in the table, and of the components of
numpy. One thread. Prints Markdown.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402

HEADER = 64  # bytes of a segment before its records


def cpu_seconds(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def read_table(folder):
    """The probabilities of all records: a row for each coalition."""
    about = json.loads((folder / "table.json").read_text())
    start = 8 + 8 * ((about["players"] + 63) // 64)  # behind the checksum and the coalition
    end, rows = start + 4 * about["inputs"] * about["classes"], []
    for path in sorted(folder.glob("*.seg")):
        records = np.frombuffer(path.read_bytes(), np.uint8)[HEADER:]
        records = records[:len(records) // about["record_size"] * about["record_size"]]
        records = records.reshape(-1, about["record_size"])
        records = records[records[:, :8].any(1)]  # others were never written
        rows.append(records[:, start:end].copy().view(np.float32))
    return np.concatenate(rows).astype(float)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--players", type=int, default=2000)
    parser.add_argument("--coalitions", type=int, default=4000)
    parser.add_argument("--test", type=int, default=300)
    parser.add_argument("--utility", nargs="+", default=["retrain:1", "knn:5"])
    a = parser.parse_args()
    print("| utility | columns | values, s | components, s | of them | of the variance, % | moved, standard errors | "
          "largest 1 % keep, % |\n" + "|" + " --- |" * 8)
    for utility in a.utility:
        with tempfile.TemporaryDirectory() as work:
            table, out = pathlib.Path(work, "table"), os.path.join(work, "values.npy")
            command = [os.path.join(a.build, "cli/fds"), "value", a.data, "--players", str(a.players), "--test",
                       str(a.test), "--coalitions", str(a.coalitions), "--target", "all", "--threads", "1", "--utility",
                       utility, "--table", str(table), "-o", out, "--quiet"]
            command += ["--model", "logistic"] if utility.startswith("retrain") else []
            cpu_seconds(command)
            solving = cpu_seconds(command)
            values, errors = np.load(out).reshape(2, -1, a.players)
            columns = read_table(table)
        start = time.process_time()
        columns -= columns.mean(0)
        variances, components = np.linalg.eigh(columns.T @ columns)
        finding = time.process_time() - start
        variances, components = variances[::-1], components[:, ::-1]
        largest = np.argsort(-values, axis=1)[:, :max(a.players // 100, 1)]
        for rank in (64, 128, 256, 512, 1024):
            kept = components[:, :rank] @ (components[:, :rank].T @ values)
            moved = np.sqrt(np.mean(((kept - values) / np.maximum(errors, 1e-12)) ** 2))
            ratio = np.median(np.take_along_axis(kept, largest, 1) / np.take_along_axis(values, largest, 1))
            print(f"| {utility} | {len(values):,} | {solving:.1f} | {finding:.1f} | {rank} | "
                  f"{100 * variances[:rank].sum() / variances.sum():.1f} | {moved:.2f} | {100 * ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main()
