// SPDX-License-Identifier: Apache-2.0
// The page as people use it, in Chromium: each role's way in light, in dark and on a phone.
//   node test_page.mjs --modules FOLDER [--chromium FILE] [--base URL --logins JSON]
//                      [--shots FOLDER]
// Without --base it starts mock.mjs. Logins: {"customer": {"name", "password", "account"},
// "provider", "operator", "second", "auditor"}; the provider has earned something. Prints TAP.
import assert from "node:assert/strict";
import fs from "node:fs";
import { parseArgs } from "node:util";
import { Browser, LOOKS } from "./browser.mjs";
import { LOGINS, Mock } from "./mock.mjs";
import { run, test } from "./tap.mjs";

const { values: options } = parseArgs({
    options: {
        modules: { type: "string" },
        base: { type: "string" },
        logins: { type: "string" },
        shots: { type: "string" },
        chromium: { type: "string", default: "/usr/bin/chromium" },
    },
});
const mock = options.base ? null : new Mock();
const browser = new Browser(
    options.base ?? (await mock.start()),
    options.modules,
    options.chromium,
    options.shots,
);
const logins = options.logins ? JSON.parse(options.logins) : LOGINS;
const NUMBER = "[\\d,.]+";

if (options.shots) fs.mkdirSync(options.shots, { recursive: true });

// The text of a file that a click downloads.
async function download(page, button) {
    const [file] = await Promise.all([page.waitForEvent("download"), button.click()]);
    return fs.readFileSync(await file.path(), "utf-8");
}

async function verdict(page, pattern) {
    const place = page.locator(".verdict");
    await place.filter({ hasText: pattern }).waitFor();
    return page
        .locator(".steps li")
        .evaluateAll((items) =>
            Object.fromEntries(items.map((item) => [item.dataset.step, item.className])),
        );
}

const PASSED = {
    file: "done",
    key: "done",
    signature: "done",
    log: "done",
    share: "done",
    shown: "done",
};

for (const look of Object.keys(LOOKS)) {
    test(`nobody sees a login, ${look}`, () =>
        browser.visit(look, async (visit, page) => {
            visit.allow(/401/);
            await page.goto(browser.base);
            await visit.heading("Log in");
            await visit.check("login");
            await page.getByLabel("Name").fill("nobody");
            await page.getByLabel("Password").fill("wrong");
            await page.getByRole("button", { name: "Log in" }).click();
            await page
                .getByRole("alert")
                .filter({ hasText: "Name or password is wrong" })
                .waitFor();
            await visit.check("login-wrong");
        }));

    test(`a customer draws, pays and sees where the money goes, ${look}`, () =>
        browser.visit(look, async (visit, page) => {
            await visit.login(logins.customer);
            await visit.heading(/^Your balance is/);
            const before = await page.locator("h1").textContent();
            await visit.check("customer");
            const box = await page.locator("canvas.board").boundingBox();
            await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.2);
            await page.mouse.down();
            for (const [x, y] of [
                [0.7, 0.2],
                [0.55, 0.5],
                [0.45, 0.85],
            ])
                await page.mouse.move(box.x + box.width * x, box.y + box.height * y, { steps: 8 });
            await page.mouse.up();
            await page.getByRole("button", { name: /^Pay .* and ask$/ }).click();
            await page.getByRole("heading", { name: /^It is an? \d\.$/ }).waitFor();
            assert((await page.locator(".falling li").count()) >= 2);
            await page.waitForFunction(
                (text) => document.querySelector("h1").textContent !== text,
                before,
            );
            await page
                .getByRole("cell", { name: /^for an? \d$/ })
                .first()
                .waitFor();
            await visit.check("customer-paid");
            await page.getByRole("button", { name: "Clear", exact: true }).click();
            await page.getByRole("button", { name: /^Pay .* and ask$/ }).click();
            await page.getByRole("alert").filter({ hasText: "Draw something first" }).waitFor();
        }));

    test(`a provider sees its earnings and verifies one, ${look}`, () =>
        browser.visit(look, async (visit, page) => {
            await visit.login(logins.provider);
            await visit.heading(/^You are owed/);
            await page.getByRole("img", { name: /^Earnings by day/ }).waitFor();
            await page
                .locator(".earned li")
                .filter({ hasText: new RegExp(`${NUMBER} ±\\s${NUMBER} for an? \\d`) })
                .first()
                .waitFor();
            await page.locator("[data-verify]").first().waitFor();
            await visit.check("provider");
            await page.locator("[data-verify]").first().click();
            assert.deepEqual(await verdict(page, "The receipt is right"), PASSED);
            await visit.check("provider-verify");
            const receipt = await download(
                page,
                page.getByRole("link", { name: "Download the receipt" }),
            );
            assert(receipt.startsWith("c2sp.org/tlog-proof@v1\n"));
            await page.keyboard.press("Escape");
            await page.locator("dialog").waitFor({ state: "detached" });
            const statement = await download(
                page,
                page.getByRole("button", { name: "Download the statement" }),
            );
            assert.match(statement, /^date,entry,kind,/);
            await visit.go("Verify", "Verify");
            await page.getByLabel("Receipt", { exact: true }).setInputFiles({
                name: "r.txt",
                mimeType: "text/plain",
                buffer: Buffer.from(receipt),
            });
            await page.getByRole("button", { name: "Verify" }).click();
            await verdict(page, "The receipt is right");
            await visit.check("provider-file");
        }));

    test(`an operator sees the books and looks at a prediction, ${look}`, () =>
        browser.visit(look, async (visit, page) => {
            await visit.login(logins.operator);
            const alarms = mock ? "; 1 check of the audit alarms$" : "";
            await visit.heading(new RegExp(`^The books balance${alarms}`));
            const difference = page.getByRole("row", { name: /^Difference/ });
            assert.match(await difference.textContent(), /Difference0\.00$/);
            await page
                .getByRole("link", { name: /^Entry \d+$/ })
                .first()
                .waitFor();
            await visit.check("operator");
            await visit.go("Accounts", /providers?, \d+ customers?$/);
            await visit.check("operator-accounts");
            await page
                .getByRole("link", {
                    name: logins.provider.account,
                    exact: true,
                })
                .click();
            await visit.heading(/ has [\d,.−]+ /);
            await page.locator("[data-verify]").first().waitFor();
            await visit.check("operator-account");
            await visit.go("Entries", "Entries");
            await page
                .getByRole("row", { name: /Prediction/ })
                .first()
                .getByRole("link")
                .click();
            await visit.heading(/^Entry \d+$/);
            await page.locator("figure.prediction .payees li").first().waitFor();
            await visit.check("operator-entry");
        }));

    test(`money moves when two operators agree, ${look}`, () =>
        browser.visit(look, async (visit, page) => {
            await visit.login(logins.operator);
            await visit.go("Move money", "Move money");
            await visit.check("operator-money");
            const top = page.getByRole("form", { name: "Top up a customer" });
            await top.getByLabel("Customer", { exact: true }).fill(`shop ${look}`);
            await top.getByLabel("Amount").fill("25.00");
            await top.getByLabel("This is a new customer").check();
            await top.getByRole("button", { name: "Top up" }).click();
            await top.getByText(`shop ${look} has paid in 25.00`).waitFor();
            const payout = page.getByRole("form", { name: "Propose payouts" });
            await payout.getByLabel("Smallest payout").fill("0.01");
            await payout.getByLabel("Reference").fill(`ref-${look}`);
            await payout.getByRole("button", { name: "Propose" }).click();
            await payout.getByText(/^Proposal \d+: /).waitFor();
            const correct = page.getByRole("form", { name: "Propose a correction" });
            await correct.getByLabel("Entry to correct").fill("20");
            await correct.getByLabel("Postings").fill("fees -0.01\ncash 0.02");
            await correct.getByLabel("Reason").fill("a test");
            await correct.getByRole("button", { name: "Propose" }).click();
            await correct.getByText("The amounts must sum to 0; they sum to 0.01.").waitFor();
            await correct.getByLabel("Postings").fill("fees -0.01\ncash 0.01");
            await correct.getByRole("button", { name: "Propose" }).click();
            await correct.getByText(/^Proposal \d+\. A second operator must agree/).waitFor();
            await visit.check("operator-proposed");
            await visit.go("Proposals", /proposals wait/);
            assert.equal(await page.getByRole("button", { name: /^Agree/ }).count(), 0);
            await page.getByRole("button", { name: "Log out" }).click();
            await visit.heading("Log in");
            await visit.login(logins.second);
            await visit.go("Proposals", /proposals wait/);
            await visit.check("operator-proposals");
            await page
                .getByRole("region", { name: /^Payout/ })
                .getByRole("button", { name: /^Agree/ })
                .click();
            await page
                .locator(".done")
                .filter({ hasText: /^Agreed: \d+ entr(y|ies) written\.$/ })
                .waitFor();
            await page
                .getByRole("region", { name: /^Correction/ })
                .getByRole("button", { name: /^Refuse/ })
                .click();
            await page.locator(".done").filter({ hasText: "Refused." }).waitFor();
            await visit.go("Move money", "Move money");
            const file = page.getByRole("form", { name: "Payout file" });
            await file.getByLabel("Reference").fill(`ref-${look}`);
            assert.match(await download(page, file.getByRole("button")), /^date,/);
            await visit.go("Overview", /^The books balance/);
        }));

    test(`an auditor sees each check with its evidence, ${look}`, () =>
        browser.visit(look, async (visit, page) => {
            await visit.login(logins.auditor);
            await visit.go("Checks", /of the audit alarm|^No check of the audit alarms$/);
            const first = page.getByRole("region", { name: "The ledger" });
            await page.getByRole("button", { name: "Verify the ledger" }).click();
            await first.getByText(/^Verified .*\.$/).waitFor();
            assert.match(await first.locator("li").innerText(), /^✓\s*In order:\s+The ledger is right/);
            assert.equal(await page.locator(".lights").first().locator("li").count(), 7);
            await visit.check("checks");
        }));

    test(`a verification shows how far it is, and can be cancelled, ${look}`, () =>
        browser.visit(look, async (visit, page) => {
            let isCancelled = false;
            await visit.login(logins.auditor);
            await visit.go("Checks", /of the audit alarm|^No check of the audit alarms$/);
            await page.route("**/api/audit", async (route) => {
                const response = await route.fetch();
                const verifying = isCancelled ? null : { stage: "verify", done: 70, total: 100 };
                const more = { verifying, verify_error: isCancelled ? "cancelled" : null };
                await route.fulfill({ response, json: { ...(await response.json()), ...more } });
            });
            await page.route("**/api/audit/cancel", (route) => {
                isCancelled = true;
                return route.continue();
            });
            await page.getByRole("button", { name: "Verify the ledger" }).click();
            await page.getByText("Computing it again: 70 %").waitFor();
            await visit.check("checks-verifying");
            await page.getByRole("button", { name: "Cancel" }).click();
            await page.getByText(/^cancelled/i).waitFor();
            assert.ok(await page.getByRole("button", { name: "Verify the ledger" }).isVisible());
            assert.ok(!(await page.getByRole("button", { name: "Cancel" }).isVisible()));
        }));

    test(`an auditor recomputes everything, ${look}`, () =>
        browser.visit(look, async (visit, page) => {
            await visit.login(logins.auditor);
            await visit.heading(/^The log has \d+ entries$/);
            await visit.check("auditor");
            await page.getByRole("button", { name: "Recompute everything" }).click();
            assert.deepEqual(await verdict(page, /^All is right: \d+ entries, \d+ accounts\.$/), {
                checkpoint: "done",
                log: "done",
                entries: "done",
                balances: "done",
            });
            await visit.check("auditor-done");
            await visit.go("Proposals", /proposal/);
            assert.equal(await page.getByRole("button", { name: /^(Agree|Refuse)/ }).count(), 0);
        }));
}

// ---- what must be found ----

// Changes what the server answers at addresses that match.
async function tamper(page, pattern, change) {
    await page.route(pattern, async (route) => {
        const response = await route.fetch();
        await route.fulfill({
            response,
            body: change(await response.body(), route.request().url()),
        });
    });
}

function changeExtra(body, change) {
    return body.toString().replace(/extra (\S+)/, (_, extra) => {
        const text = change(Buffer.from(extra, "base64").toString());
        return `extra ${Buffer.from(text).toString("base64")}`;
    });
}

const FORGERIES = {
    file: (body) => body.toString().replace("tlog-proof@v1", "tlog-proof@v2"),
    signature: (body) =>
        body
            .toString()
            .replace(
                /— (\S+) (\S{20})(.)/,
                (_, name, head, letter) => `— ${name} ${head}${letter === "A" ? "B" : "A"}`,
            ),
    log: (body) => changeExtra(body, (extra) => extra.replace(/\nlabel .*/, "\nlabel forged")),
    share: (body) =>
        changeExtra(body, (extra) => extra.replace(/\nunits (-?)\d+/, "\nunits $1123456")),
};

for (const [step, change] of Object.entries(FORGERIES))
    test(`a forged receipt is refused: ${step}`, () =>
        browser.visit("light", async (visit, page) => {
            await visit.login(logins.provider);
            await tamper(page, "**/api/receipt*", change);
            await page
                .getByRole("row", { name: /for an? \d/ })
                .first()
                .getByRole("button")
                .click();
            const steps = await verdict(page, "The receipt is wrong. The step that failed:");
            assert.equal(steps[step], "failed");
            assert.deepEqual(
                Object.keys(steps).filter((name) => steps[name] === "failed"),
                [step],
            );
            if (step === "share") await visit.check("provider-forged");
        }));

test("a page that shows another amount than the receipt is caught", () =>
    browser.visit("light", async (visit, page) => {
        await visit.login(logins.provider);
        await tamper(page, "**/api/entries*", (body) => {
            const answer = JSON.parse(body);
            for (const { postings } of answer.entries)
                for (const posting of postings) posting.units += 1000;
            return JSON.stringify(answer);
        });
        await page.reload();
        await page.locator("[data-verify]").first().click();
        assert.equal((await verdict(page, "The receipt is wrong")).shown, "failed");
    }));

test("a browser without Ed25519 says so and checks the rest", () =>
    browser.visit("light", async (visit, page) => {
        await page.addInitScript(() => {
            crypto.subtle.importKey = () =>
                Promise.reject(new DOMException("no", "NotSupportedError"));
        });
        await visit.login(logins.provider);
        await page.locator("[data-verify]").first().click();
        assert.deepEqual(await verdict(page, "All but the signature is right"), {
            ...PASSED,
            signature: "unknown",
        });
        await visit.check("provider-unsigned");
    }));

test("a browser without cryptography says what to do", () =>
    browser.visit("light", async (visit, page) => {
        await page.addInitScript(() =>
            Object.defineProperty(crypto, "subtle", { value: undefined }),
        );
        await visit.login(logins.auditor);
        await page.getByRole("button", { name: "Recompute everything" }).click();
        await page.getByRole("alert").filter({ hasText: "Open the page over https" }).waitFor();
    }));

test("a key that changed since the first visit is told", () =>
    browser.visit("light", async (visit, page) => {
        await visit.login(logins.provider);
        await page.evaluate(() =>
            localStorage.setItem("fds-log-key", "other.example+00000000+AAAA"),
        );
        await page.locator("[data-verify]").first().click();
        await page
            .getByRole("alert")
            .filter({ hasText: "not the one of your first visit" })
            .waitFor();
        await page.getByRole("button", { name: "Trust the new key" }).click();
        await page.getByText("the one that this browser knows").waitFor();
    }));

async function audit(visit, page, pattern, change) {
    await visit.login(logins.auditor);
    await tamper(page, pattern, change);
    await page.getByRole("button", { name: "Recompute everything" }).click();
    return verdict(page, "The ledger is wrong");
}

test("an audit names the first entry that the log has changed", () =>
    browser.visit("light", async (visit, page) => {
        const steps = await audit(visit, page, "**/log/tile/entries/**", (body) =>
            Buffer.from(body.toString("latin1").replace("index 17\n", "index 71\n"), "latin1"),
        );
        assert.deepEqual(steps, {
            checkpoint: "done",
            log: "failed",
            entries: "waiting",
            balances: "waiting",
        });
        await page.getByText("The first bad entry is 17.").waitFor();
        await visit.check("auditor-wrong");
    }));

test("an audit names the first entry whose postings do not sum to 0", () =>
    browser.visit("light", async (visit, page) => {
        let first = Infinity;
        const steps = await audit(visit, page, "**/api/entries*", (body) => {
            const answer = JSON.parse(body);
            for (const { index, postings } of answer.entries)
                if (postings.length > 2 && index % 7 === 3) {
                    postings[1].units += 1;
                    first = Math.min(first, index);
                }
            return JSON.stringify(answer);
        });
        assert.equal(steps.entries, "failed");
        await page.getByText(`The first bad entry is ${first}.`).waitFor();
    }));

test("an audit finds a balance that is not the sum of its entries", () =>
    browser.visit("light", async (visit, page) => {
        const steps = await audit(visit, page, "**/api/accounts*", (body) => {
            const answer = JSON.parse(body);
            answer.accounts.find(({ kind }) => kind === "provider").balance = "999.000000";
            return JSON.stringify(answer);
        });
        assert.equal(steps.balances, "failed");
        await page.getByText(/is said to be 999\.000000/).waitFor();
    }));

test("an audit finds a checkpoint that another key has signed", () =>
    browser.visit("light", async (visit, page) => {
        const steps = await audit(visit, page, "**/log/checkpoint", FORGERIES.signature);
        assert.equal(steps.checkpoint, "failed");
    }));

// ---- keyboards, readers, sessions ----

test("everything is reached by keyboard, and the focus follows the page", () =>
    browser.visit("light", async (visit, page) => {
        const focused = () =>
            page.evaluate(() => document.activeElement.textContent || document.activeElement.name);
        await page.goto(browser.base);
        await visit.heading("Log in");
        await page.keyboard.press("Tab");
        assert.equal(await focused(), "Skip to the content");
        await page.keyboard.press("Enter");
        assert.equal(await page.evaluate(() => document.activeElement.id), "main");
        await page.keyboard.press("Tab");
        await page.keyboard.type(logins.customer.name);
        await page.keyboard.press("Tab");
        await page.keyboard.type(logins.customer.password);
        await page.keyboard.press("Enter");
        await visit.heading(/^Your balance is/);
        assert.match(await focused(), /^Your balance is/);
        await page.getByRole("button", { name: "Draw an example of 6" }).focus();
        await page.keyboard.press("Space");
        await page.getByRole("button", { name: /^Pay/ }).focus();
        await page.keyboard.press("Enter");
        await page.getByRole("heading", { name: /^It is an? \d\.$/ }).waitFor();
        assert.match(await focused(), /^It is/);
        assert.match(await page.getByRole("status").first().textContent(), /You paid/);
    }));

test("a payment that got no answer is sent again under the same key", () =>
    browser.visit("light", async (visit, page) => {
        const keys = [];
        visit.allow(/ERR_FAILED/);
        await visit.login(logins.customer);
        await page.route("**/infer", async (route) => {
            keys.push(route.request().headers()["idempotency-key"]);
            if (keys.length > 1) return route.continue();
            await route.fetch(); // paid, but the answer is lost
            return route.abort();
        });
        await page.getByRole("button", { name: "Draw an example of 3" }).click();
        const pay = page.getByRole("button", { name: /^Pay/ });
        await pay.click();
        await page.getByRole("alert").filter({ hasText: "cannot be reached" }).waitFor();
        await pay.click();
        await page.getByRole("heading", { name: /^It is an? \d\.$/ }).waitFor();
        assert.equal(keys.length, 2);
        assert.equal(keys[0], keys[1]);
        await pay.click();
        await page.waitForFunction(() => !document.querySelector("button.main").disabled);
        assert.notEqual(keys[2], keys[0]);
    }));

test("shares fall, but not for those who want no motion", async () => {
    for (const [motion, expected] of [
        ["no-preference", "fall"],
        ["reduce", "none"],
    ])
        await browser.visit(
            "light",
            async (visit, page) => {
                await visit.login(logins.customer);
                await page.getByRole("button", { name: "Draw an example of 2" }).click();
                await page.getByRole("button", { name: /^Pay/ }).click();
                const name = await page
                    .locator(".falling li")
                    .first()
                    .evaluate((item) => getComputedStyle(item).animationName);
                assert.equal(name, expected);
            },
            { reducedMotion: motion },
        );
});

test("a session that ended leads to the login", () =>
    browser.visit("light", async (visit, page) => {
        visit.allow(/401/);
        await visit.login(logins.operator);
        await visit.heading(/^The books balance/);
        await page.context().clearCookies();
        await page.getByRole("button", { name: "Refresh" }).click();
        await page.getByRole("alert").filter({ hasText: "Your session has ended" }).waitFor();
        await visit.heading("Log in");
    }));

test("older entries are shown on demand", () =>
    browser.visit("light", async (visit, page) => {
        await visit.login(logins.auditor);
        await visit.go("Entries", "Entries");
        const rows = page.locator("tbody tr");
        await rows.first().waitFor();
        const before = await rows.count();
        await page.getByRole("button", { name: "Show older entries" }).click();
        await page.waitForFunction(
            (count) => document.querySelectorAll("tbody tr").length > count,
            before,
        );
    }));

if (mock)
    test("a model of numbers takes numbers", () =>
        browser.visit("phone", async (visit, page) => {
            await visit.login(logins.customer);
            await page.getByLabel("Model").selectOption("houses");
            const pay = page.getByRole("button", { name: /^Pay/ });
            await page.getByLabel("3 numbers").fill("1.5, 2");
            await pay.click();
            await page.getByRole("alert").filter({ hasText: "needs 3 numbers" }).waitFor();
            await page.getByLabel("3 numbers").fill("1.5, 2 -1");
            await pay.click();
            await page.getByRole("heading", { name: "It is 2.5." }).waitFor();
            await visit.check("customer-numbers");
        }));

test("going back closes what is open and shows the page before", () =>
    browser.visit("light", async (visit, page) => {
        await visit.login(logins.auditor);
        await visit.go("Accounts", /providers?, /);
        await page.getByRole("link", { name: logins.provider.account, exact: true }).click();
        await visit.heading(/ has /);
        await page.locator("[data-verify]").first().click();
        await verdict(page, "The receipt is right");
        await page.goBack();
        await visit.heading(/providers?, /);
        assert.equal(await page.locator("dialog").count(), 0);
        assert.match(await page.title(), /providers?, .* – fds$/);
    }));

await browser.start();
process.exitCode = await run();
await browser.stop();
mock?.stop();
