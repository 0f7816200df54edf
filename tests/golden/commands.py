# SPDX-License-Identifier: Apache-2.0
"""The commands whose numbers golden.py protects, in the words of version 0.1.

Every command is small, so that all of them take less than a minute. `mnist` is tests/data/mnist;
`shops.csv` is made up: 160 customers of 12 shops, of which shop-07 notes labels at random;
`regions.csv` puts the shops into four groups.

When a word of the command line changes, name it in OLD_TO_NEW. When a number changes on purpose,
name the command in EXPECTED_CHANGES, with the reason.
"""
from collections import namedtuple

# What version 0.1 calls it -> what it is called now, in every command: "--orders":
# "--permutations". A key of two words is an option with that value, "--target predicted"; a value
# may be several words, or none ("").
OLD_TO_NEW = {
    "--value": "--utility",
    "--utility": "--scorer",
    "--orders": "--permutations",
    "--test-count": "--test",
    "--k": "--epochs",
}

# Least squares with --adjust shrink, counts and beyond: values are drawn towards the mean of their
# group by what their errors say, the fit itself shrinks less, and what it leaves is shrunk by an
# estimate of the risk (docs/accuracy.md).
LESS_NOISE = """
    ls ls-draw ls-predicted-global adjust-counts group-file value-retrain value-kernel value-entk
    value-entk-2 value-entk-lenet5 ls-lenet5 ls-cnn ls-kernel ls-paired ls-leverage ls-gfds ls-true ls-all-labels ls-more
    adjust-shrink adjust-knn adjust-kernel adjust-entk group-provider group-model group-model-3
    value-retrain-3 value-retrain-sgd value-knn value-knn-model store-f16 ls-csv
    ls-csv-all-labels ls-json ls-csv-global ls-shops-all fit-fds-explain fit-fds-csv
    fit-fds-true fit-fds-label fit-fds-bank fit-fds-check fit-fds-clip fit-fds-signed
    fit-afds-linear-explain fit-gfds-cnn-explain fit-warm-up-explain fit-bank-explain
    fit-bank-label fit-bank-clip fit-bank-signed fit-bank-gfds-explain fit-lenet5-explain
    fit-shops-explain fit-shops-bank fit-shops-points-pay fit-shops-points-signed
"""

# The standard errors of a network's values depend on the input.
ERRORS_BY_INPUT = "fit-gfds-plus-explain fit-penalty-explain fit-paper-explain"

# The id of a command -> the reason why its numbers are no longer those of version 0.1.
EXPECTED_CHANGES = {
    **dict.fromkeys(LESS_NOISE.split(), "less noise in least squares"),
    **dict.fromkeys(("ls-gfds-plus", "group-file-gfds-plus"), "groups are solved as one unknown each"),
    **dict.fromkeys(("ls-few", "adjust-gfds"), "standard errors have what a penalty takes from each value"),
    **dict.fromkeys(ERRORS_BY_INPUT.split(), "standard errors depend on the input"),
}

# after: the id of the command in whose folder this one runs, when that is done
# near:  a network explainer answers: numbers are compared within a tolerance, not bit for bit
# new:   the words now, where OLD_TO_NEW cannot make them from the old ones
Command = namedtuple("Command", "id old after near new", defaults=("", False, ""))

TRAIN = "train mnist --players 20 --test-count 20 -o m.safetensors "
SHOPS_TRAIN = "train shops.csv -o m.safetensors "

GAME = "value mnist --players 20 --test 10 "
LS = GAME + "--coalitions 100 "
MLP = LS + "--model mlp -o v.npy "
KERNEL = LS + "-o v.npy "  # without a network
SHOPS = "value shops.csv --test 15 --coalitions 100 -o v.npy "
EXACT = "value shops.csv --test 15 --method exact -o v.npy "

OTHERS = "value mnist --players 20 --test 20 --model mlp -o v.npy "
PLAIN = "value mnist --players 20 --test 20 -o v.npy "  # without a network
ORDERS = OTHERS + "--orders 12 "

FIT = "fit mnist --players 20 --inputs 40 --coalitions 100 --model mlp -o r.run "
# Few epochs: in many, rounding grows beyond the tolerance.
ONCE = FIT + "--patience 0 --explainer-epochs 1 "
TWICE = FIT + "--patience 0 --explainer-epochs 2 "
THRICE = FIT + "--patience 0 --explainer-epochs 3 "
BANK = FIT + "--explainer bank "
SHOPS_FIT = "fit shops.csv --coalitions 100 -o r.run "
EXPLAIN = "explain r.run --index 0,8 "
PAY = "pay r.run --index 0,8 -o p.csv "

COMMANDS = [
    # ---- service models ----
    Command("train-lenet5", TRAIN + "--epochs 3"),
    Command("train-cnn", TRAIN + "--model cnn --epochs 2"),
    Command("train-mlp", TRAIN + "--model mlp --epochs 5 --seed 3"),
    Command("train-logistic", TRAIN + "--model logistic --batch 7"),
    Command("train-layers", TRAIN + "--model conv:8x3p1,relu,maxpool,fc:classes --epochs 3"),
    Command("train-converge", TRAIN + "--model mlp --converge --loss-bound 0.05"),
    Command("train-patience", TRAIN + "--model mlp --converge --loss-bound 1e-9 --patience 3"),
    Command("train-sgd", TRAIN + "--model mlp --optimizer sgd --lr 0.01 --momentum 0.9 "
            "--weight-decay 0.001"),
    Command("train-shops", SHOPS_TRAIN + "--players 30"),
    Command("train-shops-all", SHOPS_TRAIN + "--players all --epochs 4"),
    Command("train-shops-providers", SHOPS_TRAIN + "--players providers --converge --epochs 40"),

    # ---- values by least squares: which coalitions ----
    Command("ls", MLP + "--table t"),
    Command("ls-lenet5", LS + "-o v.npy"),
    Command("ls-cnn", LS + "--model cnn --value retrain:2 -o v.npy"),
    Command("ls-kernel", MLP + "--sampler kernel"),
    Command("ls-paired", MLP + "--sampler paired"),
    Command("ls-leverage", MLP + "--sampler leverage --seed 5"),
    Command("ls-gfds", MLP + "--sampler gfds --group label"),
    Command("ls-gfds-plus", MLP + "--sampler gfds+"),
    Command("ls-draw", MLP + "--draw 1"),
    Command("ls-few", GAME + "--coalitions 20 --model mlp --adjust none -o v.npy"),
    # ---- the same table, other questions, more coalitions ----
    Command("ls-true", MLP + "--table t --target true", after="ls"),
    Command("ls-all-labels", MLP + "--table t --target all", after="ls"),
    Command("ls-predicted-global", MLP + "--table t --target predicted --global", after="ls"),
    Command("ls-more", GAME + "--coalitions 140 --model mlp --table t -o v.npy", after="ls"),
    # ---- how values are drawn from them ----
    Command("adjust-none", MLP + "--adjust none"),
    Command("adjust-shrink", MLP + "--adjust shrink"),
    Command("adjust-counts", MLP + "--adjust counts --global"),
    Command("adjust-knn", MLP + "--adjust knn:5"),
    Command("adjust-kernel", MLP + "--adjust kernel"),
    Command("adjust-entk", MLP + "--adjust entk"),
    Command("adjust-gfds", MLP + "--sampler gfds --adjust none"),
    # ---- groups ----
    Command("group-provider", SHOPS + "--players 30 --group provider"),
    Command("group-model", MLP + "--group model"),
    Command("group-model-3", MLP + "--group model:3 --sampler gfds"),
    Command("group-file", SHOPS + "--players providers --group regions.csv"),
    Command("group-file-gfds-plus", SHOPS + "--players providers --group regions.csv "
            "--sampler gfds+"),
    # ---- what a coalition's samples become ----
    Command("value-retrain", MLP + "--value retrain --lr 0.001",
            # all sub-models are trained at beta = 10 times lr now
            new=MLP + "--utility retrain --lr 0.0001"),
    Command("value-retrain-3", MLP + "--value retrain:3 --lr 0.0005 --beta 4 --batch 5"),
    Command("value-retrain-sgd", MLP + "--value retrain:3 --optimizer sgd --lr 0.01 --beta 2"),
    Command("value-knn", KERNEL + "--value knn:3"),
    Command("value-knn-model", MLP + "--value knn:3@model"),
    Command("value-kernel", KERNEL + "--value kernel"),
    Command("value-entk", MLP + "--value entk"),
    Command("value-entk-2", MLP + "--value entk:2"),
    Command("value-entk-lenet5", KERNEL + "--value entk"),
    Command("store-f16", MLP + "--store f16"),
    # ---- formats, players ----
    Command("ls-csv", LS + "--model mlp -o v.csv"),
    Command("ls-csv-all-labels", LS + "--model logistic --target all -o v.csv"),
    Command("ls-json", LS + "--model logistic --target true -o v.json"),
    Command("ls-csv-global", "value shops.csv --players providers --global -o v.csv"),
    Command("ls-shops-all", SHOPS + "--players all --value retrain:2"),
    # ---- exact values ----
    Command("exact-points", EXACT + "--players 8"),
    Command("exact-providers", EXACT + "--players providers --global --value retrain:2"),
    Command("exact-gfds", EXACT + "--players 18 --sampler gfds"),
    Command("exact-gfds-plus", EXACT + "--players 20 --sampler gfds+ --target all"),
    Command("exact-knn", EXACT + "--players 10 --value knn:3"),

    # ---- baselines ----
    Command("loo", OTHERS + "--method loo"),
    Command("loo-each", OTHERS + "--method loo --per-sample"),
    Command("tmc", ORDERS + "--method tmc --until 0"),
    Command("tmc-confidence", ORDERS + "--method tmc --utility confidence --truncate 0.2"),
    Command("tmc-cross-entropy", ORDERS + "--method tmc --utility cross-entropy --draw 1"),
    Command("tmc-each", ORDERS + "--method tmc --per-sample"),
    Command("tmc-each-true", PLAIN + "--method tmc --orders 12 --per-sample --target true "
            "--value kernel"),
    Command("gshapley", ORDERS + "--method gshapley"),
    Command("gshapley-each", ORDERS + "--method gshapley --per-sample"),
    Command("group-testing", OTHERS + "--method group-testing --coalitions 120"),
    Command("group-testing-improved", OTHERS + "--method group-testing --form improved "
            "--coalitions 120"),
    Command("group-testing-bound", OTHERS + "--method group-testing --epsilon 20 --delta 0.3"),
    Command("group-testing-each", OTHERS + "--method group-testing --coalitions 120 --per-sample"),
    Command("cs-shapley", ORDERS + "--method cs-shapley"),
    Command("cs-shapley-shops", "value shops.csv --players 30 --test 30 --orders 10 "
            "--method cs-shapley -o v.csv"),
    Command("freeshap", OTHERS + "--method freeshap --orders 30"),
    Command("freeshap-entk-2", ORDERS + "--method freeshap --value entk:2 --truncate 0.1"),
    Command("freeshap-each", ORDERS + "--method freeshap --per-sample"),
    Command("knn", PLAIN + "--method knn:5"),
    Command("knn-confidence", PLAIN + "--method knn:5 --utility confidence"),
    Command("knn-model", OTHERS + "--method knn:5@model"),
    Command("knn-each", PLAIN + "--method knn:5 --per-sample"),
    Command("banzhaf", OTHERS + "--method banzhaf --coalitions 120"),
    Command("banzhaf-bound", OTHERS + "--method banzhaf --epsilon 2"),
    Command("banzhaf-each", OTHERS + "--method banzhaf --coalitions 60 --per-sample"),
    Command("beta", ORDERS + "--method beta:4,1"),
    Command("beta-providers", "value shops.csv --players providers --test 20 --orders 12 "
            "--method beta:1,1 -o v.json"),
    Command("random", PLAIN + "--method random"),
    Command("random-each", OTHERS + "--method random --per-sample --draw 2"),
    Command("same-label", "value shops.csv --players 20 --test 20 --method same-label -o v.npy"),
    Command("same-label-each", OTHERS + "--method same-label --per-sample"),

    # ---- runs, explanations, payments: by sub-models bit for bit, by networks nearly ----
    Command("fit-fds", THRICE + "--keep-models"),
    Command("fit-fds-explain", EXPLAIN + "-o e.npy", after="fit-fds", near=True),
    Command("fit-fds-csv", EXPLAIN + "-o e.csv", after="fit-fds", near=True),
    Command("fit-fds-true", EXPLAIN + "--target true -o e.npy", after="fit-fds", near=True),
    Command("fit-fds-label", EXPLAIN + "--target 3 -o e.npy", after="fit-fds", near=True),
    Command("fit-fds-bank", EXPLAIN + "--by bank -o e.npy", after="fit-fds"),
    Command("fit-fds-check", EXPLAIN + "--check --json", after="fit-fds", near=True),
    Command("fit-fds-clip", PAY + "--amount 100.00", after="fit-fds", near=True),
    Command("fit-fds-signed", PAY + "--amount 2.5 --policy signed", after="fit-fds", near=True),
    Command("fit-afds-linear", THRICE + "--method afds --k 3 --explainer linear "
            "--explainer-lr 0.00002"),
    Command("fit-afds-linear-explain", EXPLAIN + "-o e.npy", after="fit-afds-linear", near=True),
    Command("fit-gfds-cnn", TWICE + "--method gfds --explainer cnn"),
    Command("fit-gfds-cnn-explain", EXPLAIN + "-o e.npy", after="fit-gfds-cnn", near=True),
    Command("fit-gfds-plus", THRICE + "--method gfds+"),
    Command("fit-gfds-plus-explain", EXPLAIN + "-o e.npy", after="fit-gfds-plus", near=True),
    Command("fit-penalty", ONCE + "--method gfds+ --form penalty --gamma 0.5"),
    Command("fit-penalty-explain", EXPLAIN + "-o e.npy", after="fit-penalty", near=True),
    Command("fit-paper", THRICE + "--method afds --objective paper --draws 8 --sampler kernel "
            "--adjust none"),
    Command("fit-paper-explain", EXPLAIN + "-o e.npy", after="fit-paper", near=True),
    Command("fit-warm-up", TWICE + "--method afds --k 3 --warm-up --draw 1"),
    Command("fit-warm-up-explain", EXPLAIN + "-o e.npy", after="fit-warm-up", near=True),
    Command("fit-bank", BANK + "--method afds"),
    Command("fit-bank-explain", EXPLAIN + "-o e.npy", after="fit-bank"),
    Command("fit-bank-label", EXPLAIN + "--target 3 -o e.csv", after="fit-bank"),
    Command("fit-bank-clip", PAY + "--amount 100.00", after="fit-bank"),
    Command("fit-bank-signed", PAY + "--amount 0.333333 --policy signed", after="fit-bank"),
    Command("fit-bank-gfds", BANK + "--method gfds --group model:3"),
    Command("fit-bank-gfds-explain", EXPLAIN + "-o e.npy", after="fit-bank-gfds"),
    Command("fit-lenet5", "fit mnist --players 20 --inputs 20 --coalitions 100 --method afds "
            "--explainer bank -o r.run"),
    Command("fit-lenet5-explain", EXPLAIN + "-o e.npy", after="fit-lenet5"),
    Command("fit-shops", SHOPS_FIT + "--players providers --method afds --keep-models "
            "--explainer-epochs 3 --patience 0"),
    Command("fit-shops-explain", EXPLAIN + "-o e.npy", after="fit-shops", near=True),
    Command("fit-shops-bank", EXPLAIN + "--by bank -o e.npy", after="fit-shops"),
    Command("fit-shops-points", SHOPS_FIT + "--players 40 --explainer bank"),
    Command("fit-shops-points-pay", PAY + "--amount 7 --by provider", after="fit-shops-points"),
    Command("fit-shops-points-signed", PAY + "--amount 7 --by provider --policy signed",
            after="fit-shops-points"),
]
