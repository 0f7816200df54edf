// SPDX-License-Identifier: Apache-2.0
// A provider of data: what it is owed, what it earned for which predictions and how exactly that is
// known, its best samples, and every entry with a button to verify it.
import { get, query } from "./api.js";
import { earningsChart, largestFirst } from "./chart.js";
import { card, field, figures, form, h, table } from "./dom.js";
import {
    addErrors,
    day,
    errorUnits,
    labelled,
    moneyError,
    plural,
    priced,
    units,
} from "./format.js";
import { entriesTable } from "./entries.js";

const LABELS = 12; // that are shown

// Sums earnings by day or by label: Map of name → {units, error, count}.
function sumBy(earnings, what, decimals) {
    const sums = new Map();
    for (const earning of earnings) {
        const sum = sums.get(earning[what]) ?? { units: 0n, error: 0, count: 0 };
        sum.units += units(earning.amount, decimals);
        sum.error = addErrors(sum.error, errorUnits(earning.error, decimals));
        sum.count += earning.count;
        sums.set(earning[what], sum);
    }
    return sums;
}

// The labels that paid most; a regression may have as many as predictions.
function byLabel(me, earnings) {
    const sums = [...sumBy(earnings, "label", me.decimals)];
    sums.sort(([, a], [, b]) => largestFirst(a, b));
    const items = sums
        .slice(0, LABELS)
        .map(([label, sum]) =>
            h(
                "li",
                {},
                h("b", {}, moneyError(sum.units, sum.error, me.decimals)),
                ` for ${labelled(label)} `,
                h("small", {}, plural(sum.count, "prediction")),
            ),
        );
    const rest = sums.length - items.length;
    return [
        h("ul", { class: "earned" }, items),
        rest > 0 ? h("p", { class: "soft" }, `And ${plural(rest, "other label")}.`) : null,
    ];
}

export function earningsCard(me, { earnings }) {
    if (earnings.length === 0)
        return card("Earnings", h("p", { class: "soft" }, "Nothing earned yet."));
    const days = sumBy(earnings, "day", me.decimals);
    return card(
        "Earnings",
        h(
            "figure",
            {},
            earningsChart(days, me.currency, me.decimals),
            h("figcaption", {}, `${me.currency} by day. Whiskers are one standard error.`),
        ),
        h(
            "details",
            {},
            h("summary", {}, "The same as a table"),
            table(
                "Earnings by day",
                [
                    ["Day", ""],
                    [me.currency, "number"],
                    ["Predictions", "number"],
                ],
                [...days]
                    .sort()
                    .reverse()
                    .map(([name, sum]) => [
                        day(name),
                        moneyError(sum.units, sum.error, me.decimals),
                        sum.count.toLocaleString("en"),
                    ]),
            ),
        ),
        h("h3", {}, "By what was predicted"),
        byLabel(me, earnings),
    );
}

export function samplesCard(samples) {
    if (samples.length === 0)
        return card(
            "Samples",
            h("p", { class: "soft" }, "No model that is served uses samples of yours."),
        );
    return card(
        "Samples that contribute most",
        h(
            "ul",
            { class: "samples" },
            samples.map((sample) =>
                h(
                    "li",
                    {},
                    sample.picture
                        ? h("img", {
                              src: sample.picture,
                              alt: `${sample.name}, labelled ${sample.label}`,
                          })
                        : h("span", { class: "thumb none", "aria-hidden": "true" }),
                    h("span", {}, sample.label ? `labelled ${sample.label}` : sample.name),
                    typeof sample.value === "number"
                        ? h("small", {}, `value ${Number(sample.value.toPrecision(2))}`)
                        : null,
                ),
            ),
        ),
    );
}

export function statementForm(account) {
    return form(
        "Statement",
        [
            h("p", {}, "Every entry with its amount, standard error and balance, as CSV."),
            h(
                "div",
                { class: "row" },
                field("From", "from", { type: "date" }),
                field("To", "to", { type: "date" }),
            ),
        ],
        "Download the statement",
        async ({ from, to }) => {
            const link = h("a", {
                href: query("/api/statement", { account, from, to }),
                download: `${account}.csv`,
            });
            document.body.append(link);
            link.click();
            link.remove();
        },
    );
}

export async function home(me) {
    const [account, { samples }] = await Promise.all([get("/api/account"), get("/api/samples")]);
    const { total } = account;
    return {
        title: `You are owed ${priced(me, account.balance)}`,
        node: [
            figures(
                [
                    [
                        "Earned altogether",
                        priced(me, total.amount),
                        `for ${plural(total.count, "prediction")}`,
                    ],
                    !account.pending || units(account.pending, me.decimals) === 0n
                        ? null
                        : [
                              "Proposed for payout",
                              priced(me, account.pending),
                              "waits for a second operator",
                          ],
                ].filter(Boolean),
            ),
            earningsCard(me, account),
            samplesCard(samples),
            card("Newest entries", entriesTable(me, me.account, { canVerify: true })),
            statementForm(me.account),
        ],
    };
}
