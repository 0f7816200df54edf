// SPDX-License-Identifier: Apache-2.0
// Verify: fetches the receipt of an entry, checks it in this browser and shows each step. The
// server's word is not needed for anything but the public key of its log, which is compared with
// the one of the first visit, or is typed in.
import { getText, query } from "./api.js";
import { announce, button, field, form, h, problem } from "./dom.js";
import { priced } from "./format.js";
import { STEPS, verifyReceipt } from "./receipt.js";
import { Steps } from "./steps.js";

const KEPT = "fds-log-key";

// The server's key, and whether it is the one of the first visit.
export function logKey({ vkey }) {
    let kept = null;
    if (!vkey) throw new Error("There is no ledger.");
    try {
        kept = localStorage.getItem(KEPT);
        if (!kept) localStorage.setItem(KEPT, vkey);
    } catch {
        /* storage is off: there is nothing to compare with */
    }
    return { vkey, kept };
}

function changedKey({ vkey, kept }) {
    const accept = () => {
        localStorage.setItem(KEPT, vkey);
        remark.replaceWith(keyRemark({ vkey, kept: vkey }));
    };
    const remark = h(
        "div",
        { class: "problem", role: "alert" },
        h(
            "p",
            {},
            "The log’s key is not the one of your first visit. Either the operator has started ",
            "a new log, or somebody shows you another one. Ask before you trust it. The key was ",
            h("code", {}, kept),
            ".",
        ),
        button("Trust the new key", accept, { class: "small" }),
    );
    return remark;
}

export function keyRemark({ vkey, kept }) {
    if (kept && kept !== vkey) return changedKey({ vkey, kept });
    const words = kept
        ? "The log’s key is the one that this browser knows."
        : "The log’s key is kept in this browser, and compared from now on.";
    return h("p", { class: "soft" }, words);
}

function verdictText({ verdict, failed, receipt }, me) {
    if (verdict === "wrong") {
        const title = STEPS.find(([name]) => name === failed)[1];
        return `The receipt is wrong. The step that failed: ${title}.`;
    }
    const { account, units } = receipt.share;
    const what = `${priced(me, units)} for ${account} in entry ${receipt.index}`;
    return verdict === "right"
        ? `The receipt is right: ${what}.`
        : `All but the signature is right: ${what}. This browser cannot check Ed25519 ` +
              "signatures; a newer one can, and so can: fds ledger verify-receipt.";
}

// Runs the check and shows it in `place`.
async function show(place, text, vkey, expected, me) {
    const steps = new Steps(STEPS);
    place.replaceChildren(...steps.nodes);
    try {
        const result = await verifyReceipt(text, vkey, expected, (...step) => steps.tell(...step));
        steps.conclude(result.verdict, verdictText(result, me));
    } catch (error) {
        place.replaceChildren(problem(error));
    }
}

// The Verify button of an entry. `expected` is {index, account, units}.
export function verifyButton(me, expected) {
    return button("Verify", () => open(me, expected), {
        class: "small",
        "data-verify": expected.index,
        "aria-label": `Verify entry ${expected.index}`,
    });
}

async function open(me, expected) {
    const place = h("div", {}, h("p", {}, "Fetching the receipt …"));
    const id = "verify-title";
    const close = button("Close", () => dialog.close());
    const file = query("/api/receipt", { index: expected.index, account: expected.account });
    const dialog = h(
        "dialog",
        { "aria-labelledby": id, onclose: () => dialog.remove() },
        h("h2", { id }, `Verify entry ${expected.index}`),
        place,
        h(
            "p",
            { class: "row" },
            close,
            h(
                "a",
                { href: file, download: `receipt-${expected.index}.txt` },
                "Download the receipt",
            ),
        ),
    );
    document.body.append(dialog);
    dialog.showModal();
    close.focus();
    try {
        const key = logKey(me);
        await show(place, await getText(file), key.vkey, expected, me);
        place.append(keyRemark(key));
    } catch (error) {
        place.replaceChildren(problem(error));
    }
}

// A page that checks a receipt from a file, with a key from anywhere.
export async function verifyPage(me) {
    const key = logKey(me);
    const place = h("div", { class: "outcome" });
    const check = form(
        "A receipt from a file",
        [
            field("Receipt", "receipt", {
                type: "file",
                required: true,
                accept: ".txt,text/plain",
            }),
            field(
                "Public key of the log",
                "vkey",
                { tag: "textarea", rows: 2, required: true, spellcheck: "false", class: "code" },
                "For a strict check, paste the key from somewhere else than this server.",
            ),
        ],
        "Verify",
        async (values) => {
            await show(place, await values.receipt.text(), values.vkey, {}, me);
        },
    );
    check.querySelector("textarea").value = key.vkey;
    announce("");
    return {
        title: "Verify",
        node: [
            h(
                "p",
                { class: "lead" },
                "A receipt proves that your share is in the signed log. It is ",
                "checked here, in your browser; nothing is sent.",
            ),
            keyRemark(key),
            check,
            place,
        ],
    };
}
