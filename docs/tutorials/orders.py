"""Write orders.csv, 1,500 made-up orders of ten shops; new.csv, three orders of today; and
november.csv, 200 orders of a month, of which it is known by now whether they came back.

Kiel has recorded returned orders as kept, and kept ones as returned. Ulm has entered anything.
"""
import csv
import random

rng = random.Random(2026)
SHOPS = ["Aachen", "Bonn", "Celle", "Dresden", "Essen", "Fulda", "Gera", "Halle", "Kiel", "Ulm"]
SIZES = [260, 220, 200, 180, 160, 130, 110, 90, 80, 70]
RETURNS = {"shoes": 1.6, "clothing": 1.0, "toys": -1.0, "books": -2.0, "garden": -0.8}


def number(x, digits=2):
    return f"{x:.{digits}f}".replace(".", ",")  # as a German spreadsheet writes it


def order(shop):
    """One order, and whether it came back: late, dear, unfitting goods do."""
    goods = rng.choice(list(RETURNS))
    price, weight, days = rng.lognormvariate(3.6, 0.6), rng.lognormvariate(0, 0.5), rng.randint(1, 12)
    paid = rng.choice(["invoice", "card", "transfer"])
    score = RETURNS[goods] + 0.35 * (days - 5) + 0.02 * (price - 40) + 0.9 * (paid == "invoice")
    returned = score + rng.gauss(0, 0.6) > 0.6
    if shop == "Kiel":
        returned = not returned
    if shop == "Ulm":
        returned = rng.random() < 0.5
    kg = rng.choice(["", "NA"]) if rng.random() < 0.06 else number(weight)
    return [goods, number(price), kg, days, paid, "yes" if returned else "no"]


def write(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows([columns, *rows])


rows = [[shop, *order(shop)] for shop, size in zip(SHOPS, SIZES) for _ in range(size)]
rng.shuffle(rows)
features = ["goods", "price", "weight_kg", "days", "payment"]
write("orders.csv", ["order", "shop", *features, "returned"], [[f"A{4000 + i}", *row] for i, row in enumerate(rows)])
write("november.csv", ["order", *features, "returned"], [[f"N{i:03d}", *order(None)] for i in range(200)])
write("new.csv", ["order", *features], [["B1", "shoes", "89,90", "1,10", 9, "invoice"],
                                        ["B2", "books", "12,50", "0,40", 2, "card"],
                                        ["B3", "toys", "34,00", "", 7, "transfer"]])
