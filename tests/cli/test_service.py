# SPDX-License-Identifier: Apache-2.0
"""--service-probs: the predictions of a model trained elsewhere, as an array or a table."""
from harness import *  # noqa: F403


def read(path):
    return pathlib.Path(path).read_bytes()


def put(path, lines):
    pathlib.Path(path).write_text("\n".join(lines) + "\n")
    return path


@test
def labels_of_a_model_trained_elsewhere_are_explained():
    write_csv("t.csv", rows=60)
    arguments = ["value", "t.csv", "--players", 8, "--utility", "knn:1", "--seed", 1]
    rows = [[0.2, 0.7, 0.1] if i % 2 else [0.25, 0.25, 0.5] for i in range(60)]
    write_npy("p.npy", rows)
    about = fds_json(*arguments, "--service-probs", "p.npy", "-o", "v.json")
    assert about["service_probs"] == "p.npy"
    labels = {r["test"]: r["label"] for r in json.loads(pathlib.Path("v.json").read_text())["results"]}
    assert len(labels) == about["tests"] and all(y == ("b" if i % 2 else "c") for i, y in labels.items()), labels
    assert about["correctly_classified"] == sum(y == "abc"[i % 3] for i, y in labels.items())
    fds(*arguments, "--service-probs", "p.npy", "--method", "loo", "--per-sample")
    wrong = [(rows[:-1], "59 rows of 3 floats; it must have a row of 3 floats"), ([r[:2] for r in rows], "60 rows of 2"),
             ([[0.5, 0.5, 0.1]] + rows[1:], "row 0 (from 0): its probabilities sum to 1.1"),
             ([*rows[:7], [float("nan"), 0, 1], *rows[8:]], "row 7 (from 0), class \"a\": the probability is nan"),
             ([*rows[:7], [-0.1, 0.1, 1], *rows[8:]], "it must be from 0 to 1")]
    for bad, phrase in wrong:
        write_npy("w.npy", bad)
        refused([*arguments, "--service-probs", "w.npy", "-q"], 1, "w.npy", phrase)
    refused([*arguments, "--service-probs", "none.npy", "-q"], 1, "none.npy")
    refused([*arguments, "--service-probs", "t.csv", "-q"], 1, "t.csv: line 1: no column is named \"a\"")


@test
def probabilities_of_a_model_trained_elsewhere_may_be_a_table():
    write_csv("t.csv", rows=60)
    arguments = ["value", "t.csv", "--players", 8, "--utility", "knn:1", "--seed", 1]
    rows = [[0.2, 0.7, 0.1] if i % 2 else [0.25, 0.25, 0.5] for i in range(60)]
    write_npy("p.npy", rows)
    fds(*arguments, "--service-probs", "p.npy", "-o", "npy.csv")
    bare = [",".join(map(str, row)) for row in rows]
    named = [f"R{i};{row[2]};{row[0]};{row[1]}".replace(".", ",") for i, row in enumerate(rows)]
    for lines in (bare, ["a,b,c", *bare], ["id;c;a;b", *named]):
        pathlib.Path("p.csv").write_text("\n".join(lines) + "\n")
        fds(*arguments, "--service-probs", "p.csv", "-o", "csv.csv")
        assert read("csv.csv") == read("npy.csv"), lines[:2]
    wrong = [(bare[:-1], "59 rows of probabilities; it must have one for each of the 60 samples of the data"),
             ([*bare, bare[0]], "more than 60 rows"), (["a,b,b", *bare], "line 1: columns 2 and 3 have the class \"b\""),
             (["a,b,d", *bare], "line 1: no column is named \"c\""), ([row.split(",", 1)[1] for row in bare], "line 1: 2 numbers"),
             (["a,b,c", *bare[:7], "0.5,x,0.5", *bare[8:]], "line 9, column 2 (class \"b\"): \"x\" is no probability"),
             ([*bare[:7], "0.5,1.5,0.5", *bare[8:]], "line 8, column 2 (class \"b\"): \"1.5\" is no probability"),
             ([*bare[:7], "0.5,,0.5", *bare[8:]], "line 8, column 2"), ([*bare[:7], "0.5,0.5", *bare[8:]], "line 8: 2 fields"),
             ([*bare[:7], "0.5,0.5,0.5", *bare[8:]], "line 8: its probabilities sum to 1.5"), ([], "0 rows")]
    for lines, phrase in wrong:
        pathlib.Path("w.csv").write_text("\n".join(lines) + "\n")
        refused([*arguments, "--service-probs", "w.csv", "-q"], 1, "w.csv", phrase)


@test
def classes_that_are_numbers_may_be_a_header():
    lines = ["x,label"] + [f"{i / 7},{i % 2}" for i in range(40)]
    pathlib.Path("t.csv").write_text("\n".join(lines) + "\n")
    arguments = ["value", "t.csv", "--players", 6, "--utility", "knn:1"]
    sure = ["1,0" if i % 4 else "0,1" for i in range(40)]
    fds(*arguments, "--service-probs", put("bare.csv", sure), "-o", "bare.v.csv")
    fds(*arguments, "--service-probs", put("head.csv", ["0,1", *sure]), "-o", "head.v.csv")
    turned = [",".join(reversed(line.split(","))) for line in sure]
    fds(*arguments, "--service-probs", put("turned.csv", ["1,0", *turned]), "-o", "turned.v.csv")
    assert read("bare.v.csv") == read("head.v.csv") == read("turned.v.csv")


sys.exit(main())
