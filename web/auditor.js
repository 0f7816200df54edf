// SPDX-License-Identifier: Apache-2.0
// An auditor: the checkpoint, the log's key, and everything computed again in the browser.
import { get } from "./api.js";
import { AUDIT_STEPS, Bad, recompute } from "./audit.js";
import { checkLights } from "./checks.js";
import { announce, button, card, h, problem } from "./dom.js";
import { plural } from "./format.js";
import { Steps } from "./steps.js";
import { keyRemark, logKey } from "./verify.js";

function allRight({ size, accounts, isChecked }) {
    const counts = `${plural(size, "entry", "entries")}, ${plural(accounts, "account")}`;
    return isChecked
        ? `All is right: ${counts}.`
        : `All is right but the signature, which this browser cannot check: ${counts}.`;
}

function runCard(me, vkey) {
    const place = h("div", { class: "outcome" });
    const start = button("Recompute everything", () => run(), { class: "main" });
    async function run() {
        const steps = new Steps(AUDIT_STEPS);
        place.replaceChildren(...steps.nodes);
        start.disabled = true;
        try {
            const result = await recompute(vkey, me.decimals, steps);
            steps.conclude(result.isChecked ? "right" : "unsigned", allRight(result));
        } catch (error) {
            if (error instanceof Bad) explain(error, steps);
            else place.replaceChildren(problem(error));
        }
        start.disabled = false;
    }
    function explain({ step, message, index }, steps) {
        const which = index === null ? "" : ` The first bad entry is ${index}.`;
        steps.tell(step, "failed", message);
        steps.conclude("wrong", `The ledger is wrong.${which}`);
        if (index !== null)
            place.append(
                h("p", {}, h("a", { href: `#/entry/${index}` }, `Look at entry ${index}`)),
            );
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
    const [view, report] = await Promise.all([get("/api/overview"), get("/api/audit")]);
    const key = logKey(me);
    const lines = String(view.checkpoint ?? "").split("\n");
    announce("");
    return {
        title: `The log has ${plural(view.entries, "entry", "entries")}`,
        node: [
            card(
                "Checks",
                checkLights(report),
                h("p", {}, h("a", { href: "#/audit" }, "Each check with its evidence")),
            ),
            runCard(me, key.vkey),
            card("The log’s key", h("pre", {}, h("code", {}, key.vkey)), keyRemark(key)),
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
