# SPDX-License-Identifier: Apache-2.0
"""fds data audit, as curators meet it: tables with ids and providers, pictures, arrays; mistakes; interruption."""
import csv
import random
import re
import time

from harness import *  # noqa: F403

COLUMNS = ["rank", "sample", "line", "id", "provider", "label", "predicted", "probability", "label_probability", "value",
           "standard_error", "suspect", "contradicts", "reason"]


def write_table(path, rows=120, wrong=(5, 50, 77)):
    """Two clouds; the shop "Bad" has all wrong labels. A blank line shifts the lines below it."""
    chance = random.Random(2)
    lines = ["order,shop,x,y,returned"]
    for i in range(rows):
        is_returned, is_wrong = i % 2, i in wrong
        lines.append(f"R{i:03},{'Bad' if is_wrong else f'Shop {i % 4}'},{4 * is_returned + chance.random():.4f},"
                     f"{chance.random():.4f},{'yes' if is_returned != is_wrong else 'no'}")
    lines.insert(11, "")
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


TABLE = ["data", "audit", "sales.csv", "--label", "returned", "--provider", "shop", "--id", "order"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check_lead(out, rows):
    """Only values beyond two standard errors are called out; in the terminal and on the page."""
    below = [row for row in rows if float(row["value"]) < 0]
    clear = [row for row in below if float(row["value"]) < -2 * float(row["standard_error"])]
    rest = len(below) - len(clear)
    assert out.startswith(f"{len(clear)} of {len(rows)} samples ha"), out
    assert " a value more than two standard errors below 0" in out.split("\n")[0]
    assert ("predictions are better without" in out) == bool(clear), out
    assert ("that may be chance" in out) == bool(rest), out
    assert re.search(rf"^{rest} (more )?ha\w+ a value below 0 that may be chance$", out, re.M) or not rest, out
    page = pathlib.Path("sales.audit/report.html").read_text()
    lead = re.search(rf"<b>{len(clear)}</b> of {len(rows)} samples .* more than two standard errors below 0[^<]*", page)
    assert lead and ("better without" in lead[0]) == bool(clear), lead
    assert bool(re.search(rf" {rest} (more )?(is|are) below 0 by less", lead[0])) == bool(rest), lead[0]
    assert json.loads(pathlib.Path("sales.audit/audit.json").read_text())["clear_suspects"] == len(clear)
    return len(clear), rest


@test
def only_values_beyond_two_standard_errors_are_called_out():
    chance = random.Random(5)
    flipped = lambda label, share: label if chance.random() >= share else {"yes": "no", "no": "yes"}[label]
    found = []
    for noise, gap in ((0.5, 0), (0.03, 3), (0.08, 2.5)):
        lines = ["x1,x2,label"]
        for i in range(240):
            label = "yes" if i % 2 else "no"
            lines.append(f"{chance.gauss(gap * (i % 2), 1):.3f},{chance.gauss(0, 1):.3f},{flipped(label, noise)}")
        pathlib.Path("sales.csv").write_text("\n".join(lines) + "\n")
        found.append(check_lead(fds("data", "audit", "sales.csv")[0], read("sales.audit/rows.csv")))
    assert any(clear for clear, _ in found) and any(rest for _, rest in found), found


@test
def wrong_labels_come_first_with_line_id_provider_and_reason():
    write_table("sales.csv")
    out, err = fds(*TABLE)
    check_width(out)
    rows = read("sales.audit/rows.csv")
    check_lead(out, rows)
    assert list(rows[0]) == COLUMNS and len(rows) == 120
    assert {row["id"] for row in rows[:3]} == {"R005", "R050", "R077"}
    assert [row["rank"] for row in rows] == [str(i + 1) for i in range(120)]
    for row in rows:
        assert int(row["sample"]) == int(row["id"][1:])
        assert int(row["line"]) == int(row["sample"]) + (2 if int(row["sample"]) < 10 else 3), row
        assert row["suspect"] == ("yes" if float(row["value"]) < 0 else "no")
    first = rows[0]
    assert first["provider"] == "Bad" and first["predicted"] != first["label"] and first["suspect"] == "yes"
    assert re.fullmatch(rf"\d of the 5 nearest samples have label {first['predicted']}, .*", first["reason"]), first
    providers = read("sales.audit/providers.csv")
    assert [providers[0][key] for key in ("provider", "samples", "suspects", "share_of_suspects")] == ["Bad", "3", "3", "1"]
    for row in providers:  # a provider has the sum of its samples
        own = [float(r["value"]) for r in rows if r["provider"] == row["provider"]]
        assert len(own) == int(row["samples"]) and abs(sum(own) - float(row["value"])) < 1e-12


@test
def the_report_is_one_page_with_plots_and_no_links_outside():
    write_table("sales.csv")
    fds(*TABLE)
    page = pathlib.Path("sales.audit/report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
    assert page.count("<svg class=\"plot\"") == 2 and "R005" in page and "{{" not in page
    assert "http" not in page and "<script" not in page and "fds data audit sales.csv" in page


@test
def json_says_the_same_and_repeats_bit_for_bit_with_any_threads():
    write_table("sales.csv")
    one = fds_json(*TABLE, "--threads", 1)
    two = fds_json(*TABLE, "--threads", 2)
    assert one.pop("seconds") >= 0 and two.pop("seconds") >= 0 and one == two
    assert one["suspects"] == 3 and len(one["rows"]) == 120 and one["utility"] == "knn:5" and one["folds"] == 10
    kept = json.loads(pathlib.Path("sales.audit/audit.json").read_text())
    assert kept["rows"] == one["rows"] and kept["command"].startswith("fds data audit")
    other = fds_json(*TABLE, "--seed", 1, "-o", "other")
    assert other["rows"] != one["rows"] and {row["id"] for row in other["rows"][:3]} == {"R005", "R050", "R077"}


@test
def pictures_appear_in_the_report():
    for i in range(60):
        pixels, label = digit(i)
        folder = pathlib.Path("scans", f"clinic-{i % 3}", str(label if i else (label + 1) % 10))
        folder.mkdir(parents=True, exist_ok=True)
        write_png(folder / f"{i:03}.png", 28, 28, pixels)
    out, err = fds("data", "audit", "scans", "--top", 5)
    check_width(out)
    rows = read("scans.audit/rows.csv")
    suspects = sum(row["suspect"] == "yes" for row in rows)
    assert len(rows) == 60 and rows[0]["id"].endswith(".png") and rows[0]["line"] == "" and suspects > 0
    page = pathlib.Path("scans.audit/report.html").read_text()
    assert page.count("data:image/png;base64,") == suspects


@test
def a_part_of_data_that_has_two_is_audited():
    out, err = fds("data", "audit", MNIST, "-o", "train.audit")
    assert "300 samples in" in out and "--part test is for the other, of 200 samples" in err, (out, err)
    found = fds_json("data", "audit", MNIST, "--part", "test", "--utility", "knn:3@model", "--model", "logistic", "--folds",
                     2, "-o", "test.audit")
    assert found["samples"] == 200 and found["has_network"] and not pathlib.Path("test.audit/providers.csv").exists()
    estimate = fds_json("data", "audit", MNIST, "--estimate", "-o", "none.audit")
    assert estimate["samples"] == 300 and estimate["memory"] > 0 and not pathlib.Path("none.audit").exists()


@test
def equal_rows_with_different_labels_are_named():
    write_table("sales.csv")
    lines = pathlib.Path("sales.csv").read_text().splitlines()
    copy = lines[20].split(",")
    lines += [",".join(["twin", *copy[1:4], {"yes": "no", "no": "yes"}[copy[4]]])]
    pathlib.Path("twins.csv").write_text("\n".join(lines) + "\n")
    fds("data", "audit", "twins.csv", *TABLE[3:])
    rows = {row["id"]: row for row in read("twins.audit/rows.csv")}
    assert rows["twin"]["contradicts"] == rows[copy[0]]["sample"]
    assert f"; {copy[0]} has the same values and label {copy[4]}" in rows["twin"]["reason"], rows["twin"]
    assert "; twin has the same values" in rows[copy[0]]["reason"]


@test
def mistakes_are_refused_before_any_work():
    write_table("sales.csv")
    pathlib.Path("full").mkdir()
    pathlib.Path("full/notes.txt").write_text("mine")
    refused([*TABLE, "-o", "full"], 2, "full holds \"notes.txt\" but no audit.json")
    refused([*TABLE, "--utility", "ls"], 2, "--utility must be knn:K or knn:K@model")
    refused([*TABLE, "--folds", 1], 2, "--folds must be a whole number from 2")
    refused([*TABLE, "--folds", 500], 2, "--folds must be at most 120")
    refused([*TABLE, "--part", "test"], 2, "no test part")
    refused([*TABLE, "--model", "mlp"], 2, "--model does not apply")
    refused(["data", "audit"], 2, "DATA is missing")
    refused(["data", "audit", "sales.csv", "--label", "retruned"], 1, "did you mean \"returned\"?")
    refused(["data", "audti", "sales.csv"], 2, "did you mean \"audit\"?")
    help_text, _ = fds("data", "audit", "--help")
    check_width(help_text)
    assert "--utility" in help_text and "Examples:" in help_text


@test
def an_interrupted_audit_leaves_no_folder():
    write_table("large.csv", rows=6000, wrong=())
    process = start("data", "audit", "large.csv", *TABLE[3:], "--threads", 1, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    if process.returncode == 0:
        raise Skip("it was done before it could be interrupted")
    assert process.returncode == 130 and out == b"" and b"interrupted" in err, (process.returncode, err)
    assert not pathlib.Path("large.audit").exists()


main()
