# SPDX-License-Identifier: Apache-2.0
"""The report as people and programs meet it, from hand-made cases: the page is valid, needs nothing
from outside, and says what report.json says; report.csv too. The first argument is make-report.
"""
import base64
import csv
import html.parser
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from harness import Skip, fds, main, refused, test, write_png  # noqa: E402

SHARES = [0.05, 0.1, 0.15, 0.2, 0.5, 1.0]
METHODS = [("fds", "Fast-DataShapley", "ours"), ("afds", "AFDS", "ours"), ("gfds", "GFDS", "ours"),
           ("gfds+", "GFDS+", "ours"), ("bank", "Bank of sub-models", "beyond"),
           ("ls", "Least squares", "beyond"), ("loo", "Leave one out", "paper"),
           ("tmc", "TMC-Shapley (DataShapley)", "paper"), ("freeshap", "FreeShap", "paper"),
           ("freeshap/sample", "FreeShap, per sample", "other"),
           ("knn:5/sample", "5 nearest neighbours, per sample", "other"),
           ("same-label", "Same label first", "control"), ("random", "Random order", "control")]
VERSION = re.search(r"version: '([^']+)'", pathlib.Path(
    __file__).resolve().parents[2].joinpath("meson.build").read_text()).group(1)
HOSTILE = "<script>alert(\"1\")</script>,'&amp; \"x\"\n=1+1\t\u0001\u0085\uffff /~ é"


# ---- cases ----


def losses(draw, value, way, count):
    means = [draw.uniform(0, 20) for _ in SHARES]
    return {"utility": value, "removal": way, "set": "correct", "count": count, "mean": means,
            "sd": [draw.uniform(0, 5) for _ in SHARES]}


def make_row(draw, method, title, kind):
    own = "retrain" if method == "fds" else "retrain:10"
    entries = [losses(draw, "retrain:10", way, 146) for way in ("top", "bottom", "keep_top")]
    if method == "fds" or kind in ("paper", "control"):
        entries.append(losses(draw, "retrain", "top", 150))
    entries += [dict(entry, set="all", count=200) for entry in entries]
    utilities = {entry["utility"] for entry in entries}
    scores = [{"utility": value, "coalitions": 100, "count": 200, "mean": draw.random(), "sd": 0.1}
              for value in sorted(utilities)]
    return {"method": method, "title": title, "kind": kind, "is_per_sample": kind != "paper",
            "utility": own, "losses": entries,
            "losses_other_seed": [losses(draw, value, "top", 146) for value in sorted(utilities)],
            "lds": scores, "lds_other_seeds": [dict(entry, mean=draw.random()) for entry in scores],
            "agreement": {"correlation": draw.uniform(-1, 1), "class_correlation": draw.uniform(-1, 1),
                          "relative_error": None if kind == "paper" else draw.uniform(0, 2),
                          "efficiency_gap": None},
            "auc": {"count": 2, "mean": draw.random(), "sd": 0.1},
            "auc_terms": {"is_equal": kind == "ours", "sub_models": 1002}, "sub_models": draw.randrange(3000),
            "permutations": {"sampled": 50, "has_converged": method != "tmc"} if kind == "paper" else None,
            "timing": {"prepare_s": 10 ** draw.uniform(-4, 3), "answer_ms": draw.uniform(0, 30),
                       "was_resumed": False}}


def make_case(name, seed, methods=METHODS):
    draw = random.Random(f"{name} {seed}")
    base = [{"set": "correct", "count": 146, "mean": draw.random(), "sd": draw.random()},
            {"set": "all", "count": 200, "mean": draw.random(), "sd": draw.random()}]
    truth = {"coalitions": 8000, "correlation": draw.random()} if seed == 0 else None
    return {"fds": VERSION, "kind": "fds bench case",
            "machine": {"processor": "Quick", "processors": 4, "instructions": "avx2", "threads": 2},
            "data": {"name": name, "source": "a/" + name, "classes": 10, "players": 100,
                     "tests": 200, "inputs": 3000},
            "settings": {"seed": seed, "network": "lenet5", "explainer": "mlp", "coalitions": 2000,
                         "truth": 8000 if seed == 0 else 0, "flipped": 0.1, "flipped_seeds": 2, "loss_seeds": 1,
                         "shares": SHARES},
            "utilities": [{"utility": "retrain:10", "correct": 146, "losses": base,
                           "losses_other_seed": base[:1], "truth": truth,
                           "lds": [{"utility": "retrain:10", "coalitions": 100, "count": 200,
                                    "mean": 0.781, "sd": 0.1}] if truth else []},
                       {"utility": "retrain", "correct": 150, "losses": base, "truth": None}],
            "rows": [make_row(draw, *method) for method in methods],
            "pictures": [{"method": "afds", "file": "afds.png"}]}


def write_case(folder, case):
    os.makedirs(folder, exist_ok=True)
    pathlib.Path(folder, "case.json").write_text(json.dumps(case))
    write_png(os.path.join(folder, "afds.png"), 3, 2, b"\0\1\2\3\4\5")
    return folder


def make(cases, out="out", command="fds bench paper -o out"):
    """Writes the cases into the report's folder; gives (html, report.json)."""
    folders = [write_case(f"{out}/case-{i}", case) for i, case in enumerate(cases)]
    fds(out, command, *folders)
    return (pathlib.Path(out, "report.html").read_text(encoding="utf-8"),
            json.loads(pathlib.Path(out, "report.json").read_text()))


def usual():
    return [make_case(name, seed) for name in ("mnist", "cifar10") for seed in (0, 1)]


# ---- the page as a tree ----

VOID = {"meta", "img"}
KNOWN = VOID | set(
    "html head title style body header main nav section h1 h2 h3 h4 p a b i em small code pre div "
    "span table caption thead tbody tfoot tr th td details summary figure figcaption ul li dl dt dd "
    "svg g path text".split())


class Page(html.parser.HTMLParser):
    """A strict reader: every element is known and closed where it must be, every id is there once.
    """

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.stack, self.ids, self.links, self.cells = [], set(), [], []
        self.feed(text)
        self.close()
        assert not self.stack, f"never closed: {self.stack}"

    def handle_decl(self, decl):
        assert decl == "DOCTYPE html", decl

    def handle_starttag(self, tag, attrs):
        assert tag in KNOWN, f"<{tag}> at {self.getpos()}"
        assert len(dict(attrs)) == len(attrs), f"an attribute twice at {self.getpos()}"
        for key, value in attrs:
            assert not key.startswith("on"), f"{key} at {self.getpos()}"
            if key == "id":
                assert value not in self.ids, f"id {value} twice"
                self.ids.add(value)
            if key in ("href", "src", "xlink:href", "action", "srcset", "data"):
                self.links.append((tag, key, value))
        if tag == "td":
            self.cells.append([])
        if tag not in VOID:
            self.stack.append((tag, dict(attrs).get("data-path")))

    def handle_startendtag(self, tag, attrs):
        assert any(name == "svg" for name, _ in self.stack), f"<{tag}/> at {self.getpos()}"
        self.handle_starttag(tag, attrs)
        self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1][0] == tag, f"</{tag}> at {self.getpos()}: {self.stack}"
        self.stack.pop()

    def handle_data(self, data):
        if any(name == "td" for name, _ in self.stack):
            paths = [path for _, path in self.stack if path is not None]
            self.cells[-1].append((data, paths[-1] if paths else None))


def look_up(report, path):
    for key in path.lstrip("/").split("/"):
        key = key.replace("~1", "/").replace("~0", "~")
        report = report[int(key)] if isinstance(report, list) else report[key]
    return report


def as_text(value):
    """A setting as the page writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(as_text, value))
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def check_number(text, path, report):
    value = look_up(report, path)
    if path.startswith(tuple(f"/data/{d}/rows/" for d in range(9))) or "/utilities/" in path:
        text = text.replace("−", "-")
        assert re.fullmatch(r"-?\d+(\.\d+)?", text), f"{path}: {text!r}"
        decimals = len(text.partition(".")[2])
        assert abs(float(text) - value) <= 0.5000001 * 10 ** -decimals, f"{path}: {text}, {value}"
        assert not (text.startswith("-") and float(text) == 0), f"{path}: {text}"
    else:
        assert text == as_text(value), f"{path}: {text!r}, {value!r}"


def check_cells(page, report):
    """Every number in every cell is the one of report.json that it says it is; returns how many."""
    count = 0
    for cell in page.cells:
        for text, path in cell:
            if path is not None:
                check_number(text, path, report)
                count += 1
            else:
                assert not re.search(r"\d", text), f"a number from nowhere: {text!r}"
    return count


def drawings(text):
    """The drawings, their legends' too, as trees of XML."""
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.S)]


def check_self_contained(text, page):
    for tag, key, value in page.links:
        if (tag, key) == ("img", "src"):
            assert value.startswith("data:image/png;base64,"), value[:60]
        else:
            assert (tag, key) == ("a", "href") and value[1:] in page.ids, (tag, key, value)
    without_pictures = re.sub(r'src="data:[^"]*"', "", text)
    for phrase in ("http:", "https:", "//", "url(", "@import", "<script", "<link", "<iframe"):
        assert phrase not in without_pictures, phrase


# ---- tests ----


@test
def the_page_is_valid_html():
    text, _ = make(usual())
    assert "{{" not in text and "}}" not in text
    page = Page(text)
    assert {"data-0", "data-1", "meaning", "made"} <= page.ids
    for phrase in ("nan", "None", "null", "inf<", ">inf"):
        assert phrase not in re.sub(r'src="data:[^"]*"', "", text), phrase


@test
def tidy_finds_nothing_wrong():
    if not shutil.which("tidy"):
        raise Skip("tidy is not installed")
    make(usual())
    run = subprocess.run(["tidy", "-q", "-errors", "-utf8", "out/report.html"], text=True,
                         stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert run.returncode == 0, run.stderr


@test
def every_drawing_parses_and_is_described():
    text, _ = make(usual())
    plots = [svg for svg in drawings(text) if svg.get("class") == "plot"]
    keys = [svg for svg in drawings(text) if svg.get("class") == "key"]
    # for 10 epochs three charts with two small ones each, by converged models one, and bars
    assert len(plots) == 2 * (3 * 3 + 1 + 1) and keys
    for svg in plots:
        assert svg.get("role") == "img" and svg.find("title").text
        width, height = map(float, svg.get("viewBox").split()[2:])
        for path in svg.iter("path"):
            for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path.get("d")):
                assert re.fullmatch(r"-?\d+(\.\d)?", x) and re.fullmatch(r"-?\d+(\.\d)?", y)
                assert 0 <= float(x) <= width and 0 <= float(y) <= height, (x, y)
        words = [element.text for element in svg.iter("text")]
        assert any(unit in words for unit in ("cross-entropy of the true label, nats",
                                              "seconds, on a logarithmic scale")), words


@test
def curves_of_a_chart_differ_by_dashes_and_colour():
    text, _ = make(usual())
    for legend in re.findall(r'<ul class="legend">.*?</ul>', text, re.S):
        looks = re.findall(r'<g class="(c\d)"><path [^>]*stroke-dasharray="([^"]*)"', legend)
        assert 3 <= len(looks) <= 8, looks
        for side in zip(*looks):
            assert len(set(side)) == len(looks), looks


@test
def nothing_is_fetched_from_anywhere():
    text, _ = make(usual())
    check_self_contained(text, Page(text))


@test
def every_number_in_a_table_is_that_of_the_json():
    text, report = make(usual())
    assert check_cells(Page(text), report) > 1000
    deviations = re.findall(r'<td title="standard deviation ([\d.]+)">(?:<b>)?'
                            r'<span data-path="([^"]+)/mean/(\d+)">', text)
    assert len(deviations) > 300
    for deviation, path, share in deviations:
        check_number(deviation, f"{path}/sd/{share}", report)


def bold_rows(table, share, name="losses"):
    return re.findall(r'<b><span data-path="/data/0/rows/(\d+)/%s/\d+/mean/%d"' % (name, share), table)


def flat(cases, means, sd=1.0):
    """Every method has the same losses with all seeds: means[method], else 1."""
    for case in cases:
        for row in case["rows"]:
            for entry in row["losses"] + row["losses_other_seed"]:
                entry["mean"] = [means.get(row["method"], 1)] * len(SHARES)
                entry["sd"] = [sd] * len(SHARES)
    return cases


@test
def what_is_ahead_of_all_others_is_bold_and_ties_are_not():
    # errors of a difference: sqrt(2) / sqrt(2 * 146) = 0.083
    text, report = make(flat(usual(), {"fds": 50, "ls": 1.3, "random": 0.5}))
    tables = re.findall(r'<table class="losses">.*?</table>', text, re.S)
    for share in range(4):
        assert bold_rows(tables[0], share) == ["0"]  # by converged models
        assert bold_rows(tables[2], share) == ["0"] and bold_rows(tables[3], share) == ["0"]
    # it stands in the first table nevertheless, and says by what
    assert re.search(r"<code>fds</code><small>with models trained to convergence</small>", tables[0])
    rows = [row["method"] for row in report["data"][0]["rows"]]
    for means, ahead in (({"ls": 1.3}, ["ls"]), ({"ls": 1.1}, []), ({"ls": 2, "bank": 1.9}, []),
                         ({"ls": 2, "same-label": 3}, []), ({"ls": 2, "knn:5/sample": 1.9}, [])):
        text, report = make(flat(usual(), means))
        table = re.search(r'<table class="losses">.*?</table>', text, re.S).group()
        assert [rows[int(r)] for r in bold_rows(table, 0)] == ahead, means
    # two seeds that disagree widen the error
    cases = flat(usual(), {"ls": 1.3})
    for entry in cases[1]["rows"][5]["losses"]:
        entry["mean"] = [3.3] * len(SHARES)
    text, _ = make(cases)
    assert bold_rows(re.search(r'<table class="losses">.*?</table>', text, re.S).group(), 0) == []


def found(report, about):
    return next(finding["text"] for finding in report["data"][0]["findings"] if finding["about"] == about)


@test
def the_page_says_first_what_was_found():
    text, report = make(flat(usual(), {"ls": 2, "bank": 1.9, "same-label": 1.5, "random": 0.5}))
    said = found(report, "Value loss, models of 10 epochs")
    assert said.startswith("Without the most valuable 5 % of the players, `ls` leads with 2.00 ± 0.06 "
                           "(292 correctly classified test samples, 2 seeds), tied with `bank`. "), said
    # 0.5, 1 and 1.5, divided by 0.0826
    assert said.endswith("It is 6.1 standard errors above `same-label` (1.50), 12.1 above `knn:5/sample` "
                         "(1.00) and 18.2 above `random` (0.50)."), said
    words = re.sub(r"\s+", " ", re.sub("</?code>", "`", text))
    assert said in words and words.index(said) < words.index("How to read this")
    _, report = make(flat(usual(), {"ls": 2, "same-label": 2.5, "knn:5/sample": 1.95}))
    said = found(report, "Value loss, models of 10 epochs")
    assert said.endswith("It is 6.1 standard errors below `same-label` (2.50), 0.6 above `knn:5/sample` "
                         "(1.95) and 12.1 above `random` (1.00). At 5 %, 10 %, 15 %, 20 % and 50 %, no method "
                         "beats `same-label`. At 5 %, 10 %, 15 %, 20 % and 50 %, no method beats "
                         "`knn:5/sample`."), said
    assert "Value loss from other initial networks, models of 10 epochs" in [
        finding["about"] for finding in report["data"][0]["findings"]]


@test
def differences_are_taken_sample_by_sample():
    cases = [make_case("mine", 0)]
    for row in cases[0]["rows"]:
        by = 0.1 if row["method"] == "ls" else 0
        for entry in row["losses"]:
            # samples from 0 to 19, and ls is ahead by 0.1 or 0.12 everywhere
            numbers = [i % 20 + by + (0.02 if by and i % 2 else 0) for i in range(entry["count"])]
            mean = sum(numbers) / len(numbers)
            entry.update(mean=[mean] * len(SHARES), sd=[6.0] * len(SHARES),
                         samples=[numbers] * len(SHARES))
    text, report = make(cases)
    entry = next(row for row in report["data"][0]["rows"] if row["method"] == "ls")["losses"][0]
    apart = entry["against"][0]
    assert apart["method"] == "same-label" and abs(apart["mean"][0] - 0.11) < 1e-12
    assert abs(apart["error"][0] - 0.01 * (146 / 145) ** 0.5 / 146 ** 0.5) < 1e-12  # unpaired: 0.7
    assert entry["behind"]["best"][0] == "ls" and entry["behind"]["mean"][0] == 0
    table = re.search(r'<table class="losses">.*?</table>', text, re.S).group()
    assert bold_rows(table, 0) == ["5"]


@test
def scores_and_wrong_labels_are_told_with_their_terms():
    cases = usual()
    for case in cases:
        for row in case["rows"]:
            for entry in row["lds"]:
                entry["mean"] = 0.8 if row["method"] == "ls" else 0.5
            row["auc"] = {"count": 2, "mean": 0.9 if row["method"] in ("afds", "freeshap") else 0.6, "sd": 0.01,
                          "samples": [0.9, 0.9] if row["method"] in ("afds", "freeshap") else [0.6, 0.61]}
    text, report = make(cases)
    table = re.search(r'<table class="scores">.*?</table>', text, re.S).group()
    assert re.findall(r'<b><span data-path="/data/0/rows/(\d+)/lds/0/mean"', table) == ["5"]
    said = found(report, "LDS by models of the same seed, models of 10 epochs")
    assert said.startswith("`ls` leads with 0.800 ± 0.005 (400 test samples, 2 seeds). It is ")
    assert said.endswith(" The values that stand for the truth score 0.781 ± 0.007."), said
    assert "Values that stand for the truth</th><td>" in table
    said = found(report, "Wrong labels")
    assert said.startswith("On equal terms, `afds` finds wrong labels best: AUC 0.900, standard deviation")
    assert ("over 4 flips of labels. On their own terms: `bank` 0.600, `ls` 0.600, `loo` 0.600, `tmc` 0.600, "
            "`freeshap` 0.900, ") in said, said
    assert report["data"][0]["settings"]["flipped_seeds"] == 4


@test
def tables_by_one_utility_say_whose_values_come_from_another():
    text, _ = make(usual())
    assert "Every method" not in text and "as in the paper" not in text
    words = " ".join(text.split())
    assert ("<h4>Evaluated with models trained to convergence</h4> <p>All methods whose removals "
            "were evaluated with these models. The values of Leave one out, TMC-Shapley "
            "(DataShapley) and FreeShap come from models trained for 10 epochs, their own setting. "
            "</p>") in words
    assert ("<h4>Evaluated with models trained for 10 epochs</h4> <p>All methods whose removals were "
            "evaluated with these models. The values of Fast-DataShapley come from models trained "
            "to convergence, its own setting. </p>") in words
    folded = re.findall(r"<summary>(.*?)</summary>", text)
    for start in ("The same over all test samples", "Value loss without the least valuable",
                  "Value loss with the most valuable"):
        assert sum(line.startswith(start) for line in folded) == 2, folded  # of each set of data
    assert words.count("Bold: the lowest of those with the same models") == 4
    assert len(folded) == 6 and "seeds: mean" not in words


def captions(text):
    return re.findall(r"<figcaption>(.*?)</figcaption>", text)


@test
def charts_of_some_seeds_say_which():
    cases = [make_case("mine", seed) for seed in (4, 5, 6)]
    for case in cases[1:]:
        for row in case["rows"]:
            row["losses"] = [entry for entry in row["losses"] if entry["removal"] == "top"]
    text, _ = make(cases)
    small = [caption for caption in captions(text) if "curves as above" in caption]
    assert len(small) == 6 and all(caption.endswith(", seed 4 only") for caption in small), small
    assert " ".join(text.split()).count("trained for 10 epochs, 1 of 3 seeds: mean ± standard error. "
                                     "Bold: the lowest of those with the same models") == 2
    assert not any(" only" in caption for caption in captions(text) if "most valuable players:" in
                   caption)
    assert "Bands show ± 1.96 standard errors." in text and "confidence interval" not in text
    # the loss with all players is that of a chart's own seeds
    before = re.findall(r'<svg class="plot".*?</svg>', text, re.S)[:3]
    for case in cases[1:]:
        for entry in case["utilities"][0]["losses"]:
            entry["mean"] += 5
    text, _ = make(cases)
    after = re.findall(r'<svg class="plot".*?</svg>', text, re.S)[:3]
    assert [one == other for one, other in zip(before, after)] == [False, True, True]
    del cases[2]["rows"][1]  # afds
    text, _ = make(cases)
    assert any(caption.endswith("10 epochs, some methods with fewer seeds")
               for caption in captions(text)), captions(text)


@test
def columns_of_some_seeds_say_how_many():
    cases = [make_case("mine", seed) for seed in (0, 1, 2)]
    for case in cases[1:]:
        for row in case["rows"]:
            row["agreement"] = row["auc"] = None
    cases[0]["rows"][0]["sub_models"] = None
    text, report = make(cases)
    check_cells(Page(text), report)
    heads = re.search(r'<table class="measures">.*?</thead>', text, re.S).group()
    assert re.findall(r">([^<>]+)</small><small>1 of 3 seeds</small>", heads) == [
        "with the truth", "within the class", "relative"], heads
    assert "AUC</small><small>2 flips</small>" in heads
    assert '<small>seeds: <span data-path="/data/0/rows/0/sub_models/count">2</span>' in text
    assert text.count("<small>seeds: ") == 1


@test
def the_truth_and_unfinished_permutations_are_told():
    text, report = make(usual())
    truth = report["data"][0]["utilities"][0]["truth"]
    words = " ".join(text.split())
    assert re.search(r"The truth for models trained for 10 epochs is estimated from <span [^>]*>8000"
                     r"</span> coalitions; values from its two halves have a correlation of "
                     r"<span [^>]*>%.3f</span>" % truth["correlation"]["mean"], words)
    told = re.findall(r'<p class="soft">(.*?) permutations, before its own stopping rule\. </p>', words)
    assert [re.sub("<[^>]*>", "", one) for one in told] == [
        "TMC-Shapley (DataShapley) stopped after 50"] * 2
    # of the paper's baselines and of others, those that trained any
    rows = [row for data in report["data"] for row in data["rows"]]
    assert text.count("<small>requested</small>") == sum(
        row["kind"] in ("paper", "other") and row["sub_models"]["mean"] > 0 for row in rows)


@test
def another_machine_is_told():
    text, report = make(usual())
    assert "on Quick, 4 processors, instructions avx2, 2 threads." in text
    assert "another machine" not in text and report["machine"]["is_mixed"] is False
    cases = usual()
    cases[3]["machine"]["processor"] = "Slow"
    text, report = make(cases)
    assert "another machine" in text and report["machine"]["is_mixed"] is True


@test
def the_paper_is_named_only_where_it_has_figures():
    text, _ = make(usual())
    assert "match only these, although it does not say so" in text and "A30" in text
    cases = usual()
    for case in cases:
        case["data"]["players"] = 50
    text, report = make(cases)
    assert not any(row["paper"] for data in report["data"] for row in data["rows"])
    for phrase in ("match only these", "A30", "<small>paper", 'class="mark"', "The paper’s own"):
        assert phrase not in text, phrase


@test
def pictures_are_in_the_page():
    text, report = make(usual())
    pictures = re.findall(r'src="data:image/png;base64,([^"]*)"', text)
    assert len(pictures) == 2
    for picture in pictures:
        assert base64.b64decode(picture, validate=True) == \
            pathlib.Path("out/case-0/afds.png").read_bytes()
    assert [data["pictures"] for data in report["data"]] == [
        [{"method": "afds", "file": f"case-{i}/afds.png"}] for i in (0, 2)]


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same(text, value):
    return text == "" if value is None else float(text) == value


@test
def the_csv_has_every_number_of_the_json():
    _, report = make(usual())
    lines = read_csv("out/report.csv")
    found = {tuple(line[key] for key in [*list(line)[:8], "against"]): line for line in lines}
    assert len(found) == len(lines)
    count = 0

    def expect(key, mean, sd=None, error=None, samples=None, against=""):
        nonlocal count
        if mean is None:
            assert (*key, against) not in found, key
            return
        line = found[(*key, against)]
        count += 1
        assert same(line["mean"], mean) and same(line["sd"], sd), (key, line)
        assert same(line["count"], samples) and same(line["error"], error), (key, line)

    for data in report["data"]:
        name, seeds = data["name"], data["seeds"]
        for of in data["utilities"]:
            for what, entries in (("loss", of["losses"]), ("loss_other_seed", of["losses_other_seed"])):
                for loss in entries:
                    key = (name, "", what, of["utility"], "", loss["set"], "0")
                    expect(key + ("",), loss["mean"], loss["sd"], loss["error"], loss["count"])
                    for seed, mean in zip(seeds, loss["by_seed"]):
                        expect(key + (str(seed),), mean)
            for score in of["lds"]:
                key = (name, "", "truth_lds", of["utility"], "", "", "")
                expect(key + ("",), score["mean"], score["sd"], score["error"], score["count"])
                for seed, number in zip(seeds, score["by_seed"]):
                    expect(key + (str(seed),), number)
            if of["truth"]:
                key = (of["utility"], "", "", "", "")
                expect((name, "", "truth_coalitions") + key, of["truth"]["coalitions"])
                stat = of["truth"]["correlation"]
                expect((name, "", "truth_correlation") + key, stat["mean"], stat["sd"], None,
                       stat["count"])
        for row in data["rows"]:
            for what, entries in (("loss", row["losses"]), ("loss_other_seed", row["losses_other_seed"])):
                for loss in entries:
                    for k, share in enumerate(SHARES):
                        key = (name, row["method"], what, loss["utility"], loss["removal"],
                               loss["set"], f"{share:g}")
                        expect(key + ("",), loss["mean"][k], loss["sd"][k], loss["error"][k],
                               loss["count"])
                        for seed, means in zip(seeds, loss["by_seed"]):
                            expect(key + (str(seed),), means[k])
                        for apart in loss["against"]:
                            expect(key + ("",), apart["mean"][k], None, apart["error"][k],
                                   against=apart["method"])
            for what in ("lds", "lds_other_seeds"):
                for score in row[what]:
                    key = (name, row["method"], what, score["utility"], "", "", "")
                    expect(key + ("",), score["mean"], score["sd"], score["error"], score["count"])
                    for seed, mean in zip(seeds, score["by_seed"]):
                        expect(key + (str(seed),), mean)
                    for apart in score["against"]:
                        expect(key + ("",), apart["mean"], None, apart["error"],
                               against=apart["method"])
            for apart in (row["auc"] or {"against": []})["against"]:
                expect((name, row["method"], "auc", "", "", "", "", ""), apart["mean"], None,
                       apart["error"], against=apart["method"])
            stat = row["auc_terms"]["sub_models"]
            expect((name, row["method"], "auc_sub_models", "", "", "", "", ""), stat["mean"],
                   stat["sd"], stat["sd"] / stat["count"] ** 0.5, stat["count"])
            for outer, keys in ((row["agreement"], ("correlation", "class_correlation", "relative_error",
                                                    "efficiency_gap")),
                                (row, ("auc", "sub_models")),
                                (row["permutations"] or {"sampled": None}, ("sampled",)),
                                (row["timing"], ("prepare_s", "answer_ms"))):
                for what in keys:
                    stat = outer[what] or {"mean": None, "sd": None, "count": 1}
                    error = stat["sd"] / stat["count"] ** 0.5 if stat["sd"] is not None else None
                    expect((name, row["method"], what, "", "", "", "", ""), stat["mean"],
                           stat["sd"], error, stat["count"])
            for k, share in enumerate((row["paper"] or {"shares": []})["shares"]):
                expect((name, row["method"], "paper_loss", "", "top", "", f"{share:g}", ""),
                       row["paper"]["mean"][k], row["paper"]["sd"][k])
            expect((name, row["method"], "paper_seconds", "", "", "", "", ""),
                   (row["paper"] or {"seconds": None})["seconds"])
    assert count == len(lines) > 1000


@test
def the_same_cases_give_the_same_bytes():
    make(usual())
    names = ("report.html", "report.json", "report.csv")
    before = [pathlib.Path("out", name).read_bytes() for name in names]
    make(usual())
    assert before == [pathlib.Path("out", name).read_bytes() for name in names]


@test
def hostile_names_stay_texts():
    cases = [make_case(HOSTILE, seed, [(HOSTILE, HOSTILE, "ours"), ("random", HOSTILE, "control")])
             for seed in (0, 1)]
    for case in cases:
        case["data"]["source"] = case["settings"]["network"] = case["settings"][HOSTILE] = HOSTILE
        case["pictures"] = [{"method": HOSTILE, "file": "afds.png"}]
        for of, value in zip(case["utilities"], (HOSTILE, "retrain:" + HOSTILE)):
            of["utility"] = value
            of["lds"] = []
        for row in case["rows"]:
            row["utility"] = HOSTILE
            for entry in row["losses"] + row["losses_other_seed"] + row["lds"]:
                entry["utility"] = {"retrain": "retrain:" + HOSTILE}.get(entry["utility"], HOSTILE)
    text, report = make(cases, command=HOSTILE)
    page = Page(text)
    check_self_contained(text.replace("&lt;/script", ""), page)
    assert drawings(text)
    assert report["command"] == report["data"][0]["name"] == HOSTILE
    assert all(row["title"] == HOSTILE for row in report["data"][0]["rows"])
    lines = read_csv("out/report.csv")
    assert {line["data"] for line in lines} == {HOSTILE}
    assert {line["method"] for line in lines} == {"", HOSTILE, "random"}
    # settings: control characters have no place in a page
    for cell in page.cells:
        for words, path in cell:
            if path and path.startswith("/data/0/settings") and "alert" in words:
                assert words == re.sub("[\u0001\u0085\uffff]", "?", HOSTILE).replace(
                    "\n", " ").replace("\t", " "), words


@test
def what_was_not_measured_is_left_out():
    case = make_case("mine", 7, [("afds", "AFDS", "ours"), ("random", "Random", "control")])
    for row in case["rows"]:
        row.update(agreement=None, auc=None, sub_models=None, permutations=None, timing=None, lds=[],
                   lds_other_seeds=[], losses_other_seed=[])
        row["losses"] = [entry for entry in row["losses"]
                         if entry["removal"] == "top" and entry["utility"] == "retrain:10"]
        for entry in row["losses"]:
            entry["mean"][2] = entry["sd"][3] = None
    case["utilities"].pop()
    case["pictures"] = []
    text, report = make([case])
    page = Page(text)
    check_cells(page, report)
    assert "Preparation time" not in text and "Largest contributors" not in text
    assert 'class="measures"' not in text and "<h4>" not in text
    assert not re.search(r"nan|None|null", text)
    assert [data["rows"][0]["timing"] for data in report["data"]] == [None]


@test
def no_sample_classified_correctly_shows_all_samples():
    case = make_case("mine", 7)
    for holder in case["rows"] + case["utilities"]:
        holder["losses"] = [entry for entry in holder["losses"] if entry["set"] == "all"]
    text, report = make([case])
    check_cells(Page(text), report)
    assert "<details open>" in text and len(drawings(text)) > 10
    assert "classifies correctly" not in text and "<h4>" not in text


@test
def few_shares_and_one_sample_are_enough():
    case = make_case("mine", 7)
    for shares, shown in (([0.37], [37]), ([0.01, 0.1, 0.3, 0.4, 0.5], [1, 10, 30, 40]),
                          ([0.05, 0.1, 0.15, 0.2, 0.5], [5, 10, 15, 20])):
        case["settings"]["shares"] = shares
        for row in case["rows"]:
            for entry in row["losses"] + row["losses_other_seed"]:
                entry.update(count=1, mean=shares, sd=[None] * len(shares))
        text, report = make([case])
        check_cells(Page(text), report)
        table = re.search(r'<table class="losses">.*?</table>', text, re.S).group()
        assert re.findall(r'<th scope="col">([\d.]+) %</th>', table) == list(map(str, shown))


@test
def colours_can_be_told_from_their_ground():
    text, _ = make([make_case("mine", 0)])
    schemes = re.findall(r":root \{([^}]*--ground[^}]*)\}", text)
    assert len(schemes) == 2

    def light(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for scheme in schemes:
        colours = dict(re.findall(r"--(\w+): (#\w+)", scheme))
        ground = light(colours["ground"].ljust(7, "f"))
        for name, least in [("ink", 7), ("soft", 4.5), ("accent", 4.5), ("ctl", 3)] + [
                (f"c{i}", 3) for i in range(8)]:
            pair = sorted((light(colours[name]), ground))
            contrast = (pair[1] + 0.05) / (pair[0] + 0.05)
            assert contrast >= least, f"{name}: {contrast:.2f}"


@test
def the_page_of_results_is_written_between_its_marks():
    script = pathlib.Path(__file__).resolve().parents[2] / "bench" / "results.py"
    cases = flat(usual(), {"ls": 2, "same-label": 1.5})
    _, report = make(cases)
    page = pathlib.Path("page.md")

    def write(text):
        page.write_text(text)
        return subprocess.run([sys.executable, "-B", script, "out", "--write", page], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    run = write("# Results\nby hand\n<!-- results: begin -->\nold\n<!-- results: end -->\nrest\n")
    assert run.returncode == 0, run.stderr
    text = page.read_text()
    assert text.startswith("# Results\nby hand\n<!-- results: begin -->\n") and text.endswith("-->\nrest\n")
    assert "old" not in text and all(len(line) <= 120 or line.startswith("|") for line in text.splitlines())
    words = " ".join(text.split())
    for data in report["data"]:
        for finding in data["findings"]:
            assert finding["text"] in words, finding
    # every figure of the table of controls, of least squares
    row = next(row for row in report["data"][0]["rows"] if row["method"] == "ls")
    score = row["lds"][0]
    apart = row["losses"][0]["against"][0]
    line = next(line for line in text.splitlines() if line.startswith("| Least squares | "))
    assert line.startswith(f"| Least squares | 2.00 ± 0.06 | {apart['mean'][0] / apart['error'][0]:+.1f} | ")
    assert f" | {score['mean']:.3f} ± {score['error']:.3f} | " in line, line
    assert write(text).returncode == 0 and page.read_text() == text
    run = write("no marks\n")
    assert run.returncode == 1 and "results: begin" in run.stderr and page.read_text() == "no marks\n"


@test
def refusals_leave_the_old_report():
    make([make_case("mine", 0)])
    before = pathlib.Path("out/report.html").read_bytes()
    pathlib.Path("out/case-0/afds.png").write_bytes(b"GIF89a no PNG")
    refused(["out", "", "out/case-0"], 1, "out/case-0/afds.png", "not a PNG")
    other = make_case("mine", 1)
    other["settings"]["network"] = "cnn"
    write_case("other", other)
    write_case("out/case-0", make_case("mine", 0))
    refused(["out", "", "out/case-0", "other"], 2, "other/case.json", "network", "cnn", "lenet5")
    refused(["out", ""], 2, "at least one")
    refused(["out", "", "nowhere"], 1, "nowhere/case.json")
    assert pathlib.Path("out/report.html").read_bytes() == before


if __name__ == "__main__":
    sys.exit(main())
