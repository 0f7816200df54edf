# SPDX-License-Identifier: Apache-2.0
"""Regression: a column of numbers to predict, from the table to values and files."""
import csv
import math
import random

from harness import *  # noqa: F403


def write_houses(path, rows=90, providers=6, separator=","):
    """A price of two features, with noise; the prices of one agent are wrong."""
    chance = random.Random(3)
    lines = ["area,age,agent,price"]
    for i in range(rows):
        area, age, agent = chance.uniform(40, 200), chance.uniform(0, 50), i % providers
        price = 1000 * area - 500 * age + chance.gauss(0, 3000) + (60000 if agent == 5 else 0)
        lines.append(f"{area:.2f},{age:.1f},agent {agent},{price:.2f}")
    pathlib.Path(path).write_text("\n".join(lines).replace(",", separator) + "\n")


HOUSES = ["--task", "regression", "--label", "price", "--provider", "agent"]
BY = [*HOUSES, "--players", "providers"]


@test
def labels_that_are_numbers_point_to_regression():
    write_houses("h.csv")
    refused(["value", "h.csv", "--label", "price"], 1, "take them as numbers to predict with --task regression")
    refused(["data", "show", "h.csv", "--task", "regresion", "--label", "price"], 2, 'did you mean "regression"?')
    refused(["value", "h.csv", *HOUSES[:2], "--label", "agent"], 1, '"agent 0" is not a finite number')
    refused(["value", MNIST, "--task", "regression"], 2, "--task regression needs targets that are numbers")


@test
def data_show_has_targets_and_no_classes():
    write_houses("h.csv", separator=";")
    text = fds("data", "show", "h.csv", *HOUSES)[0]
    check_width(text)
    assert "target " in text and "mean target" in text and "class" not in text.replace("classes", ""), text
    shown = fds_json("data", "show", "h.csv", *HOUSES)["train"]
    assert "classes" not in shown and shown["targets"]["max"] > shown["targets"]["mean"] > 0
    means = [p["mean_target"] for p in shown["providers"]]
    assert len(means) == 6 and max(means) == means[5], means


@test
def values_are_of_squared_errors_and_sum_to_their_difference():
    write_houses("h.csv")
    out = fds("value", "h.csv", *BY, "--method", "exact", "-o", "v.csv")[0]
    check_width(out)
    assert "Mean value (in squared error) for the true target of 18 test samples:" in out
    assert "probab" not in out and "label" not in out and "mean squared error" in out, out
    assert out.split("\n")[1].split() == ["rank", "player", "samples", "value"], out
    about = fds_json("value", "h.csv", *BY, "--method", "exact", "-o", "v.csv")
    assert about["task"] == "regression" and about["score"] == "squared"
    total = sum(place["value"] for place in about["ranking"])
    assert math.isclose(total, about["utility_with_all"] - about["utility_with_none"], rel_tol=1e-9)
    assert math.isclose(-about["utility_with_all"], about["mean_squared_error"], rel_tol=1e-9)
    assert isinstance(about["ranking"][0]["label"], float)
    with open("v.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18 * 6 and all(float(row["label"]) > 0 and float(row["player_label"]) > 0 for row in rows)
    fds("value", "h.csv", *BY, "--method", "exact", "--table", "v.csv.table", "-o", "v.json")
    file = json.loads(pathlib.Path("v.json").read_text())
    assert file["classes"] == [] and isinstance(file["results"][0]["label"], float)


@test
def the_wrong_provider_is_last():
    write_houses("h.csv")
    for utility in ("retrain", "kernel", "knn:3"):
        about = fds_json("value", "h.csv", *BY, "--utility", utility, "--method", "exact")
        assert about["ranking"][-1]["player"] == "agent 5", (utility, about["ranking"])


@test
def scores_of_the_kernel_are_from_0_to_1():
    write_houses("h.csv")
    about = fds_json("value", "h.csv", *BY, "--score", "kernel", "--target", "predicted", "--method", "exact")
    assert about["utility_with_all"] == 1 and 0 < about["utility_with_none"] < 1, about
    assert "in kernel score) for the prediction" in fds("value", "h.csv", *BY, "--score", "kernel", "--target",
                                                        "predicted", "--method", "exact")[0]


@test
def samples_are_players_and_other_methods_work():
    write_houses("h.csv")
    about = fds_json("value", "h.csv", *HOUSES, "--players", 20, "--utility", "kernel", "--coalitions", 400)
    assert about["groups"] == {"by": "all", "count": 1} and about["ranking"][0]["standard_error"] > 0
    table = ["--utility", "kernel", "--table", "t.table"]
    exact = fds_json("value", "h.csv", *BY, *table, "--method", "exact", "--global")
    reference = {place["player"]: place["value"] for place in exact["ranking"]}
    for method in ("loo", "tmc", "beta:1,1", "ame", "random"):
        own = [] if method == "random" else table
        about = fds_json("value", "h.csv", *BY, *own, "--method", method)
        assert len(about["ranking"]) == 6 and about["baseline"]["settings"]["scorer"] == "squared", method
        if method in ("tmc", "beta:1,1"):  # of all permutations these would be the Shapley values
            for place in about["ranking"]:
                away = abs(place["value"] - reference[place["player"]])
                assert away < 6 * place["standard_error"] + 1e-3 * abs(place["value"]), (method, place)
    many = ["--coalitions", 200]
    for method in ("banzhaf", "group-testing"):
        fds("value", "h.csv", *BY, *table, "--method", method, *many)
        refused(["value", "h.csv", *BY, "--method", method, "-q"], 2, "needs --coalitions with --score squared")
        fds("value", "h.csv", *BY, *table, "--method", method, "--score", "kernel", *many)
    about = fds_json("value", "h.csv", *BY, *table, "--method", "loo", "--per-sample")
    assert about["target"] == "true"


@test
def what_needs_classes_says_so():
    write_houses("h.csv")
    for method in ("knn:3", "cs-shapley", "same-label", "gshapley", "freeshap"):
        refused(["value", "h.csv", *BY, "--method", method], 2, f"--method {method} needs classes", "regression")
    refused(["value", "h.csv", *BY, "--scorer", "accuracy", "--method", "tmc"], 2, "--scorer needs classes")
    refused(["value", "h.csv", *BY, "--target", "all"], 2, "--target all needs classes")
    refused(["value", "h.csv", *HOUSES, "--adjust", "knn:3"], 2, "--adjust knn:3 needs classes")
    refused(["value", "h.csv", *BY, "--group", "label", "-q"], 2, "--group label needs classes")
    refused(["value", "h.csv", *HOUSES, "--sampler", "gfds", "-q"], 2, "--group label needs classes")
    refused(["value", MNIST, "--score", "kernel"], 2, "--score needs --task regression")


@test
def commands_without_regression_say_what_to_use():
    write_houses("h.csv")
    for command in (["bench"], ["data", "audit"]):
        for task in (["--task", "regression"], ["--task=regression"]):
            refused([*command, "h.csv", *task, "--label", "price"], 2, "needs classes",
                    "fds value DATA --task regression")
        refused([*command, "h.csv", "--label", "price", "-q"], 1, "these are no classes", "fds value and fds fit")


@test
def a_run_explains_and_pays_for_new_rows():
    write_houses("h.csv")
    out = fds("fit", "h.csv", *BY, "--method", "afds", "-o", "h.run")[0]
    check_width(out)
    assert "R2" in out and "bank: all sub-models answer (chosen because it is a regression)" in out and "%" not in out
    lines = pathlib.Path("h.csv").read_text().split("\n")
    pathlib.Path("new.csv").write_text("\n".join([lines[0].rsplit(",", 1)[0], *(line.rsplit(",", 1)[0]
                                                                                for line in lines[8:10])]) + "\n")
    by_index = fds_json("explain", "h.run", "--index", "7,8")
    by_rows = fds_json("explain", "h.run", "--rows", "new.csv")
    assert [i["ranking"] for i in by_rows["inputs"]] == [i["ranking"] for i in by_index["inputs"]]
    assert by_rows["inputs"][0]["true"] is None and by_index["inputs"][0]["true"] == float(lines[8].split(",")[3])
    for i in by_index["inputs"]:  # for what the service model itself predicts, it is exact
        assert i["label"] == i["predicted"] and i["utility_with_all"] == 0 > i["utility_with_none"]
        assert math.isclose(sum(p["value"] for p in i["ranking"]), -i["utility_with_none"], rel_tol=1e-9)
    true = fds_json("explain", "h.run", "--index", 7, "--target", "true")["inputs"][0]
    assert math.isclose(true["utility_with_all"], -(true["predicted"] - true["true"]) ** 2, rel_tol=1e-6)
    same = fds_json("explain", "h.run", "--index", 7, "--target", true["true"])["inputs"][0]
    assert all(math.isclose(a["value"], b["value"], rel_tol=1e-9) for a, b in zip(same["ranking"], true["ranking"]))
    text = fds("explain", "h.run", "--rows", "new.csv", "--png", "bars.png", "-o", "v.csv")[0]
    check_width(text)
    assert "row 1: prediction " in text and "probab" not in text and "label" not in text, text
    money = fds("pay", "h.run", "--rows", "new.csv", "--amount", "10.00")[0]
    check_width(money)
    paid = fds_json("pay", "h.run", "--rows", "new.csv", "--amount", "10.00")
    assert len(paid["inputs"]) == 2
    assert fds("fit", "h.csv", *BY, "--method", "afds", "-o", "h.run", "-q")[0]  # it is complete
    refused(["fit", "h.csv", *BY, "--method", "afds", "--score", "kernel", "-o", "h.run", "-q"], 2, "squared", "kernel")
    refused(["explain", "h.run", "--index", 7, "--target", "cheap", "-q"], 2, "--target must be predicted, true or a number")
    refused(["explain", "h.run", "--rows", "new.csv", "--target", "true", "-q"], 2, "true targets of these inputs are not known")


@test
def other_explainers_of_regressions_are_refused_with_the_reason():
    write_houses("h.csv")
    for explainer in ("probe", "mlp", "resnet18"):
        refused(["fit", "h.csv", *BY, "--explainer", explainer, "-o", "x"], 2,
                f"--explainer {explainer} does not explain regressions", "use bank or auto")
    refused(["fit", "h.csv", *BY, "--warm-up", "-o", "x"], 2, "do not apply with --task regression")
    refused(["fit", "h.csv", *BY, "--utility", "command:true", "-o", "x"], 2, "is explained by kept sub-models")
    assert not os.path.exists("x")


@test
def a_model_is_trained_and_scored():
    write_houses("h.csv")
    arguments = ["train", "h.csv", *HOUSES, "--players", "all", "--epochs", 300, "-o", "m.safetensors"]
    assert "mean squared error" in fds(*arguments)[0]
    report = fds_json(*arguments)
    assert report["test"]["r2"] > 0.3 and report["layers"] == "fc:64,relu,fc:1", report
    head = pathlib.Path("m.safetensors").read_bytes()[:2000]
    assert b"fds.target" in head


@test
def any_number_of_threads_gives_the_same_bits():
    write_houses("h.csv")
    for threads in (1, 3):
        fds("value", "h.csv", *BY, "--coalitions", 40, "--threads", threads, "-o", f"{threads}.csv")
    assert pathlib.Path("1.csv").read_bytes() == pathlib.Path("3.csv").read_bytes()


sys.exit(main())
