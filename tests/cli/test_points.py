# SPDX-License-Identifier: Apache-2.0
"""--group-value points: providers are worth, and paid, the sum of their samples' own values."""
import csv
import shutil

from harness import *  # noqa: F403

KNN = ["--utility", "knn:3", "--method", "exact", "--test", 8, "-q"]


def table(path, *args):
    shutil.rmtree(f"{path}.table", ignore_errors=True)
    fds("value", *args, "-q", "-o", path)
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write_shops(path="shops.csv", owner=lambda i: f"shop-{i % 4}", rows=24):
    lines = ["x1,x2,label,provider"]
    lines += [f"{i % 3 + (i * 37 % 11) / 10},{(i * 53 % 17) / 8},{'abc'[i % 3]},{owner(i)}" for i in range(rows)]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


@test
def a_providers_value_is_the_sum_of_its_samples():
    write_shops()
    for options in (KNN[:2] + ["--method", "ls", "--coalitions", 400, "--adjust", "none"], ["--method", "knn:3"],
                    ["--method", "knn:3", "--per-sample"], ["--utility", "kernel", "--global", "--coalitions", 200]):
        common = ["shops.csv", "--test", 8, *options]
        single = table("single.csv", *common, "--players", "all")
        summed = table("summed.csv", *common, "--players", "providers", "--group-value", "points")
        for row in summed:
            own = [r for r in single if r["provider"] == row["player"] and r.get("test") == row.get("test")]
            assert len(own) == int(row["samples"]) and own
            assert abs(float(row["value"]) - sum(float(r["value"]) for r in own)) < 1e-12, row
            error = sum(float(r["standard_error"]) ** 2 for r in own) ** 0.5
            assert abs(float(row["standard_error"]) - error) < 1e-12, row
    out, _ = fds("value", "shops.csv", *common[1:], "--players", "providers", "--group-value", "points")
    check_width(out)
    assert "samples, whose values are added up by provider" in out, out


@test
def splitting_a_provider_changes_nothing():
    """The same samples, of which one provider's are divided among three names."""
    write_shops("one.csv", lambda i: "ann" if i % 2 else f"shop-{i % 3}")
    write_shops("many.csv", lambda i: f"ann-{i % 3}" if i % 2 else f"shop-{i % 3}")
    value = lambda path, *more: {row["player"]: float(row["value"]) for row in table(
        "v.csv", path, "--players", "providers", "--test", 8, "--global", *more)}
    points = ["--method", "knn:3", "--group-value", "points"]
    one, many = value("one.csv", *points), value("many.csv", *points)
    assert abs(one["ann"] - sum(v for name, v in many.items() if name.startswith("ann"))) < 1e-12
    assert all(abs(one[name] - many[name]) < 1e-12 for name in one if name.startswith("shop"))
    # as players, who splits gets something else
    exact = ["--utility", "knn:3", "--method", "exact"]
    one, many = value("one.csv", *exact), value("many.csv", *exact)
    assert abs(one["ann"] - sum(v for name, v in many.items() if name.startswith("ann"))) > 1e-3


@test
def regressions_are_added_up_too():
    lines = ["x1,x2,price,shop"] + [f"{i % 5},{i * 7 % 11},{i % 5 + i * 7 % 3},shop-{i % 3}" for i in range(30)]
    pathlib.Path("prices.csv").write_text("\n".join(lines) + "\n")
    common = ["prices.csv", "--task", "regression", "--label", "price", "--provider", "shop", "--test", 6, "--utility",
              "kernel", "--coalitions", 100]
    single = table("single.csv", *common, "--players", "all")
    summed = table("summed.csv", *common, "--players", "providers", "--group-value", "points")
    for row in summed:
        own = [r for r in single if r["provider"] == row["player"] and r["test"] == row["test"]]
        assert abs(float(row["value"]) - sum(float(r["value"]) for r in own)) < 1e-9, row
        mean = sum(float(r["player_label"]) for r in own) / len(own)
        assert abs(float(row["player_label"]) - mean) < 1e-6 * max(1, abs(mean)) and row["label"] == own[0]["label"]


@test
def runs_of_points_pay_providers():
    write_shops(rows=80)
    fit = ["fit", "shops.csv", "--players", "providers", "--method", "afds", "--epochs", 1, "--model", "logistic",
           "--coalitions", 100, "--inputs", 16, "--test", 8, "-q"]
    fds(*fit, "--group-value", "points", "-o", "points.run")
    pay = lambda *args: json.loads(fds("pay", "points.run", "--index", "0..3", "--amount", "100", "--json", "-q", *args)[0])
    by_points, by_provider = pay("--group-value", "points"), pay("--by", "provider")
    drop = lambda report: {key: value for key, value in report.items() if key not in ("seconds", "run", "command")}
    assert drop(by_points) == drop(by_provider), by_points
    text, _ = fds("pay", "points.run", "--index", "0..3", "--amount", "100", "--group-value", "points", "-q", "-o", "p.csv")
    with open("p.csv", newline="") as file:
        assert len({row["provider"] for row in csv.DictReader(file)} - {""}) == 4
    text, _ = fds("pay", "points.run", "--index", 0, "--amount", "100", "--group-value", "points")
    assert "shop-0" in text and "provider" in text
    fds(*fit, "-o", "players.run")
    refused(["pay", "players.run", "--index", 0, "--amount", "100", "--group-value", "points", "-q"], 2, "--group-value points",
            "samples", "fit a run with --group-value points")


@test
def what_cannot_be_had_is_refused():
    write_shops()
    refused(["value", "shops.csv", "--group-value", "points"], 2, "--group-value needs --players providers")
    refused(["fit", "shops.csv", "--group-value", "points", "-o", "x.run"], 2, "--group-value needs --players providers")
    write_csv("none.csv", column="shop")
    lines = pathlib.Path("none.csv").read_text().split("\n")
    pathlib.Path("none.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in lines if line) + "\n")
    refused(["value", "none.csv", "--players", "providers", "--group-value", "points", "-q"], 2, "names no providers")


main()
