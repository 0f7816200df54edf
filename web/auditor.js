// SPDX-License-Identifier: Apache-2.0
// An auditor: the checkpoint, the log's key, and everything computed again in the browser.
import { get } from "./api.js";
import { AUDIT_STEPS, Bad, recompute } from "./audit.js";
import { announce, card, h, problem } from "./dom.js";
import { plural } from "./format.js";
import { keyRemark, logKey } from "./verify.js";

function stepItem([name, title]) {
    const sign = h("span", { class: "sign", "aria-hidden": "true" }, "·");
    const state = h("span", { class: "quiet" }, "Not reached: "),
        remark = h("small");
    const bar = h("progress", { max: 1, value: 0, "aria-label": title });
    const item = h(
        "li",
        { class: "waiting", "data-step": name },
        sign,
        h("span", {}, state, title, remark),
    );
    item.progress = (done, of) => {
        if (!bar.isConnected) item.lastChild.append(bar);
        bar.max = Math.max(1, of);
        bar.value = done;
        remark.textContent = `${done.toLocaleString("en")} of ${plural(of, "entry", "entries")}`;
    };
    item.tell = (what, word, mark, text) => {
        bar.remove();
        item.className = what;
        sign.textContent = mark;
        state.textContent = `${word}: `;
        remark.textContent = text;
    };
    return item;
}

function runCard(me, vkey) {
    const place = h("div", { class: "outcome" });
    const start = h(
        "button",
        { type: "button", class: "main", onclick: () => run() },
        "Recompute everything",
    );
    async function run() {
        const items = Object.fromEntries(AUDIT_STEPS.map((step) => [step[0], stepItem(step)]));
        const verdict = h("p", { class: "verdict", role: "status" }, "Computing …");
        place.replaceChildren(verdict, h("ol", { class: "lights steps" }, Object.values(items)));
        start.disabled = true;
        try {
            const { size, accounts, isChecked } = await recompute(
                vkey,
                me.decimals,
                (step, count, of) => items[step].progress(count, of),
                (step, remark, isDone) =>
                    items[step].tell(
                        isDone ? "done" : "unknown",
                        isDone ? "Passed" : "Not checked",
                        isDone ? "✓" : "?",
                        remark,
                    ),
            );
            verdict.className = `verdict ${isChecked ? "right" : "unsigned"}`;
            verdict.textContent =
                `All is right: ${plural(size, "entry", "entries")}, ` +
                `${plural(accounts, "account")}.` +
                (isChecked
                    ? ""
                    : " Only the signature is not checked: this browser has no Ed25519.");
        } catch (error) {
            if (error instanceof Bad) {
                items[error.step].tell("failed", "Failed", "✗", error.message);
                verdict.className = "verdict wrong";
                verdict.textContent =
                    error.index === null
                        ? "The ledger is wrong."
                        : `The ledger is wrong. The first bad entry is ${error.index}.`;
                if (error.index !== null)
                    place.append(
                        h(
                            "p",
                            {},
                            h(
                                "a",
                                { href: `#/entry/${error.index}` },
                                `Look at entry ${error.index}`,
                            ),
                        ),
                    );
            } else {
                place.replaceChildren(problem(error));
            }
        }
        start.disabled = false;
    }
    return card(
        "Recompute everything",
        h(
            "p",
            {},
            "Your browser fetches the whole log, hashes every entry, compares the root with the ",
            "signed one, and adds up all postings.",
        ),
        start,
        place,
    );
}

export async function home(me) {
    const [view, key] = await Promise.all([get("/api/overview"), logKey(me)]);
    const lines = String(view.checkpoint ?? "").split("\n");
    announce("");
    return {
        title: `The log has ${plural(view.entries, "entry", "entries")}`,
        node: [
            runCard(me, view.vkey),
            card("The log’s key", h("pre", {}, h("code", {}, view.vkey)), keyRemark(key)),
            card(
                "The newest checkpoint",
                h("p", {}, "Signed by the log. Keep a copy: a later log must contain this one."),
                h(
                    "pre",
                    { tabindex: "0", "aria-label": "Checkpoint" },
                    h("code", {}, lines.join("\n").trimEnd()),
                ),
            ),
        ],
    };
}
