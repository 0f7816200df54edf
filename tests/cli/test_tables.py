# SPDX-License-Identifier: Apache-2.0
"""Tables and providers as people have them, from the file to the money: ids, text, missing values, new rows."""
import random
import struct

from harness import *  # noqa: F403


FIT = ["--method", "afds", "--coalitions", 20, "--threads", 1, "-q"]


def write_sales(path, rows=160, separator=";"):
    """An id, a shop, numbers with decimal commas and holes, text; colour and price tell the classes apart."""
    chance = random.Random(1)
    lines = ["order;shop;price;colour;city;returned"]
    for i in range(rows):
        is_returned = i % 3 == 0
        price = "" if i % 10 == 7 else f"{10 + 5 * is_returned + chance.random():.2f}".replace(".", ",")
        colour = chance.choice(["red", "blue"]) if is_returned else "green"
        lines.append(f"R{i:03};Shop {i % 5};{price};{colour};{chance.choice('ABC')};{'yes' if is_returned else 'no'}")
    pathlib.Path(path).write_text("\n".join(lines).replace(";", separator) + "\n")


SALES = ["--label", "returned", "--provider", "shop", "--id", "order"]


@test
def a_table_with_text_and_holes_is_fitted_explained_and_paid():
    write_sales("sales.csv")
    shown = fds_json("data", "show", "sales.csv", *SALES)["train"]
    names = [channel["name"] for channel in shown["channels"]]
    assert names == ["price", "price=missing", "colour=blue", "colour=green", "colour=red", "city=A", "city=B", "city=C"]
    assert [p["count"] for p in shown["providers"]] == [32] * 5
    fds("fit", "sales.csv", *SALES, "--players", "providers", *FIT, "-o", "s.run")
    pathlib.Path("new.csv").write_text("colour,city,price,order,note\ngreen,A,10.2,N1,x\nviolet,Z,,N2,y\n")
    out, notes = fds("explain", "s.run", "--rows", "new.csv")
    assert "are missing; the mean" in notes
    assert "rank  player  samples      value  standard error\n" in out, out  # not a label: a shop has many
    answer = fds_json("explain", "s.run", "--rows", "new.csv", "--png", "bars.png")
    assert [i["input"] for i in answer["inputs"]] == ["N1", "N2"], answer
    assert answer["inputs"][0]["ranking"][0]["player"].startswith("Shop ")
    with open("bars.png", "rb") as file:
        width, height = struct.unpack(">2I", file.read(24)[16:])
    assert width == 802 and height > 200, (width, height)
    paid = fds_json("pay", "s.run", "--rows", "new.csv", "--amount", "10.00")
    assert len(paid["inputs"]) == 2
    by_index = fds_json("explain", "s.run", "--index", 3)["inputs"]  # the data is read as before
    assert by_index[0]["input"] == "sample 3, R003" and by_index[0]["sample"] == 3
    pathlib.Path("one.csv").write_text("colour,city,price\ngreen,A,10.2\n")
    refused(["explain", "s.run", "--rows", "one.csv", "--target", "true"], 2, "not known", "--index")


@test
def new_rows_are_the_samples_they_were():
    write_sales("sales.csv")
    fds("fit", "sales.csv", *SALES, "--players", 20, *FIT, "-o", "s.run")
    lines = pathlib.Path("sales.csv").read_text().split("\n")
    pathlib.Path("new.csv").write_text("\n".join([lines[0], lines[8], lines[30]]) + "\n")
    by_rows = fds_json("explain", "s.run", "--rows", "new.csv")["inputs"]
    by_index = fds_json("explain", "s.run", "--index", "7,29")["inputs"]
    assert [i["ranking"] for i in by_rows] == [i["ranking"] for i in by_index]
    assert by_rows[0]["ranking"][0]["player"].startswith("R"), by_rows[0]["ranking"][0]  # ids are names


@test
def rows_may_be_an_array_or_standard_input():
    write_csv("t.csv", rows=120)
    fds("fit", "t.csv", "--players", 20, *FIT, "-o", "t.run")
    write_npy("x.npy", [[1.5, -1], [0.5, 0]])
    by_array = fds_json("explain", "t.run", "--rows", "x.npy")["inputs"]
    ran = subprocess.run([FDS, "explain", "t.run", "--rows", "-", "--json"], input=b"x2;x1\n-1;1,5\n0;0,5\n",
                         stdout=subprocess.PIPE, check=True, env=environment())
    by_input = json.loads(ran.stdout)["inputs"]
    assert [i["ranking"] for i in by_array] == [i["ranking"] for i in by_input]
    assert by_input[1]["input"] == "row 2"


@test
def a_model_trained_elsewhere_says_what_is_predicted():
    write_sales("sales.csv")
    fds("fit", "sales.csv", *SALES, "--players", "providers", *FIT, "-o", "s.run")
    classes = json.loads(pathlib.Path("s.run/run.json").read_text())["data"]["classes"]
    write_npy("p.npy", [[0.75, 0.25], [0.125, 0.875], [1, 0]])
    about = fds_json("explain", "s.run", "--index", "0..2", "--service-probs", "p.npy")["inputs"]
    assert [one["predicted"] for one in about] == [classes[0], classes[1], classes[0]]
    assert [one["confidence"] for one in about] == [0.75, 0.875, 1]
    for k, one in enumerate(about):
        alone = fds_json("explain", "s.run", "--index", k, "--target", one["predicted"])["inputs"][0]
        assert alone["ranking"] == one["ranking"] and alone["label"] == one["label"]
    paid = fds_json("pay", "s.run", "--index", "0..2", "--service-probs", "p.npy", "--amount", "10.00")["inputs"]
    assert [one["label"] for one in paid] == [one["label"] for one in about]
    pathlib.Path("p.csv").write_text(f"order,{classes[1]},{classes[0]}\nA,0.25,0.75\nB,0.875,0.125\nC,0,1\n")
    same = fds_json("explain", "s.run", "--index", "0..2", "--service-probs", "p.csv")["inputs"]
    assert [(one["predicted"], one["ranking"]) for one in same] == [(one["predicted"], one["ranking"]) for one in about]
    assert fds_json("pay", "s.run", "--index", "0..2", "--service-probs", "p.csv", "--amount", "10.00")["inputs"] == paid
    write_npy("w.npy", [[0.75, 0.25]])
    refused(["explain", "s.run", "--index", "0..2", "--service-probs", "w.npy", "-q"], 1, "w.npy: 1 rows of 2",
            "each of the 3 inputs")
    write_npy("w.npy", [[0.75, 0.5]])
    refused(["explain", "s.run", "--index", 0, "--service-probs", "w.npy", "-q"], 1, "w.npy: row 0", "sum to 1.25")


@test
def one_process_answers_line_by_line():
    write_sales("sales.csv")
    fds("fit", "sales.csv", *SALES, "--players", "providers", *FIT, "-o", "s.run")
    process = subprocess.Popen([FDS, "explain", "s.run", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=environment(), text=True)

    def ask(line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    pathlib.Path("new.csv").write_text("order,price,colour,city\nN1,10.5,green,A\nN2,,violet,B\n")
    by_rows = fds_json("explain", "s.run", "--rows", "new.csv")["inputs"]
    one = ask('{"order": "N1", "price": 10.5, "colour": "green", "city": "A"}')
    assert one.pop("line") == 1
    assert one == by_rows[0], (one, by_rows[0])
    assert "must be a number or null" in ask('{"price": "much"}')["error"]
    assert '"price" is missing; give null' in ask('{"cost": 1}')["error"]
    assert "3 numbers, but a sample of the run has 8" in ask("[1, 2, 3]")["error"]
    assert "error" in ask("{")
    numbered = ask('{"order": 17, "price": 10.5, "colour": "green", "city": "A"}')
    assert (numbered["input"], numbered["line"]) == ("17", 6), numbered
    two = ask('{"order": "N2", "price": null, "colour": "violet", "city": "B"}')
    assert two["ranking"] == by_rows[1]["ranking"]
    process.stdin.close()
    assert process.wait(timeout=20) == 0
    refused(["explain", "s.run", "--jsonl", "--json"], 2, "--jsonl reads samples from standard input")
    refused(["explain", "s.run", "--jsonl", "--index", 0], 2, "--jsonl reads samples from standard input")
    waiting = subprocess.Popen([FDS, "explain", "s.run", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=environment(), text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    waiting.stdin.write("[]\n")
    waiting.stdin.flush()
    assert "error" in waiting.stdout.readline()
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(timeout=20) == 128 + signal.SIGINT


@test
def rows_that_do_not_fit_are_refused():
    write_csv("t.csv", rows=120)
    fds("fit", "t.csv", "--players", 20, *FIT, "-o", "t.run")
    pathlib.Path("new.csv").write_text("x1,y\n1,2\n")
    refused(["explain", "t.run", "--rows", "new.csv"], 1, 'no column is named "x2"', 'the columns are "x1", "y"')
    pathlib.Path("new.csv").write_text("x1,x2\n1,many\n")
    refused(["explain", "t.run", "--rows", "new.csv"], 1, 'line 2, column "x2": "many" is not a finite number')
    refused(["explain", "t.run", "--rows", "new.csv", "--index", 0], 2, "only one of them")
    refused(["explain", "t.run"], 2, "nothing to explain: give an image, --index or --rows")
    refused(["explain", "t.run", "--rows", "none.csv"], 1, "none.csv")


@test
def columns_of_numbers_may_be_levels_and_a_label_may_be_none():
    lines = ["zip,x,label"] + [f"{i % 3},{i},{('none', 'mild')[i % 2]}" for i in range(40)] + ["1,,mild"]
    pathlib.Path("t.csv").write_text("\n".join(lines) + "\n")
    shown = fds_json("data", "show", "t.csv", "--categorical", "zip", "--missing", "drop")["train"]
    assert [c["name"] for c in shown["channels"]] == ["zip=0", "zip=1", "zip=2", "x"]
    assert {c["name"]: c["count"] for c in shown["classes"]} == {"none": 20, "mild": 20}


@test
def sentences_of_tokens_are_learnt_by_an_embedding():
    """Twelve tokens of 40 each; the class is the residue mod 4 that most have. Their sizes say nothing about it."""
    chance, lines = random.Random(3), ["shop," + ",".join(f"t{i}" for i in range(12)) + ",topic"]
    for i in range(600):
        topic = chance.randrange(4)
        residues = [topic if chance.random() < 0.6 else chance.randrange(4) for _ in range(12)]
        tokens = [4 * chance.randrange(10) + residue for residue in residues]
        lines.append(f"Shop {i % 6}," + ",".join(map(str, tokens)) + f",topic {topic}")
    pathlib.Path("tokens.csv").write_text("\n".join(lines) + "\n")
    columns = ["--label", "topic", "--provider", "shop", "--players", "providers"]
    accuracy = []
    for model in ("embed:40x8,globalpool,fc:classes", "embed:40x8,conv:16x3p1,relu,globalpool,fc:classes", "logistic"):
        report = fds_json("train", "tokens.csv", *columns, "--model", model, "--epochs", 30, "--lr", 0.01, "-o",
                          "m.safetensors")
        accuracy.append(report["test"]["accuracy"])
    print(f"# accuracy: mean of vectors {accuracy[0]}, convolution {accuracy[1]}, logistic on the numbers {accuracy[2]}")
    assert min(accuracy[:2]) > 0.9 and accuracy[2] < 0.5, accuracy
    fds("fit", "tokens.csv", *columns, "--model", "embed:40x8,globalpool,fc:classes", *FIT, "-o", "t.run")
    pathlib.Path("new.csv").write_text(lines[0].split(",", 1)[1].rsplit(",", 1)[0] + "\n" + ",".join(["1"] * 12) + "\n")
    answer = fds_json("explain", "t.run", "--rows", "new.csv")["inputs"][0]
    assert answer["ranking"][0]["player"].startswith("Shop "), answer
    pathlib.Path("tokens.csv").write_text("\n".join(lines).replace(",39,", ",40,") + "\n")
    refused(["train", "tokens.csv", *columns, "--model", "embed:40x8,globalpool,fc:classes", "-o", "x.safetensors",
             "-q"], 1, "is 40, but embed takes whole numbers from 0 to 39")


@test
def owners_of_digits_are_players():
    lines = ["sample,owner"] + [f"{i},Clinic {i % 4}" for i in range(300)]
    pathlib.Path("owners.csv").write_text("\n".join(lines) + "\n")
    shown = fds_json("data", "show", MNIST, "--owners", "owners.csv")["train"]["providers"]
    assert [p["count"] for p in shown] == [75] * 4 and shown[0]["classes"] == 10
    fds("fit", MNIST, "--owners", "owners.csv", "--players", "providers", "--model", "mlp", *FIT, "-o", "m.run")
    answer = fds_json("explain", "m.run", "--index", "0..1", "--png", "figure.png")
    assert {place["player"] for place in answer["inputs"][0]["ranking"]} == {f"Clinic {i}" for i in range(4)}
    with open("figure.png", "rb") as file:  # bars beside each digit
        assert struct.unpack(">2I", file.read(24)[16:]) == (802 + 112 + 16, 2 * (26 + 112 + 16) + 32)
    pathlib.Path("owners.csv").write_text("\n".join(lines[:-1]) + "\n")
    refused(["fit", MNIST, "--owners", "owners.csv", "--players", "providers", "-o", "x", "-q"], 1,
            "1 of 300 training samples have no provider, the first is sample 299")


main()
