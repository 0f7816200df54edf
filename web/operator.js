// SPDX-License-Identifier: Apache-2.0
// An operator: whether all is in order, who has what, and the forms that move money. Payouts and
// corrections are proposals until a second operator agrees.
import { get, keeper, post, query } from "./api.js";
import { alarmText, checkLights } from "./checks.js";
import { button, card, done, field, figures, form, h, lights, table } from "./dom.js";
import { entriesTable, kindName } from "./entries.js";
import { duration, money, plain, plural, priced, time, units } from "./format.js";
import { earningsCard, samplesCard, statementForm } from "./provider.js";

// ---- overview ----

function moneyCard(me, sums) {
    const owed = [
        ["Customers’ balances", sums.customers],
        ["Owed to providers", sums.providers],
        ["Fees", sums.fees],
    ];
    return card(
        "Money",
        h("p", {}, "What came in is what went out and what is still held."),
        table(
            "Money in and money out",
            [
                ["What", ""],
                [me.currency, "number"],
            ],
            [
                ["Came in", sums.in],
                ["Paid out", sums.out],
                ...owed,
                ["Difference", sums.difference],
            ].map(([name, amount]) => [name, money(units(amount, me.decimals), me.decimals)]),
        ),
    );
}

function waiting(proposals) {
    return plural(proposals.length, "proposal waits", "proposals wait");
}

function statesOf(me, view, proposals) {
    const difference = units(view.money.difference, me.decimals);
    return [
        difference === 0n
            ? ["good", "Money in equals money out", "The difference is 0."]
            : [
                  "bad",
                  "Money in does not equal money out",
                  `The difference is ${priced(me, view.money.difference)}.`,
              ],
        view.checkpoint
            ? ["good", "The log is signed", plural(view.entries, "entry", "entries")]
            : ["bad", "The log has no signed checkpoint"],
        view.failures === 0
            ? ["good", "No request has failed"]
            : ["wait", `${plural(view.failures, "request")} failed`, "The server’s log has why."],
        view.models.length
            ? [
                  "good",
                  `${plural(view.models.length, "model")} served`,
                  view.models.map((model) => model.name ?? model).join(", "),
              ]
            : ["wait", "No model is served"],
        proposals.length === 0
            ? ["good", "No proposal waits"]
            : ["wait", `${waiting(proposals)} for a second operator`],
    ];
}

function milliseconds(value) {
    return typeof value === "number" ? `${value.toFixed(value < 10 ? 1 : 0)} ms` : "–";
}

// The answer first: whether the books balance, and whether the audit alarms.
function titleOf(isGood, alarms) {
    const books = isGood ? "The books balance" : "The books do not balance";
    return alarms ? `${books}; ${alarms}` : books;
}

export async function home(me) {
    const [view, { proposals }, report] = await Promise.all([
        get("/api/overview"),
        get("/api/proposals"),
        get("/api/audit"),
    ]);
    const states = statesOf(me, view, proposals);
    const isGood = states.every(([state]) => state !== "bad");
    const refresh = button("Refresh", null, { "data-refresh": true });
    return {
        title: titleOf(isGood, alarmText(report)),
        node: [
            figures([
                [
                    "Requests per second",
                    Number(view.requests_per_s ?? 0).toFixed(1),
                    `up for ${duration(view.uptime_s)}`,
                ],
                [
                    "Time to answer, median",
                    milliseconds(view.p50_ms),
                    `99 % within ${milliseconds(view.p99_ms)}`,
                ],
                [
                    "Predictions paid",
                    Number(view.paid).toLocaleString("en"),
                    plural(view.entries, "entry", "entries"),
                ],
            ]),
            card("Lights", lights(states), refresh),
            card(
                "Audit",
                checkLights(report),
                h("p", {}, h("a", { href: "#/audit" }, "Each check with its evidence")),
            ),
            moneyCard(me, view.money),
            card("Newest entries", entriesTable(me, null)),
        ],
    };
}

// ---- accounts ----

// Only providers earn.
function accountsTable(me, caption, accounts, isEarning = false) {
    const columns = [
        ["Account", ""],
        ["Balance", "number"],
    ];
    if (isEarning) columns.push(["Earned", "number"], ["Predictions", "number"]);
    const amount = (value) => money(units(value, me.decimals), me.decimals);
    const rows = accounts.map(({ name, balance, earned, predictions }) => {
        const link = h("a", { href: `#/account/${encodeURIComponent(name)}` }, name);
        const own = [link, amount(balance)];
        return isEarning ? [...own, amount(earned), predictions.toLocaleString("en")] : own;
    });
    return table(caption, columns, rows);
}

export async function accountsPage(me) {
    const { accounts } = await get("/api/accounts");
    const of = (kind) => accounts.filter((account) => account.kind === kind);
    const [providers, customers] = [of("provider"), of("customer")];
    const cash = "Cash is what came in minus what was paid out, as a negative number";
    return {
        title: `${plural(providers.length, "provider")}, ${plural(customers.length, "customer")}`,
        node: [
            card(
                "Providers",
                accountsTable(me, `What is owed, in ${me.currency}`, providers, true),
            ),
            card("Customers", accountsTable(me, `What is left, in ${me.currency}`, customers)),
            card("Platform", accountsTable(me, cash, of("platform"))),
        ],
    };
}

export async function accountPage(me, name) {
    const [account, samples] = await Promise.all([
        get("/api/account", { name }),
        get("/api/samples", { account: name }).then(
            (found) => found.samples,
            () => [],
        ),
    ]);
    const isProvider = account.kind === "provider";
    return {
        title: `${name} has ${priced(me, account.balance)}`,
        node: [
            h("p", { class: "soft" }, `Kind of account: ${account.kind}`),
            isProvider ? earningsCard(me, account) : null,
            isProvider && samples.length ? samplesCard(samples) : null,
            card("Entries", entriesTable(me, name, { canVerify: true })),
            statementForm(name),
        ],
    };
}

// ---- forms ----

function amountField(me, label, name, more = {}) {
    return field(
        label,
        name,
        {
            required: true,
            inputmode: "decimal",
            pattern: "-?[0-9]+(\\.[0-9]+)?",
            autocomplete: "off",
            ...more,
        },
        `In ${me.currency}, for example 50.00`,
    );
}

// In the server's form, with all decimals; a mistake is named before anything is sent.
function exact(me, text) {
    return plain(units(text, me.decimals), me.decimals);
}

function topupForm(me) {
    const once = keeper(); // sent twice by mistake, it pays once
    return form(
        "Top up a customer",
        [
            field("Customer", "account", { required: true, autocomplete: "off" }),
            amountField(me, "Amount", "amount"),
            field(
                "Reference",
                "ref",
                { autocomplete: "off" },
                "For example the number of the invoice",
            ),
            h(
                "div",
                { class: "field check" },
                h("input", { type: "checkbox", id: "topup-new", name: "new" }),
                h("label", { for: "topup-new" }, "This is a new customer"),
            ),
        ],
        "Top up",
        async (values, element) => {
            const body = {
                account: values.account,
                amount: exact(me, values.amount),
                ref: values.ref,
                new: values.new === "on",
            };
            const { index } = await post("/api/topup", { ...body, key: once.keyOf(body) });
            once.answered();
            element.reset();
            return done(
                `${values.account} has paid in ${priced(me, body.amount)}: `,
                h("a", { href: `#/entry/${index}` }, `entry ${index}`),
                ".",
            );
        },
    );
}

function payoutForm(me) {
    const once = keeper();
    return form(
        "Propose payouts",
        [
            h(
                "p",
                {},
                "Pays providers what they are owed, in whole cents. A second operator must agree.",
            ),
            amountField(me, "Smallest payout", "minimum", { value: "1.00" }),
            field(
                "Reference",
                "ref",
                { required: true, autocomplete: "off" },
                "For example the month: 2026-11",
            ),
        ],
        "Propose",
        async ({ minimum, ref }) => {
            const body = { minimum: exact(me, minimum), ref };
            const { proposal, payouts } = await post("/api/payout", { ...body, key: once.keyOf(body) });
            once.answered();
            return h(
                "div",
                {},
                done(
                    `Proposal ${proposal}: ${plural(payouts.length, "payout")}. `,
                    "A second operator must agree.",
                ),
                payoutsTable(me, payouts),
            );
        },
    );
}

function payoutsTable(me, payouts) {
    return table(
        "Payouts",
        [
            ["Account", ""],
            [me.currency, "number"],
        ],
        payouts.map(({ account, amount }) => [
            account,
            money(units(amount, me.decimals), me.decimals),
        ]),
    );
}

function payoutFileForm() {
    return form(
        "Payout file",
        [
            h("p", {}, "The payouts that were agreed to under a reference, as CSV, for your bank."),
            field("Reference", "ref", { required: true, autocomplete: "off" }),
        ],
        "Download the payout file",
        async ({ ref }) => {
            const link = h("a", {
                href: query("/api/payouts", { ref }),
                download: `payouts-${ref}.csv`,
            });
            document.body.append(link);
            link.click();
            link.remove();
        },
    );
}

// "north 0.50" per line
function readPostings(me, text) {
    const postings = text
        .split("\n")
        .filter((line) => line.trim())
        .map((line) => {
            const found = /^\s*(.+?)\s+(\S+)\s*$/.exec(line);
            if (!found) throw new Error(`“${line}” must be an account and an amount.`);
            return { account: found[1], amount: exact(me, found[2]) };
        });
    const sum = postings.reduce((total, { amount }) => total + units(amount, me.decimals), 0n);
    if (postings.length < 2 || sum !== 0n)
        throw new Error(`The amounts must sum to 0; they sum to ${money(sum, me.decimals)}.`);
    return postings;
}

function correctionForm(me) {
    const once = keeper();
    return form(
        "Propose a correction",
        [
            h(
                "p",
                {},
                "Entries never change: a correction is a new one. A second operator must agree.",
            ),
            field("Entry to correct", "of", { type: "number", min: 0, required: true }),
            field(
                "Postings",
                "postings",
                { tag: "textarea", rows: 3, required: true, class: "code" },
                "One line each: account and amount, as in: north -0.50. The amounts sum to 0.",
            ),
            field("Reason", "reason", { required: true, autocomplete: "off" }),
        ],
        "Propose",
        async ({ of, postings, reason }) => {
            const body = { of: Number(of), postings: readPostings(me, postings), reason };
            const { proposal } = await post("/api/correct", { ...body, key: once.keyOf(body) });
            once.answered();
            return done(`Proposal ${proposal}. A second operator must agree.`);
        },
    );
}

export async function moneyPage(me) {
    return {
        title: "Move money",
        node: [topupForm(me), payoutForm(me), payoutFileForm(), correctionForm(me)],
    };
}

// ---- proposals ----

function whatOf(me, { kind, what }) {
    const list = what.payouts ?? what.postings ?? [];
    return [
        table(
            kind === "payout" ? "Payouts" : "Postings",
            [
                ["Account", ""],
                [me.currency, "number"],
            ],
            list.map(({ account, amount, units: u }) => [
                account,
                money(units(amount ?? u, me.decimals), me.decimals),
            ]),
            "No postings.",
        ),
        what.of === undefined
            ? null
            : h(
                  "p",
                  {},
                  "Corrects ",
                  h("a", { href: `#/entry/${what.of}` }, `entry ${what.of}`),
                  ".",
              ),
        what.reason ? h("p", {}, `Reason: ${what.reason}`) : null,
        what.ref ? h("p", {}, `Reference: ${what.ref}`) : null,
    ];
}

function proposalCard(me, proposal, canDecide) {
    const outcome = h("div", { class: "outcome" });
    const isOwn = me.account === proposal.by;
    const buttons = h("p", { class: "row" });
    async function decide(path, say) {
        for (const button of buttons.children) button.disabled = true;
        try {
            const answer = await post(path, { id: proposal.id });
            buttons.remove();
            outcome.replaceChildren(done(say(answer)));
        } catch (error) {
            outcome.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
            for (const button of buttons.children) button.disabled = false;
        }
    }
    const name = `${kindName(proposal.kind === "correct" ? "correction" : proposal.kind)}`;
    const agree = () =>
        decide("/api/proposals/agree", ({ indexes }) => {
            return `Agreed: ${plural(indexes.length, "entry", "entries")} written.`;
        });
    const refuse = () => decide("/api/proposals/refuse", () => "Refused.");
    const id = `proposal ${proposal.id}`;
    if (canDecide && !isOwn)
        buttons.append(button("Agree", agree, { class: "main", "aria-label": `Agree to ${id}` }));
    if (canDecide) buttons.append(button("Refuse", refuse, { "aria-label": `Refuse ${id}` }));
    return card(
        `${name}, proposal ${proposal.id}`,
        h("p", {}, `By ${proposal.by}, ${time(proposal.at)}.`),
        whatOf(me, proposal),
        isOwn && canDecide
            ? h("p", { class: "soft" }, "You proposed this. Another operator must agree.")
            : null,
        buttons,
        outcome,
    );
}

export async function proposalsPage(me) {
    const { proposals } = await get("/api/proposals");
    const title = proposals.length ? waiting(proposals) : "No proposal waits";
    return {
        title,
        node: [
            h(
                "p",
                { class: "lead" },
                "Payouts and corrections are carried out once a second operator agrees.",
            ),
            proposals.map((proposal) => proposalCard(me, proposal, me.role === "operator")),
        ],
    };
}
