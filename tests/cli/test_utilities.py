# SPDX-License-Identifier: Apache-2.0
"""fds value --utilities: games of one's own, exact and estimated, in groups; files that are wrong.

The public copyright game (four brands, two of them split in two) is read from
../shared/data/copyright-game beside the source tree, where it is; its licence allows copies, but one
place is enough. Everything else is made here.
"""
import gzip
import itertools
import random
from fractions import Fraction
from math import comb, sqrt

from harness import *  # noqa: F403

COPYRIGHT = pathlib.Path(__file__).resolve().parents[3] / "shared/data/copyright-game/games.json"
BRANDS = "Google=GoogleLarge+GoogleSmall,Sprite=SpriteLarge+SpriteSmall"
# max(value, 0) over the sum, of Google, Sprite, Starbucks, Vodafone: as four players; as six, added up
SHARES = {
    "google": ((.322, .147, .257, .273), (.404, .253, .173, .170)),
    "sprite": ((.181, .328, .259, .233), (.236, .456, .178, .130)),
    "starbucks": ((.152, .210, .450, .188), (.296, .262, .329, .113)),
    "vodafone": ((.262, .225, .249, .264), (.345, .329, .174, .152)),
}


def shapley(names, v):
    """Exact Shapley values, by the definition; v: {frozenset: utility}."""
    n = len(names)
    phi = {}
    for i in names:
        rest = [j for j in names if j != i]
        phi[i] = sum((Fraction(v[frozenset(s) | {i}]) - Fraction(v[frozenset(s)])) / (n * comb(n - 1, k))
                     for k in range(n) for s in itertools.combinations(rest, k))
    return phi


def all_coalitions(names):
    return [frozenset(s) for k in range(len(names) + 1) for s in itertools.combinations(names, k)]


def random_game(names, seed):
    chance = random.Random(seed)
    return {s: round(chance.uniform(-2, 2) + len(s), 6) for s in all_coalitions(names)}


def write_names(path, v, head="coalition,utility"):
    pathlib.Path(path).write_text("\n".join([head] + [f"{'+'.join(sorted(s))},{u}" for s, u in v.items()]) + "\n")


def write_columns(path, names, v):
    lines = [",".join([*names, "utility"])]
    lines += [",".join([*(str(int(i in s)) for i in names), str(u)]) for s, u in v.items()]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def write_json(path, names, games, plain=False):
    entries = lambda v: [{"coalition": sorted(s), "utility": u} for s, u in v.items()]
    data = {"coalitions": entries(games)} if plain else {"games": {name: entries(v) for name, v in games.items()}}
    pathlib.Path(path).write_text(json.dumps({"players": names, "note": "ignored", **data}))


def ranking(*args):
    """{game: {player: (value, error, share)}}"""
    return {game["input"]: {p["player"]: (p["value"], p["standard_error"], p["share"]) for p in game["ranking"]}
            for game in fds_json("value", "--utilities", *args, "-q")["inputs"]}


@test
def the_copyright_game_has_the_published_shares():
    if not COPYRIGHT.exists():
        raise Skip(f"no {COPYRIGHT}")
    one, summed = (ranking(COPYRIGHT, "--group", BRANDS, "--group-value", how) for how in ("player", "points"))
    for game, wanted in SHARES.items():
        for found, shares in zip((one, summed), wanted):
            for brand, share in zip(("Google", "Sprite", "Starbucks", "Vodafone"), shares):
                assert abs(found[game][brand][2] - share) <= 1e-3, (game, brand, found[game][brand], share)


@test
def complete_games_are_exact_in_every_format():
    names = ["dan", "ann", "bob", "cy, the elder"]
    v = random_game(names, 1)
    truth = shapley(names, v)
    quoted = {frozenset(f'"{i}"' if "," in i else i for i in s): u for s, u in v.items()}
    write_columns("columns.csv", [f'"{i}"' if "," in i else i for i in names], quoted)
    write_json("plain.json", names, v, plain=True)
    pathlib.Path("names.csv").write_text("game,utility,coalition\n" + "".join(
        f'g,{u},"{" + ".join(sorted(s))}"\n' for s, u in v.items()))
    for path, game in (("columns.csv", "the game"), ("plain.json", "the game"), ("names.csv", "g")):
        found = ranking(path)[game]
        for name in names:
            value, error, _ = found[name]
            assert abs(value - float(truth[name])) < 1e-10 and error == 0, (path, name, value, float(truth[name]))


@test
def groups_are_merged_or_added_up():
    names = list("abcdef")
    v = random_game(names, 2)
    groups = {"x": "ab", "y": "cde", "f": "f"}
    merged = {frozenset(g for g in s): v[frozenset(i for g in s for i in groups[g])] for s in all_coalitions(list(groups))}
    as_one, single = shapley(list(groups), merged), shapley(names, v)
    write_names("g.csv", v)
    pathlib.Path("groups.txt").write_text("player,group\n" + "".join(f"{i},{g}\n" for g, members in groups.items() for i in members))
    for how in ("x=a+b,y=c + d+e", "groups.txt"):
        player, points = (ranking("g.csv", "--group", how, "--group-value", which)["the game"] for which in ("player", "points"))
        for g, members in groups.items():
            assert abs(player[g][0] - float(as_one[g])) < 1e-10
            assert abs(points[g][0] - float(sum(single[i] for i in members))) < 1e-10
    # a merged game needs the coalitions of whole groups only
    few = {s: u for s, u in v.items() if all(len(s & set(m)) in (0, len(m)) for m in groups.values())}
    assert len(few) == 8
    write_names("few.csv", few)
    report = fds_json("value", "--utilities", "few.csv", "--group", "x=a+b,y=c+d+e", "-q")
    assert report["method"] == "exact" and report["games"][0]["used"] == 8


@test
def incomplete_games_are_estimated_with_standard_errors():
    """An additive game has no error; of one with interactions the truth is within a few errors."""
    names = [f"p{i}" for i in range(12)]
    chance = random.Random(3)
    worth = {i: chance.uniform(-1, 2) for i in names}
    drawn = {frozenset(), frozenset(names)}
    while len(drawn) < 402:
        drawn.add(frozenset(chance.sample(names, chance.randint(1, 11))))
    write_names("additive.csv", {s: 5 + sum(worth[i] for i in s) for s in drawn})
    for name, (value, error, _) in ranking("additive.csv")["the game"].items():
        assert abs(value - worth[name]) < 1e-9 and error < 1e-9
    game = lambda s: sum(worth[i] for i in s) + 0.3 * sqrt(len(s)) * ("p0" in s) * ("p1" in s)
    truth = shapley(names, {s: game(s) for s in all_coalitions(names)})
    write_names("other.csv", {s: game(s) for s in drawn})
    report = fds_json("value", "--utilities", "other.csv", "-q")
    assert report["method"] == "ls" and report["games"][0]["coalitions"] == 402
    for p in report["inputs"][0]["ranking"]:
        assert 0 < p["standard_error"] < 0.1
        assert abs(p["value"] - float(truth[p["player"]])) < 4 * p["standard_error"], p
    # least squares of all coalitions are exact, and the whole is divided in any case
    small = random_game(list("abcd"), 4)
    write_names("small.csv", small)
    exact, squares = (ranking("small.csv", "--method", m)["the game"] for m in ("exact", "ls"))
    assert all(abs(exact[i][0] - squares[i][0]) < 1e-9 for i in exact)


@test
def games_are_chosen_shown_and_written():
    games = {"first": random_game(list("ab"), 5), "second": random_game(list("ab"), 6)}
    write_json("games.json", list("ab"), games)
    out, _ = fds("value", "--utilities", "games.json", "-o", "values.csv")
    check_width(out)
    assert out.index("first: utility") < out.index("second: utility") and "share" in out
    lines = pathlib.Path("values.csv").read_text().split()
    assert len(lines) == 5 and lines[1].startswith("first,,1,"), lines
    assert list(ranking("games.json", "--game", "second")) == ["second"]
    refused(["value", "--utilities", "games.json", "--game", "third"], 2, "--game third", "first")


@test
def bad_files_are_refused_with_the_place():
    cases = [
        ("", "empty"), ("\n\n", "empty"), ("coalition,utility\n", "no coalitions"),
        ("a,b,value\n1,1,1\n", 'no column "utility"', "line 1"),
        ("coalition,utility\n,0\na,1\na,2\na+b,3\n", "line 4", "line 3 already"),
        ("coalition,utility\n,0\na,nan\n", "line 3", "finite", "nan"),
        ("coalition,utility\n,0\na,1e999\n", "line 3", "finite"),
        ("coalition,utility\n,0\na,\n", "line 3", "finite"),
        ("coalition,utility\n,0\na+b+a,1\n", "line 3", '"a"', "twice"),
        ("coalition,utility\n,0\na++b,1\n", "line 3", "without a name"),
        ("coalition,utility\n,0\na,1,2\n", "line 3", "3 fields"),
        ("coalition,utility,source\n,0,x\n", "line 1", '"source"'),
        ("coalition,utility,utility\n,0,x\n", "line 1", "two columns"),
        ("coalition,utility\na,0\na+b,1\n", "the empty coalition is missing"),
        ("coalition,utility\n,0\na,1\nb,1\na+b,1\nbb,2\n", "all 3 players is missing", "the largest has 2", '"bb"'),
        ("coalition,utility\n,0\na+b,1\n", "empty and the full coalition alone"),
        ("a,a,utility\n0,0,1\n", "line 1", '"a"', "twice"),
        ("a,b,utility\n0,0,1\n0,2,1\n", "line 3", '"b"', "0 or 1", '"2"'),
        ("game,coalition,utility\n,,0\n", "line 2", "no game"),
        ("utility\n0\n", "no players"),
        ('{"players": ["a"]', "line 1"), ('{"players": []}', '"players"'), ('{"players": ["a"]}', '"coalitions"'),
        ('{"players": ["a", "a"], "coalitions": []}', "player 2", "twice"),
        ('{"players": ["a", 3], "coalitions": []}', "player 2", "without a name"),
        ('{"players": ["a"], "coalitions": []}', "no coalitions"),
        ('{"players": ["a"], "games": {"g": 3}}', 'game "g"', "list"),
        ('{"players": ["a"], "games": {"g": [{"coalition": ["b"], "utility": 1}]}}', 'game "g": entry 1', '"b"'),
        ('{"players": ["a"], "games": {"g": [{"coalition": ["a", "a"], "utility": 1}]}}', "entry 1", "twice"),
        ('{"players": ["a"], "games": {"g": [{"coalition": [], "utility": 1}, {"coalition": [], "utility": 2}]}}',
         'game "g": entry 2', "entry 1 already"),
        ('{"players": ["a"], "games": {"g": [{"coalition": [], "utility": NaN}]}}', "line 1"),
        ('{"players": ["a"], "games": {"g": [{"coalition": [], "utility": null}]}}', "entry 1", "NUMBER"),
        ('{"players": ["a"], "games": {"g": [{"coalition": ["a"], "utility": 1}]}}', 'game "g": the empty coalition'),
    ]
    for text, *phrases in cases:
        pathlib.Path("bad").write_text(text)
        refused(["value", "--utilities", "bad", "-q"], 1, "bad", *phrases)
    refused(["value", "--utilities", "nowhere.csv", "-q"], 1, "nowhere.csv")


@test
def the_name_of_a_file_decides_between_json_and_csv():
    pathlib.Path("game.json").write_text('\n"players": ["a"], "coalitions": []}')  # the first brace is lost
    refused(["value", "--utilities", "game.json", "-q"], 1, "game.json: JSON: line 2:")
    pathlib.Path("list").write_text('[{"coalition": [],\n "utility" 1}]')
    refused(["value", "--utilities", "list", "-q"], 1, "list: JSON: line 2:")
    with gzip.open("game.json.gz", "wt") as file:
        file.write("coalition,utility\n,0\na,1\n")
    refused(["value", "--utilities", "game.json.gz", "-q"], 1, "game.json.gz: JSON: line 1:")
    pathlib.Path("game.csv").write_text("{a,b,utility\n0,0,0\n0,1,1\n1,0,2\n1,1,3\n")
    assert {k: v[0] for k, v in ranking("game.csv")["the game"].items()} == {"{a": 2, "b": 1}


@test
def options_that_mean_nothing_are_refused():
    write_names("g.csv", random_game(list("abc"), 7))
    call = ["value", "--utilities", "g.csv"]
    refused(["value", "mnist", "--utilities", "g.csv"], 2, "--utilities takes the place of DATA")
    refused([*call, "--players", 3], 2, "--players does not apply with --utilities")
    refused([*call, "--method", "tmc"], 2, "ls or exact")
    refused([*call, "--group-value", "points"], 2, "--group-value needs --group")
    refused([*call, "--group", "x=a+q"], 2, 'no player "q"')
    refused([*call, "--group", "x=a+b,y=b"], 2, '"b" is in x and in y')
    refused([*call, "--group", "=a"], 2, "NAME=PLAYER+PLAYER")
    refused([*call, "--group", "nowhere"], 1, "nowhere")
    refused([*call, "--estimate"], 2, "--estimate")
    refused([*call, "--table", "t"], 2, "--table")
    refused(["value", MNIST, "--game", "x"], 2, "--game needs --utilities")
    write_names("some.csv", {s: u for s, u in random_game(list("abc"), 7).items() if s != {"a"}})
    refused(["value", "--utilities", "some.csv", "--method", "exact"], 2, "7 coalitions of 3 players", "2^3")


main()
