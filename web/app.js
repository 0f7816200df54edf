// SPDX-License-Identifier: Apache-2.0
// The page: who is logged in, which pages the role has, and the one that the address names.
import { get, post, setToken, whenSessionEnds } from "./api.js";
import * as auditor from "./auditor.js";
import { auditPage } from "./checks.js";
import * as customer from "./customer.js";
import { announce, button, field, form, h, problem } from "./dom.js";
import { entriesTable, entryPage } from "./entries.js";
import * as operator from "./operator.js";
import * as provider from "./provider.js";
import { verifyPage } from "./verify.js";

const allEntries = async (me) => ({ title: "Entries", node: [entriesTable(me, null)] });

// Pages by role and name: [title in the menu or null, async (me, argument) → {title, node}]
const everything = {
    audit: ["Checks", auditPage],
    accounts: ["Accounts", operator.accountsPage],
    entries: ["Entries", allEntries],
    proposals: ["Proposals", operator.proposalsPage],
    verify: ["Verify", verifyPage],
    account: [null, operator.accountPage],
    entry: [null, entryPage],
};
const PAGES = {
    provider: { "": ["Earnings", provider.home], verify: ["Verify", verifyPage] },
    customer: { "": ["Ask", customer.home] },
    operator: {
        "": ["Overview", operator.home],
        money: ["Move money", operator.moneyPage],
        ...everything,
    },
    auditor: { "": ["Audit", auditor.home], ...everything },
};

const main = document.getElementById("main");
let me = null,
    notice = "";

function loginPage() {
    const name = field("Name", "name", {
        required: true,
        autocomplete: "username",
        autocapitalize: "none",
    });
    const password = field("Password", "password", {
        type: "password",
        required: true,
        autocomplete: "current-password",
    });
    const login = form("Your login", [name, password], "Log in", async (values) => {
        await enter(await post("/api/login", values));
        await show(); // the page that was asked for, if the role has it
    });
    login.className = "card login";
    return {
        title: "Log in",
        node: [
            notice ? h("p", { class: "problem", role: "alert" }, notice) : null,
            h(
                "p",
                { class: "lead" },
                "See what predictions cost, who is paid for them, and check it yourself.",
            ),
            login,
        ],
    };
}

async function enter(found) {
    me = found;
    notice = "";
    setToken(me.role === "nobody" ? null : me.token);
}

async function leave() {
    try {
        await post("/api/logout", {});
    } catch {
        /* the session was gone already */
    }
    await enter({ role: "nobody" });
    history.replaceState(null, "", "#/");
    await show();
    announce("You are logged out.");
}

function menu(current) {
    const pages = PAGES[me.role] ?? {};
    document.getElementById("nav").replaceChildren(
        h(
            "ul",
            {},
            Object.entries(pages)
                .filter(([, [title]]) => title)
                .map(([name, [title]]) =>
                    h(
                        "li",
                        {},
                        h(
                            "a",
                            { href: `#/${name}`, "aria-current": name === current ? "page" : null },
                            title,
                        ),
                    ),
                ),
        ),
    );
    document.getElementById("nav").hidden = me.role === "nobody";
    document
        .getElementById("who")
        .replaceChildren(
            ...(me.role === "nobody"
                ? []
                : [
                      h("span", {}, h("b", {}, me.name), h("small", {}, me.role)),
                      button("Log out", leave, { class: "small" }),
                  ]),
        );
}

let turn = 0; // a page that is overtaken by another is not shown

async function show() {
    const mine = ++turn;
    const [name, argument] = location.hash.replace(/^#\/?/, "").split("/", 2);
    const pages = me.role === "nobody" ? { "": [null, loginPage] } : (PAGES[me.role] ?? {});
    const page = pages[name] ?? pages[""];
    menu(name);
    for (const dialog of document.querySelectorAll("dialog")) dialog.close();
    main.setAttribute("aria-busy", "true");
    let found;
    try {
        found = page
            ? await page[1](me, argument === undefined ? undefined : decodeURIComponent(argument))
            : {
                  title: "Nothing to see",
                  node: [h("p", {}, `There is no page for the role ${me.role}.`)],
              };
    } catch (error) {
        if (mine !== turn) return;
        found = { title: "This did not work", node: [problem(error)] };
    }
    if (mine !== turn) return;
    const heading = h("h1", { tabindex: "-1" }, found.title);
    main.replaceChildren(heading, ...[found.node].flat(Infinity).filter(Boolean));
    main.removeAttribute("aria-busy");
    main.querySelector("[data-refresh]")?.addEventListener("click", () => show());
    document.title = `${found.title} – fds`;
    window.scrollTo(0, 0);
    if (mine > 1) heading.focus({ preventScroll: true }); // not when the page has just been opened
}

window.addEventListener("hashchange", () => show());
document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the hash is the address of a page
    main.focus();
});
whenSessionEnds(async () => {
    await enter({ role: "nobody" });
    notice = "Your session has ended. Log in again.";
    show();
});

try {
    await enter(await get("/api/me"));
} catch (error) {
    await enter({ role: "nobody" });
    notice = error.message;
}
await show();
