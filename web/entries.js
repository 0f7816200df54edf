// SPDX-License-Identifier: Apache-2.0
// Entries of the ledger, as a table with more on demand, and one entry by itself. Everybody sees
// what the server gives to the viewer: a provider its own postings, an auditor all of them.
import { get } from "./api.js";
import { largestFirst, predictionFigure } from "./chart.js";
import { announce, button, card, h, problem, table } from "./dom.js";
import { errorUnits, labelled, money, moneyError, plural, time, units } from "./format.js";
import { verifyButton } from "./verify.js";

const PAGE = 25;
const KINDS = {
    prediction: "Prediction",
    topup: "Top-up",
    payout: "Payout",
    correction: "Correction",
    privacy: "Privacy",
    release: "Statement",
    open: "New account",
    run: "New model",
    audit: "Proposal",
};

export function kindName(kind) {
    return KINDS[kind] ?? kind;
}

// What an entry did to one account: {units, error}, or null if it has no posting of it.
function postingOf(entry, account, decimals) {
    const found = (entry.postings ?? []).filter((posting) => posting.account === account);
    if (found.length === 0) return null;
    return {
        units: found.reduce((sum, { units: u }) => sum + units(u, decimals), 0n),
        error: found.length === 1 ? errorUnits(found[0].unit_error, decimals) : null,
    };
}

function about(entry, isOwn) {
    if (entry.label !== undefined)
        return isOwn ? `for ${labelled(entry.label)}` : `Prediction of ${labelled(entry.label)}`;
    const { ref, reason, name } = entry.text ?? {};
    const more = reason ?? ref ?? name;
    return kindName(entry.kind) + (more ? `: ${more}` : "");
}

// A date and a time of day, each in one piece; the year and seconds only where there is room.
function when(at) {
    const [, date, year, clock, rest] = /^(\S+ \S+)( \d+), (\d+:\d+)(.*)$/.exec(time(at));
    const piece = (...parts) => h("span", { class: "piece" }, ...parts);
    const wide = (text) => h("span", { class: "wide" }, text);
    return [piece(date, wide(year), ","), " ", piece(clock, wide(rest))];
}

// Rows of an account's own statement: "12.78 ± 1.67", "for a 6".
function ownRow(me, account, entry, canVerify) {
    const own = postingOf(entry, account, me.decimals);
    const row = [
        String(entry.index),
        when(entry.at),
        own ? moneyError(own.units, own.error, me.decimals) : "–",
        about(entry, true),
    ];
    if (!canVerify) return row;
    return [
        ...row,
        own ? verifyButton(me, { index: entry.index, account, units: own.units }) : "–",
    ];
}

function anyRow(me, entry) {
    const amount =
        entry.amount === undefined ? "–" : money(units(entry.amount, me.decimals), me.decimals);
    return [
        h(
            "a",
            { href: `#/entry/${entry.index}`, "aria-label": `Entry ${entry.index}` },
            String(entry.index),
        ),
        when(entry.at),
        amount,
        about(entry, false),
        entry.customer ?? entry.account ?? "",
    ];
}

// A table of entries, newest first, with a button for older ones. `account`: whose; null for all.
export function entriesTable(
    me,
    account,
    { canVerify = false, caption = "Entries, newest first" } = {},
) {
    const isOwn = account !== null;
    const columns = [
        ["Entry", ""],
        ["When", ""],
        [me.currency, "number"],
        ["What", ""],
        ...(isOwn ? (canVerify ? [["Proof", ""]] : []) : [["Account", ""]]),
    ];
    const place = h("div", {}, h("p", {}, "Loading …")),
        entries = [];
    const older = button("Show older entries", () => load());
    let before; // where the next list goes on
    // The server looks at so many entries at a time; an account may have none among them.
    async function next() {
        for (;;) {
            const list = await get("/api/entries", { account, before, limit: PAGE });
            before = list.before ?? list.entries.at(-1)?.index;
            if (list.entries.length || !list.more) return { found: list.entries, more: list.more };
        }
    }
    async function load() {
        older.disabled = true;
        try {
            const { found, more } = await next();
            entries.push(...found);
            const rows = entries.map((entry) =>
                isOwn ? ownRow(me, account, entry, canVerify) : anyRow(me, entry),
            );
            place.replaceChildren(table(caption, columns, rows, "There are no entries yet."));
            if (more) place.append(older);
            if (entries.length > found.length)
                announce(`${plural(entries.length, "entry", "entries")} shown`);
        } catch (error) {
            place.append(problem(error));
        }
        older.disabled = false;
    }
    load();
    return place;
}

// ---- one entry, for those who see everything ----

// A payee's best sample of the predicted label, or its only one: others say nothing about this prediction.
async function bestPicture(account, label) {
    try {
        const { samples } = await get("/api/samples", { account });
        const found = samples.length === 1 ? samples[0] : samples.find((sample) => sample.label === label);
        return found?.picture ?? null;
    } catch {
        return null; // a figure without pictures is still right
    }
}

// Postings of a prediction between the customer's and the fees' are the payees.
async function figureOf(me, entry) {
    const payees = entry.postings.slice(1, -1).map((posting) => ({
        name: posting.account,
        units: units(posting.units, me.decimals),
        error: errorUnits(posting.unit_error, me.decimals),
    }));
    const largest = [...payees].sort(largestFirst).slice(0, 10);
    await Promise.all(
        largest.map(async (payee) => {
            payee.picture = await bestPicture(payee.name, entry.label);
        }),
    );
    const total = units(entry.amount, me.decimals) - units(entry.fee, me.decimals);
    return predictionFigure({
        label: entry.label,
        confidence: entry.confidence,
        input: null,
        payees,
        total,
        currency: me.currency,
        decimals: me.decimals,
    });
}

function postingsTable(me, entry) {
    const digits = (value, count) => String(Number(value.toPrecision(count))).replace("-", "−");
    const withError = ({ value, error }) =>
        typeof value !== "number"
            ? "–"
            : digits(value, 3) + (typeof error === "number" ? ` ±\u00a0${digits(error, 2)}` : "");
    return table(
        "Postings: they sum to 0",
        [
            ["Account", ""],
            [me.currency, "number"],
            ["Value", "number"],
            ["Proof", ""],
        ],
        entry.postings.map((posting) => {
            const amount = units(posting.units, me.decimals);
            return [
                posting.account,
                money(amount, me.decimals),
                withError(posting),
                verifyButton(me, { index: entry.index, account: posting.account, units: amount }),
            ];
        }),
        "This entry moves no money.",
    );
}

function facts(me, entry) {
    const list = [
        ["When", time(entry.at)],
        ["Kind", kindName(entry.kind)],
    ];
    if (entry.amount !== undefined)
        list.push([
            "Amount",
            `${money(units(entry.amount, me.decimals), me.decimals)} ${me.currency}`,
        ]);
    if (entry.kind === "prediction")
        list.push(
            ["Fee", `${money(units(entry.fee, me.decimals), me.decimals)} ${me.currency}`],
            ["Rule", entry.rule],
            ["Customer", entry.customer],
        );
    if (entry.ref !== undefined)
        list.push(["Corrects", h("a", { href: `#/entry/${entry.ref}` }, `entry ${entry.ref}`)]);
    for (const [name, value] of Object.entries(entry.text ?? {}))
        list.push([
            name,
            typeof value === "object" ? h("code", {}, JSON.stringify(value)) : String(value),
        ]);
    list.push(["Hash of its leaf", h("code", {}, entry.leaf)]);
    return h(
        "dl",
        { class: "facts" },
        list.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))),
    );
}

export async function entryPage(me, index) {
    const entry = await get("/api/entry", { index });
    const postings = entry.postings ?? [];
    return {
        title: `Entry ${entry.index}`,
        node: [
            entry.kind === "prediction" ? card("The prediction", await figureOf(me, entry)) : null,
            card("What it says", facts(me, entry)),
            card("Where the money went", postingsTable(me, { ...entry, postings })),
        ],
    };
}
