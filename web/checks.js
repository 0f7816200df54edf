// SPDX-License-Identifier: Apache-2.0
// What audits say: a light for each check, with its evidence.
import { get } from "./api.js";
import { announce, button, card, h, lights, problem, table } from "./dom.js";
import { money, plural, time } from "./format.js";

const NAMES = {
    ledger: "The ledger",
    truth: "The explainer",
    provider: "Providers",
    coverage: "Standard errors",
    groups: "Groups",
    drift: "Inputs",
    self: "Customers",
};
const STATES = { ok: "good", alarm: "bad", unknown: "none" };
const SHOWN = 10; // rows of evidence

export function checkName(check) {
    return NAMES[check] ?? check;
}

export function stateOf({ verdict }) {
    return STATES[verdict] ?? "none";
}

export function checkLights(report) {
    return lights(
        report.checks.map((check) => [stateOf(check), checkName(check.check), check.answer]),
    );
}

// Evidence can be huge: 8.3 · 10²⁹
export function number(value, digits = 3) {
    if (typeof value !== "number") return "not known";
    if (Math.abs(value) < 1e6)
        return value.toLocaleString("en", { maximumSignificantDigits: digits });
    const [mantissa, exponent] = value.toExponential(1).split("e+");
    return `${mantissa} · 10${[...exponent].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

function percent(value) {
    return typeof value === "number" ? `${(100 * value).toFixed(1)} %` : "not known";
}

// Units of the ledger, which are whole numbers but for what is estimated.
function amount(me, value) {
    return typeof value === "number" ? money(BigInt(Math.round(value)), me.decimals) : "not known";
}

function entryLink(index) {
    return Number.isInteger(index) ? h("a", { href: `#/entry/${index}` }, `entry ${index}`) : "–";
}

// ---- evidence ----

function parties(me, check, evidence) {
    return table(
        `Paid and owed for the audited predictions, in ${me.currency}; between how much is lacking`,
        [
            [check === "groups" ? "Group" : "Provider", ""],
            ["Paid", "number"],
            ["Owed", "number"],
            ["Lacks, at least", "number"],
            ["Lacks, at most", "number"],
            ["Evidence", "number"],
            ["Alarm at", ""],
        ],
        evidence
            .slice(0, SHOWN)
            .map((one) => [
                one.name,
                amount(me, one.paid),
                amount(me, one.owed),
                amount(me, one.lacks_low),
                amount(me, one.lacks_high),
                `${number(one.e)} of ${number(one.needed)}`,
                entryLink(one.alarm_at),
            ]),
    );
}

function pairs(evidence) {
    return table(
        "What predictions of a customer pay a provider, and what those of the same label usually do",
        [
            ["Customer", ""],
            ["Provider", ""],
            ["Share", "number"],
            ["Usual share", "number"],
            ["Predictions", "number"],
            ["Alarm at", ""],
        ],
        evidence
            .slice(0, SHOWN)
            .map((one) => [
                String(one.customer),
                one.provider,
                percent(one.share),
                percent(one.usual),
                one.predictions.toLocaleString("en"),
                entryLink(one.alarm_at),
            ]),
    );
}

const FIGURES = {
    misallocated: ["Misallocated", percent],
    at_least: ["Misallocated at least", percent],
    level: ["Misallocated at fit time", percent],
    tolerance: ["Tolerance", percent],
    inside: ["Values inside the stated intervals", percent],
    stated: ["Stated", percent],
    least: ["Least that is in order", percent],
    mean_rank: ["Mean rank, 0.5 if inputs are as calibrated", number],
    fault: ["First fault", String],
};

function numbers([one]) {
    const rows = Object.entries(one ?? {}).map(([key, value]) => {
        const [title, write] = FIGURES[key] ?? [key, String];
        return [title, write(value)];
    });
    return table(
        "Figures",
        [
            ["Figure", ""],
            ["Value", ""],
        ],
        rows,
    );
}

function evidenceOf(me, { check, evidence }) {
    if (evidence.length === 0) return h("p", { class: "soft" }, "There is no evidence yet.");
    if (check === "provider" || check === "groups") return parties(me, check, evidence);
    return check === "self" ? pairs(evidence) : numbers(evidence);
}

function proof(report, { check, e, needed, predictions, alarm_at: at }) {
    if (check === "ledger")
        return report.verified_at
            ? `Verified ${time(report.verified_at)}.`
            : "Not verified since the server has started.";
    if (typeof e !== "number") return null;
    const alarm = Number.isInteger(at) ? h("span", {}, ", an alarm since ", entryLink(at)) : "";
    return [
        `Evidence ${number(e)}, an alarm from ${number(needed)} on; `,
        plural(predictions, "prediction"),
        alarm,
        ".",
    ];
}

function checkCard(me, report, check) {
    const mended = check.correction?.postings?.length
        ? h(
              "p",
              {},
              `A correction of ${plural(check.correction.postings.length, "posting")} `,
              "would mend it: fds audit --proposal writes it.",
          )
        : null;
    return card(
        checkName(check.check),
        lights([[stateOf(check), check.answer]]),
        h("p", { class: "soft" }, proof(report, check)),
        evidenceOf(me, check),
        mended,
    );
}

// ---- the page ----

function remark(report) {
    const share =
        report.audit_share > 0
            ? `${percent(report.audit_share)} of the predictions are answered by the sub-models too`
            : "No predictions are answered by the sub-models";
    const missed = report.missed ? `; ${report.missed.toLocaleString("en")} were missed` : "";
    const count = `${report.audited.toLocaleString("en")} of ${plural(report.predictions, "prediction")}`;
    return `${share}${missed}. ${count} audited.`;
}

export async function auditPage(me) {
    const report = await get("/api/audit");
    const place = h("div", {});
    const verify = button("Verify the ledger", () => run(), { class: "main" });
    function titleOf({ checks }) {
        const bad = checks.filter(({ verdict }) => verdict === "alarm").length;
        if (bad === 0) return "No check of the audit alarms";
        return `${plural(bad, "check")} of the audit ${bad === 1 ? "alarms" : "alarm"}`;
    }
    function show(found) {
        place.replaceChildren(
            card("Lights", checkLights(found), h("p", { class: "soft" }, remark(found)), verify),
            ...found.checks.map((check) => checkCard(me, found, check)),
        );
    }
    async function run() {
        verify.disabled = true;
        announce("The ledger is being verified.");
        try {
            const found = await get("/api/audit", { verify: "true" });
            show(found);
            document.querySelector("h1").textContent = titleOf(found);
            announce(found.checks[0].answer);
        } catch (error) {
            place.prepend(problem(error));
        }
        verify.disabled = false;
        verify.focus();
    }
    show(report);
    return { title: titleOf(report), node: [place] };
}
