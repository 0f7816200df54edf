// SPDX-License-Identifier: Apache-2.0
// What audits say: a light for each check, with its evidence.
import { get, post } from "./api.js";
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
    return typeof value === "number" ? `${(100 * value).toFixed(1)}\u00a0%` : "not known";
}

// Units of the ledger, which are whole numbers but for what is estimated.
function amount(me, value) {
    const shown = (units) => money(BigInt(Math.round(units)), me.decimals, me.decimals);
    return typeof value === "number" ? shown(value) : "not known";
}

// Of what a party lacks: there is none if the difference changes in the course of time.
function bound(me, value) {
    return typeof value === "number" ? amount(me, value) : "it changes";
}

function entryLink(index) {
    return Number.isInteger(index) ? h("a", { href: `#/entry/${index}` }, `entry ${index}`) : "–";
}

// ---- evidence ----

function parties(me, check, evidence) {
    return table(
        `Paid and owed for the audited predictions, in ${me.currency}. The limits hold at all times, ` +
            "so they are wider than the test needs: it may alarm while they still contain 0.",
        [
            [check === "groups" ? "Group" : "Provider", ""],
            ["Alarm at", ""],
            ["Paid", "number"],
            ["Owed", "number"],
            ["Lacks, at least", "number"],
            ["Lacks, at most", "number"],
            ["Evidence", "number"],
        ],
        evidence
            .slice(0, SHOWN)
            .map((one) => [
                one.name,
                entryLink(one.alarm_at),
                amount(me, one.paid),
                amount(me, one.owed),
                bound(me, one.lacks_low),
                bound(me, one.lacks_high),
                `${number(one.e)} of ${number(one.needed)}`,
            ]),
    );
}

function pairs(evidence) {
    return table(
        "What predictions of a customer pay a provider, and what those of the same label usually do",
        [
            ["Customer", ""],
            ["Provider", ""],
            ["Alarm at", ""],
            ["Share", "number"],
            ["Usual share", "number"],
            ["Predictions", "number"],
        ],
        evidence
            .slice(0, SHOWN)
            .map((one) => [
                String(one.customer),
                one.provider,
                entryLink(one.alarm_at),
                percent(one.share),
                percent(one.usual),
                one.predictions.toLocaleString("en"),
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
            ["Value", "long"],
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
    const waiting = report.waiting ? `, ${report.waiting.toLocaleString("en")} wait for it` : "";
    const count = `${report.audited.toLocaleString("en")} of ${plural(report.predictions, "prediction")}`;
    return `${share}${missed}. ${count} audited${waiting}.`;
}

// What the server says of a verification that runs.
const STAGES = {
    copy: "Copying the ledger",
    verify: "Computing it again",
    secrets: "Checking the audited days",
};
const POLL_MS = 500;

function progressText({ stage, done, total }) {
    const part = total > 0 ? `: ${Math.floor((100 * done) / total)} %` : "";
    return `${STAGES[stage] ?? "Verifying"}${part}`;
}

// How many checks alarm, as a sentence; empty if none does.
export function alarmText({ checks }) {
    const bad = checks.filter(({ verdict }) => verdict === "alarm").length;
    if (bad === 0) return "";
    return `${plural(bad, "check")} of the audit ${bad === 1 ? "alarms" : "alarm"}`;
}

function titleOf(found) {
    return alarmText(found) || "No check of the audit alarms";
}

class AuditPage {
    constructor(me) {
        this.me = me;
        this.place = h("div", {});
        this.verify = button("Verify the ledger", () => this.run(), { class: "main" });
        this.cancel = button("Cancel", () => this.stop());
        this.bar = h("progress", { max: 1, value: 0, "aria-label": "Verification" });
        this.stage = h("span", {});
        this.running = h("div", {}, h("p", { class: "soft" }, this.stage, this.bar), this.cancel);
        this.trouble = h("div", {});
    }

    show(found) {
        this.place.replaceChildren(
            card(
                "Lights",
                checkLights(found),
                h("p", { class: "soft" }, remark(found)),
                this.trouble,
                this.verify,
                this.running,
            ),
            ...found.checks.map((check) => checkCard(this.me, found, check)),
        );
        this.tell(found);
    }

    // Where a verification is. Predictions are answered meanwhile.
    tell({ verifying }) {
        this.verify.hidden = Boolean(verifying);
        this.running.hidden = !verifying;
        this.stage.textContent = verifying ? progressText(verifying) : "";
        this.bar.max = Math.max(1, verifying?.total ?? 1);
        this.bar.value = verifying?.done ?? 0;
    }

    // Asks until it is over, or somebody looks at another page.
    async follow() {
        let found;
        do {
            await new Promise((resolve) => setTimeout(resolve, POLL_MS));
            if (!this.place.isConnected) return;
            found = await get("/api/audit");
            this.tell(found);
        } while (found.verifying);
        this.show(found);
        document.querySelector("h1").textContent = titleOf(found);
        if (found.verify_error) this.complain(new Error(found.verify_error));
        else announce(found.checks[0].answer);
        this.verify.focus();
    }

    complain(error) {
        this.trouble.replaceChildren(problem(error));
    }

    async run() {
        this.trouble.replaceChildren();
        announce("The ledger is being verified.");
        try {
            this.tell(await post("/api/audit/verify", {}));
            this.cancel.focus();
            await this.follow();
        } catch (error) {
            this.tell({ verifying: null });
            this.complain(error);
        }
    }

    async stop() {
        try {
            await post("/api/audit/cancel", {});
        } catch (error) {
            this.complain(error);
        }
    }
}

export async function auditPage(me) {
    const report = await get("/api/audit");
    const page = new AuditPage(me);
    page.show(report);
    // once the page is there
    if (report.verifying) setTimeout(() => page.follow().catch((error) => page.complain(error)));
    return { title: titleOf(report), node: [page.place] };
}
