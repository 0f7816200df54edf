// SPDX-License-Identifier: Apache-2.0
// A customer: draws a digit, pays, gets the label, and sees to whom the money falls.
import { freshKey, get, post } from "./api.js";
import { picture } from "./chart.js";
import { announce, button, card, field, h, problem, svg } from "./dom.js";
import { board } from "./draw.js";
import { entriesTable } from "./entries.js";
import { labelled, money, percent, plural, priced, units } from "./format.js";

const SHOWN = 10;

function balanceLine(me, balance) {
    return `Your balance is ${priced(me, balance)}`;
}

// A part of the money, rounded: the ledger has the exact amounts.
function partText(me, total, share) {
    const part = (total * BigInt(Math.round(share * 1e12))) / 1000000000000n;
    return money(part, me.decimals, Math.min(4, me.decimals));
}

function bar(part) {
    return svg(
        "svg",
        { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { class: "track", width: 100, height: 10 }),
        svg("rect", { class: "bar", width: Math.max(0, 100 * part), height: 10 }),
    );
}

function probabilities(classes, list) {
    const sorted = list
        .map((part, i) => [classes[i] ?? String(i), part])
        .sort((a, b) => b[1] - a[1]);
    return h(
        "ol",
        { class: "bars" },
        sorted
            .slice(0, SHOWN)
            .map(([name, part]) =>
                h(
                    "li",
                    {},
                    h("span", { class: "name" }, name),
                    bar(part),
                    h("span", {}, percent(part)),
                ),
            ),
    );
}

function fallingShares(me, payees, shares, total) {
    const sorted = payees
        .map((name, i) => ({ name, share: shares[i] }))
        .sort((a, b) => b.share - a.share);
    const top = sorted.slice(0, SHOWN).filter(({ share }) => share >= 0.0005);
    const rest = sorted.slice(top.length);
    const most = top[0]?.share || 1;
    const list = h(
        "ol",
        { class: "bars falling" },
        top.map(({ name, share }, i) => {
            const item = h(
                "li",
                {},
                h("span", { class: "name" }, name),
                bar(share / most),
                h("span", {}, `${partText(me, total, share)} `, h("small", {}, percent(share))),
            );
            item.style.setProperty("--turn", i); // style.css makes it wait
            return item;
        }),
    );
    const others = rest.reduce((sum, { share }) => sum + share, 0);
    return [
        list,
        rest.length
            ? h(
                  "p",
                  { class: "soft" },
                  `${plural(rest.length, "other payee")} together: ` +
                      `${partText(me, total, others)} ${me.currency} (${percent(others)}).`,
              )
            : null,
    ];
}

function readAnswer(answer) {
    return Object.fromEntries(answer.outputs.map(({ name, data }) => [name, data]));
}

async function result(me, model, answer, input) {
    const { label, prediction, probabilities: parts, shares, payees, receipt } = readAnswer(answer);
    const entry = await get("/api/entry", { index: receipt[0] });
    const amount = units(entry.amount, me.decimals),
        fee = units(entry.fee, me.decimals);
    const said = label ? `It is ${labelled(label[0])}` : `It is ${prediction[0]}`;
    const heading = h("h2", { tabindex: "-1" }, `${said}.`);
    const paid = `You paid ${priced(me, amount)}.`;
    announce(`${said}. ${paid}`);
    return {
        heading,
        node: h(
            "section",
            { class: "card result", "aria-label": "Answer" },
            h(
                "div",
                { class: "answer" },
                input,
                h(
                    "div",
                    {},
                    heading,
                    h(
                        "p",
                        {},
                        `${paid} ${priced(me, amount - fee)} go to those whose data `,
                        `taught the model, ${priced(me, fee)} to the platform. `,
                        `Entry ${receipt[0]}.`,
                    ),
                ),
            ),
            h(
                "div",
                { class: "columns" },
                parts
                    ? h(
                          "div",
                          {},
                          h("h3", {}, "How sure it is"),
                          probabilities(model.classes, parts),
                      )
                    : null,
                h(
                    "div",
                    {},
                    h("h3", {}, "Where your money goes"),
                    fallingShares(me, payees, shares, amount - fee),
                ),
            ),
        ),
    };
}

// A sample of the model from a drawing, or from numbers that were typed in.
function inputOf(model) {
    const [channels, height, width] = model.shape;
    if (height * width > 1) {
        const drawing = board(() => announce(""));
        return {
            node: drawing.node,
            read() {
                const pixels = drawing.sample(width, height);
                if (!pixels) throw new Error("Draw something first, or take an example.");
                return {
                    tensor: {
                        name: "input",
                        shape: [1, channels, height, width],
                        datatype: "UINT8",
                        data: Array.from({ length: channels }, () => pixels).flat(),
                    },
                    picture: picture(pixels, width, height, "What the model saw"),
                };
            },
        };
    }
    const node = field(
        `${channels} numbers`,
        "numbers",
        { tag: "textarea", rows: 4, required: true },
        "Apart by blanks or commas.",
    );
    return {
        node,
        read() {
            const words = node
                .querySelector("textarea")
                .value.trim()
                .split(/[\s,]+/);
            if (words.length !== channels || words.some((word) => !Number.isFinite(Number(word))))
                throw new Error(`The model needs ${channels} numbers.`);
            return {
                tensor: {
                    name: "input",
                    shape: [1, channels],
                    datatype: "FP64",
                    data: words.map(Number),
                },
                picture: null,
            };
        },
    };
}

// No more than is shown: an answer under a key has a limit.
function outputsOf(model) {
    const kind = model.classes?.length ? ["label", "probabilities"] : ["prediction"];
    return [...kind, "shares", "payees", "receipt"].map((name) => ({ name }));
}

function predictCard(me, model, onPaid) {
    const input = inputOf(model),
        outcome = h("div", { class: "outcome" });
    const price = units(me.price, me.decimals);
    const words = price > 0n ? `Pay ${priced(me, price)} and ask` : "Ask";
    const pay = button(words, () => buy(), { class: "main" });
    let kept = null; // the payment under way: the same key if it is sent again
    async function buy() {
        pay.disabled = true;
        try {
            const { tensor, picture: seen } = input.read();
            const body = JSON.stringify(tensor);
            if (kept?.body !== body) kept = { body, key: freshKey() };
            const answer = await post(
                `/api/models/${encodeURIComponent(`${model.name}.explain`)}/infer`,
                { inputs: [tensor], outputs: outputsOf(model) },
                { "Idempotency-Key": kept.key },
            );
            const { heading, node } = await result(me, model, answer, seen);
            kept = null; // until it is shown, asking again repeats the answer
            outcome.replaceChildren(node);
            heading.focus();
            onPaid();
        } catch (error) {
            outcome.replaceChildren(problem(error));
        }
        pay.disabled = false;
    }
    return [card(`Ask ${model.name}`, input.node, h("p", {}, pay)), outcome];
}

export async function home(me) {
    const { balance } = await get("/api/account");
    const models = me.models.filter(({ name }) => !name.endsWith(".explain"));
    const place = h("div"),
        entries = h("div");
    const showEntries = () =>
        entries.replaceChildren(
            card(
                "Your entries",
                entriesTable(me, me.account, { caption: "What you paid, newest first" }),
            ),
        );
    const choose = (model) =>
        place.replaceChildren(
            ...predictCard(me, model, async () => {
                const { balance: left } = await get("/api/account");
                document.querySelector("h1").textContent = balanceLine(
                    me,
                    units(left, me.decimals),
                );
                showEntries();
            }),
        );
    let picker = null;
    if (models.length > 1) {
        picker = field("Model", "model", { tag: "select" });
        const select = picker.querySelector("select");
        select.append(...models.map(({ name }) => h("option", { value: name }, name)));
        select.addEventListener("change", () => choose(models[select.selectedIndex]));
    }
    if (models.length) choose(models[0]);
    else place.append(h("p", {}, "No model is served."));
    showEntries();
    return { title: balanceLine(me, balance), node: [picker, place, entries] };
}
