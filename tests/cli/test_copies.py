# SPDX-License-Identifier: Apache-2.0
"""fds audit duplicates and labels, and --cluster: planted copies and flipped labels are found, honest data is not."""
import csv
import random
import shutil
from fractions import Fraction
from math import comb

from harness import *  # noqa: F403

SIDE, FIRST = 28, 16


def write_table(copies=0, noise=0.0, flips=0, providers=5, each=40, tests=100, seed=1):
    """Four features, two classes; p0 has some of p1's samples, and some flipped labels."""
    chance = random.Random(seed)
    draw = lambda: (lambda label: [label] + [chance.gauss(2.5 * label * (i == 0), 1) for i in range(4)])(chance.randrange(2))
    train = [draw() + [f"p{i % providers}"] for i in range(providers * each)]
    for k in range(copies):
        source = train[1 + k * providers]
        train[k * providers] = [source[0]] + [v + chance.gauss(0, noise) for v in source[1:5]] + ["p0"]
    for k in range(flips):
        train[k * providers][0] ^= 1
    pathlib.Path("set").mkdir(exist_ok=True)
    line = lambda row: ",".join([*(f"{v:.5f}" for v in row[1:5]), "ab"[row[0]]])
    pathlib.Path("set/train.csv").write_text("a,b,c,d,label,provider\n" + "".join(f"{line(r)},{r[5]}\n" for r in train))
    pathlib.Path("set/test.csv").write_text("a,b,c,d,label\n" + "".join(line(draw()) + "\n" for _ in range(tests)))


def audit(check, *args, data="set"):
    """The report; an alarm is exit code 3."""
    process = start("audit", check, data, *args, "-q", "--json", stdout=subprocess.PIPE)
    report = json.loads(process.communicate(timeout=120)[0])
    assert process.returncode == {"ok": 0, "unknown": 0, "alarm": 3}[report["verdict"]], process.returncode
    return report


def write_digits(change):
    """tests/data/mnist with owners, where the second picture of each pair is a changed copy of the first."""
    shutil.rmtree("digits", ignore_errors=True)
    shutil.copytree(MNIST, "digits")
    path = next(p for p in pathlib.Path("digits").iterdir() if p.name.startswith("train-images"))
    raw = bytearray(gzip.open(path).read())
    count = struct.unpack(">I", raw[4:8])[0]
    for i in range(0, 80, 4):
        at = lambda n: slice(FIRST + n * SIDE * SIDE, FIRST + (n + 1) * SIDE * SIDE)
        raw[at(i + 1)] = change(raw[at(i)])
    with gzip.open(path, "wb") as file:
        file.write(bytes(raw))
    pathlib.Path("owners.csv").write_text("sample,provider\n" + "".join(f"{i},q{i % 4}\n" for i in range(count)))


def moved(pixels):
    """One row down, one column to the left."""
    empty = bytes(SIDE)
    rows = [empty] + [bytes(pixels[y * SIDE:(y + 1) * SIDE]) for y in range(SIDE - 1)]
    return b"".join(row[1:] + b"\0" for row in rows)


@test
def copies_are_found_exact_and_with_noise():
    for noise, exact in ((0.0, 20), (0.02, 0)):
        write_table(copies=20, noise=noise)
        report = audit("duplicates", "-o", "clusters.csv")
        assert report["verdict"] == "alarm" and report["clusters"] == [["p0", "p1"]], report
        found = {(f["provider"], f["of"]): f for f in report["findings"]}
        assert set(found) == {("p0", "p1"), ("p1", "p0")}
        for f in found.values():
            assert f["closer"] >= 19 and f["exact"] == exact and f["samples"] == 40 and f["unowned"] == 100
            # K or more of 40 come before the first of 100, r = 1
            p = Fraction(comb(40, f["closer"]), comb(140, f["closer"]))
            assert abs(f["p"] - float(p)) < 1e-6 * float(p)
            assert all(pair["sample"] % 5 == int(f["provider"][1]) and pair["other"] % 5 == int(f["of"][1])
                       for pair in f["pairs"])
        assert pathlib.Path("clusters.csv").read_text() == "provider,cluster\np0,p0\np1,p0\n"
    out, _ = fds("audit", "duplicates", "set", "-q", code=3)
    check_width(out)
    assert "p0: " in out and "p = " in out and "for example sample" in out


@test
def honest_providers_are_not_accused():
    for seed in range(12):
        write_table(seed=100 + seed, each=20, tests=60)
        assert audit("duplicates")["verdict"] == "ok", seed
    write_table(each=20)
    pathlib.Path("set/test.csv").unlink()  # the other providers take the place of test samples
    report = audit("duplicates", data="set/train.csv")
    assert report["verdict"] == "ok" and not report["has_test_part"]
    assert audit("labels", data="set/train.csv")["verdict"] == "ok"


@test
def copies_are_found_without_a_test_part():
    write_table(copies=20)
    report = audit("duplicates", data="set/train.csv")
    assert report["clusters"] == [["p0", "p1"]], report


@test
def moved_pictures_are_found_and_shown():
    write_digits(moved)
    report = audit("duplicates", "--owners", "owners.csv", "--png", "pairs.png", data="digits")
    assert report["clusters"] == [["q0", "q1"]], report
    assert all(f["exact"] == 0 and f["closer"] >= 15 for f in report["findings"])
    assert pathlib.Path("pairs.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@test
def flipped_labels_are_found():
    write_table(flips=24, providers=4, each=300)  # 8 %
    report = audit("labels")
    verdicts = {p["provider"]: p["verdict"] for p in report["providers"]}
    assert verdicts == {"p0": "alarm", "p1": "ok", "p2": "ok", "p3": "ok"}, report
    worst = report["providers"][0]
    assert worst["statistic"] < -2 and worst["p"] < worst["p_at_most"] <= report["threshold"] == 0.01 / 4
    for p in report["providers"]:  # two standard errors, so that no alarm hangs on the seed of the shuffles
        assert abs(p["p_at_most"] - p["p"] - 2 * (p["p"] / (1 + report["shuffles"])) ** 0.5) < 1e-12
        assert (p["verdict"] == "alarm") == (p["p_at_most"] <= report["threshold"])
    flipped = sum(low["sample"] % 4 == 0 and low["sample"] // 4 < 24 for low in worst["lowest"])
    assert flipped >= 8, worst["lowest"]
    write_table(providers=4, each=300, seed=3)
    assert audit("labels")["verdict"] == "ok"
    assert audit("labels", "--utility", "knn:7")["neighbours"] == 7
    out, _ = fds("audit", "labels", "set", "-q")
    check_width(out)


@test
def clusters_are_valued_as_one():
    write_table(copies=20, each=20)
    call = ["value", "set", "--players", "providers", "--method", "exact", "--utility", "knn:3", "--global", "--test", 40, "-q"]
    pathlib.Path("clusters.csv").write_text("provider,cluster\np0,x\np1,x\n")
    read = lambda *more: {p["player"]: p for p in fds_json(*call, *more)["ranking"]}
    apart, together = read("--table", "a.table"), read("--cluster", "clusters.csv", "--table", "b.table")
    assert set(together) == {"p0 + p1", "p2", "p3", "p4"} and together["p0 + p1"]["samples"] == 40
    # renamed by hand: the same game
    text = pathlib.Path("set/train.csv").read_text()
    pathlib.Path("set/train.csv").write_text(text.replace(",p0\n", ",one\n").replace(",p1\n", ",one\n"))
    byhand = read("--table", "c.table")
    assert abs(byhand["one"]["value"] - together["p0 + p1"]["value"]) < 1e-12
    pathlib.Path("set/train.csv").write_text(text)
    # who copies gets more than its share as one
    assert apart["p0"]["value"] + apart["p1"]["value"] > together["p0 + p1"]["value"]
    fds("fit", "set", "--players", "providers", "--cluster", "clusters.csv", "--method", "afds", "--epochs", 1, "--model",
        "logistic", "--coalitions", 14, "--inputs", 16, "-q", "-o", "c.run")
    out, _ = fds("pay", "c.run", "--index", 0, "--amount", "100", "-q")
    assert "p0 + p1" in out


@test
def a_run_fitted_without_clusters_pays_them_as_one():
    """From those of its sub-models that have all members or none: as a run that was fitted with them."""
    write_table(copies=15, each=30, providers=6)
    pathlib.Path("clusters.csv").write_text("provider,cluster\np0,x\np1,x\n")
    fit = ["fit", "set", "--players", "providers", "--method", "afds", "--model", "logistic", "--explainer", "bank",
           "--inputs", 30, "-q"]
    fds(*fit, "--coalitions", 56, "-o", "apart.run")
    fds(*fit, "--coalitions", 30, "--cluster", "clusters.csv", "--adjust", "none", "-o", "one.run")
    pay = lambda run, *more: fds_json("pay", run, "--index", "0..4", "--amount", "100", "-q", *more)
    apart, one = pay("apart.run", "--cluster", "clusters.csv"), pay("one.run", "--cluster", "clusters.csv")
    assert [p["samples"] for p in one["clusters"][0]["members"]] == [p["samples"] for p in apart["clusters"][0]["members"]]
    for report in (apart, one):
        shares = {s["player"]: s["units"] for s in report["together"]}
        assert set(shares) == {"p0 + p1", "p2", "p3", "p4", "p5"} and sum(shares.values()) == 50000
        cluster, = report["clusters"]
        assert cluster["player"] == "p0 + p1" and cluster["units"] == shares["p0 + p1"]
        first, second = cluster["members"]
        assert (first["name"], second["name"]) == ("p0", "p1") and first["units"] + second["units"] == cluster["units"]
        assert abs(first["units"] * second["samples"] - second["units"] * first["samples"]) <= 2 * cluster["units"]
    # another order of training, so not to the last bit
    values = lambda report: {(i["input"], s["player"]): s["value"] for i in report["inputs"] for s in i["shares"]}
    ours, theirs = values(apart), values(one)
    assert max(abs(ours[k] - theirs[k]) for k in ours) < 0.02 * max(map(abs, theirs.values())) + 0.002, (ours, theirs)
    assert pay("one.run")["together"] == one["together"]  # it has the clusters anyway
    assert pay("apart.run")["clusters"] == []
    out, _ = fds("pay", "apart.run", "--index", 0, "--amount", 10, "--cluster", "clusters.csv", "-q")
    check_width(out)
    assert "p0 + p1, divided by samples:" in out
    assert "p0 + p1" in fds("explain", "apart.run", "--index", 0, "--cluster", "clusters.csv", "-q")[0]


@test
def an_audit_of_a_run_shows_what_copies_earn_apart_and_as_one():
    write_table(copies=25, each=30, providers=6, tests=60)
    fit = ["fit", "set", "--players", "providers", "--method", "afds", "--model", "logistic", "--inputs", 30,
           "--coalitions", 62, "-q"]
    fds(*fit, "--explainer", "bank", "-o", "bank.run")
    report = audit("duplicates", "-o", "clusters.csv", data="bank.run")
    assert report["clusters"] == [["p0", "p1"]] and report["run"] == "bank.run" and report["paid"]["game"] == "bank"
    cluster, = report["paid"]["clusters"]
    # what fds pay divides for the same inputs
    pay = lambda *more: {s["player"]: s["units"] for s in fds_json(
        "pay", "bank.run", "--index", "0..59", "--amount", "100000", "--summary", "-q", *more)["together"]}
    apart, joined = pay(), pay("--cluster", "clusters.csv")
    for share, units, of in ((cluster["as_one"], joined["p0 + p1"], joined), (cluster["members_apart"][0], apart["p0"], apart),
                             (cluster["apart"], apart["p0"] + apart["p1"], apart)):
        assert abs(share - units / sum(of.values())) < 1e-6, (share, units)
    out, _ = fds("audit", "duplicates", "bank.run", "-q", code=3)
    check_width(out)
    assert "p0 + p1: paid apart" in out and "the sub-models of the run" in out
    # without sub-models, and without a run: another game, which is named
    fds(*fit, "--explainer", "mlp", "--epochs", 1, "-o", "network.run")
    other, data = audit("duplicates", data="network.run")["paid"], audit("duplicates")["paid"]
    assert other["game"] == data["game"] == "knn:5" and "no bank" in other["reason"]
    assert other["clusters"] == data["clusters"] and data["clusters"][0]["apart"] > data["clusters"][0]["as_one"]
    write_table(each=2, tests=30)
    assert audit("duplicates")["verdict"] == "unknown"  # not even two copies of two are enough
    assert "not known" in fds("audit", "duplicates", "set", "-q")[0]


@test
def a_run_that_cannot_value_a_cluster_says_what_can():
    write_table(each=20)
    pathlib.Path("clusters.csv").write_text("p0,x\np1,x\n")
    pathlib.Path("other.csv").write_text("p0,x\np2,x\n")
    pathlib.Path("all.csv").write_text("".join(f"p{i},x\n" for i in range(5)))
    fit = ["fit", "set", "--method", "afds", "--model", "logistic", "--inputs", 16, "--coalitions", 14, "--epochs", 1, "-q"]
    pay = lambda run, clusters: ["pay", run, "--index", 0, "--amount", 10, "-q", "--cluster", clusters]
    fds(*fit, "--players", "providers", "--explainer", "mlp", "-o", "network.run")
    refused(pay("network.run", "clusters.csv"), 2, "it has no bank", "fit it with this --cluster")
    fds(*fit, "--players", "providers", "--explainer", "bank", "--cluster", "clusters.csv", "-o", "joined.run")
    refused(pay("joined.run", "other.csv"), 2, '"p0" and "p1" are one player of joined.run')
    refused(pay("joined.run", "all.csv"), 2, "all providers")
    fds(*fit, "--players", 20, "--explainer", "bank", "-o", "samples.run")
    refused(pay("samples.run", "clusters.csv"), 2, "are samples")
    pathlib.Path("nobody.csv").write_text("p0,x\nzz,x\n")
    refused(pay("joined.run", "nobody.csv"), 1, "line 2", '"zz"')


@test
def mistakes_are_named():
    write_table(each=10)
    pathlib.Path("alone.csv").write_text("x,label,provider\n" + "1,a,p\n2,b,p\n" * 10)
    pathlib.Path("two.csv").write_text("x,label,provider\n" + "1,a,p\n2,b,q\n" * 10)
    refused(["audit", "duplicates", "alone.csv", "-q"], 2, "one provider")
    refused(["audit", "duplicates", "two.csv", "-q"], 2, "two providers and no test part")
    refused(["audit", "duplicates", "set", "--png", "x.png", "-q"], 2, "needs images")
    refused(["audit", "labels", "alone.csv", "-q"], 2, "one provider")
    refused(["audit", "labels", "set", "--part", "test", "-q"], 2, "--part")
    refused(["audit", "labels", "set", "--alpha", "1e-6", "-q"], 2, "too small for 5 providers")
    for option, value in (("--part", "test"), ("--utility", "knn:3"), ("--folds", "5")):
        refused(["audit", "duplicates", "set", option, value, "-q"], 2, f"{option} does not apply")
    refused(["data", "audit", "set", "--alpha", "0.1", "-q"], 2, "--alpha")
    call = ["value", "set", "--players", "providers", "-q", "--cluster", "c.csv"]
    refused(call, 1, "c.csv")
    for text, *phrases in (("provider,cluster\nzz,x\n", "line 2", '"zz"'), ("p0,x\np0,y\n", "line 2", "line 1 already"),
                           ("p0\n", "line 1", "1 fields"), ("p0,\n", "line 1", "no cluster")):
        pathlib.Path("c.csv").write_text(text)
        refused(call, 1, "c.csv", *phrases)


main()
