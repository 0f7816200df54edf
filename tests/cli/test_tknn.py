# SPDX-License-Identifier: Apache-2.0
"""fds value --method tknn: exact against a naive count, private values and what they need."""
import csv
import random
from math import sqrt

from harness import *  # noqa: F403

FOLDER = ["value", "set", "--players", "all"]


def write_set(samples=60, tests=12, text=False):
    """A table with a test part of its own: two features, three classes."""
    chance = random.Random(8)
    pathlib.Path("set").mkdir(exist_ok=True)
    for name, count in (("train", samples), ("test", tests)):
        lines = ["x1,x2,label" + (",colour" if text else "")]
        for i in range(count):
            label = chance.randrange(3)
            lines.append(f"{label + chance.gauss(0, 0.6):.4f},{chance.gauss(0, 1):.4f},{'abc'[label]}" +
                         (f",{chance.choice(['red', 'blue'])}" if text else ""))
        pathlib.Path(f"set/{name}.csv").write_text("\n".join(lines) + "\n")


def read_set(name):
    with open(f"set/{name}.csv") as file:
        return [((float(row["x1"]), float(row["x2"])), row["label"]) for row in csv.DictReader(file)]


def values(*args):
    fds(*FOLDER, *args, "-q", "-o", "v.csv")
    with open("v.csv") as file:
        return {int(row["player"].split()[-1]): float(row["value"]) for row in csv.DictReader(file)}


def scaled(points, by):
    """Normalised by the means and standard deviations of other points."""
    columns = list(zip(*by))
    means = [sum(c) / len(c) for c in columns]
    stds = [sqrt(sum((v - m) ** 2 for v in c) / len(c)) for c, m in zip(columns, means)]
    return [[(v - m) / s for v, m, s in zip(p, means, stds)] for p in points]


@test
def values_are_those_of_the_formula():
    write_set()
    train, tests = read_set("train"), read_set("test")
    by = [x for x, _ in train]
    found, wanted = values("--method", "tknn:0.9"), [0.0] * len(train)
    for x, (_, label) in zip(scaled([x for x, _ in tests], by), tests):
        near = [i for i, p in enumerate(scaled(by, by)) if sqrt(sum((a - b) ** 2 for a, b in zip(x, p))) <= 0.9]
        c, a = len(near), sum(train[i][1] == label for i in near)
        for i in near:
            m = train[i][1] == label
            wanted[i] += ((m - 1 / 3) / c + (c > 1 and (m - (a - m) / (c - 1)) / c * sum(1 / k for k in range(2, c + 1)))) / 12
    assert all(abs(found[i] - wanted[i]) < 1e-9 for i in range(60)), (found, wanted)


@test
def private_values_are_noisy_and_say_what_they_cost():
    write_set()
    process = start(*FOLDER, "--method", "tknn:0.9", "--private", "-q", "--json", stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    if b"GMP" in err:
        raise Skip("built without GMP")
    report = json.loads(out)
    privacy = report["privacy"]
    assert privacy["epsilon"] == 1 and privacy["delta"] == 1e-6 and privacy["queries"] == 12
    assert 0.99 < privacy["epsilon_spent"] <= 1 and abs(privacy["sigma"] ** 2 - 12 / (2 * privacy["rho"])) < 1e-6 * privacy["sigma"] ** 2
    # nothing else of the players' samples is in the report
    assert "parameters" not in report["game"] and report["correctly_classified"] is None
    assert report["ranking"][0]["standard_error"] is None
    first, second = (values("--method", "tknn:0.9", "--private") for _ in range(2))
    assert first != second
    # little noise: nearly the exact values
    exact, loud = values("--method", "tknn:50"), values("--method", "tknn:50", "--private", "--private-epsilon", 100)
    mean = sum(exact.values()) / 60
    spread = sum((v - mean) ** 2 for v in exact.values())
    assert sum((loud[i] - exact[i]) ** 2 for i in exact) < 0.05 * spread
    text, _ = fds(*FOLDER, "--method", "tknn:0.9", "--private", "-q")
    assert "(1, 1e-06)-differentially private" in text and "correctly" not in text
    check_width(text)


@test
def what_private_values_need_is_checked():
    write_set()
    call = [*FOLDER, "--method", "tknn:0.9"]
    refused([*call, "--private-epsilon", 2], 2, "--private-epsilon needs --private")
    refused([*call, "--private", "--per-sample"], 2, "--target true")
    refused(["value", "set", "--method", "tknn:0.9", "--private"], 2, "--players all")
    refused(["value", "set/train.csv", "--players", "all", "--method", "tknn:0.9", "--private", "-q"], 2, "no test part")
    refused([*FOLDER, "--method", "knn:3", "--private"], 2, "--private does not apply")
    refused([*FOLDER, "--private"], 2, "--private does not apply to method ls; it applies to tknn: its values",
            "models trained on all samples")
    refused([*call, "--private", "--private-epsilon", 1e-8], 2, "too small for 12 test samples")
    refused([*FOLDER, "--method", "tknn:x"], 2, "tknn:T needs a distance above 0")
    refused([*FOLDER, "--utility", "tknn:-1"], 2, "tknn:-1")
    write_set(text=True)
    refused([*call, "--private"], 2, "columns of text")


main()
