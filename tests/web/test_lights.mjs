// SPDX-License-Identifier: Apache-2.0
// One light of the auditor's page is red, and its evidence is there; so on the operator's overview.
//   node test_lights.mjs --modules FOLDER --chromium FILE --base URL --logins JSON --check NAME
//                        [--shots FOLDER]
// Prints TAP.
import assert from "node:assert/strict";
import fs from "node:fs";
import { parseArgs } from "node:util";
import { Browser, LOOKS } from "./browser.mjs";
import { run, test } from "./tap.mjs";

const { values: options } = parseArgs({
    options: {
        modules: { type: "string" },
        base: { type: "string" },
        logins: { type: "string" },
        check: { type: "string" },
        shots: { type: "string" },
        chromium: { type: "string", default: "/usr/bin/chromium" },
    },
});
const browser = new Browser(options.base, options.modules, options.chromium, options.shots);
const logins = JSON.parse(options.logins);
if (options.shots) fs.mkdirSync(options.shots, { recursive: true });

// What the light is called, what it says, and what its evidence has.
const WANTED = {
    ledger: ["The ledger", /The ledger is not right: .*entry \d+/, /First fault/],
    truth: ["The explainer", /misallocates more than at fit time/, /Misallocated at fit time/],
    provider: ["Providers", /is paid wrongly|are paid wrongly/, /entry \d+/],
    coverage: ["Standard errors", /intervals are too narrow/, /Values inside/],
    groups: ["Groups", /is paid wrongly|are paid wrongly/, /entry \d+/],
    drift: ["Inputs", /Inputs are unlike those/, /Mean rank/],
    self: ["Customers", /may feed a provider of their own, first of all mallory/, /entry \d+/],
};
const [name, sentence, evidence] = WANTED[options.check];

for (const look of Object.keys(LOOKS))
    test(`the light ${options.check} is red, ${look}`, () =>
        browser.visit(look, async (visit, page) => {
            await visit.login(logins.auditor);
            await visit.go("Checks", /of the audit alarm/);
            if (options.check === "ledger") {
                await page.getByRole("button", { name: "Verify the ledger" }).click();
                await page.getByText(/^Verified/).waitFor();
            }
            const place = page.getByRole("region", { name, exact: true });
            const light = place.locator("li.bad");
            assert.match(await light.innerText(), sentence);
            assert.match(await light.innerText(), /Wrong:\s/);
            assert.match(await place.getByRole("table").innerText(), evidence);
            await visit.check(`light-${options.check}`);
        }));

test(`the operator sees that ${options.check} is red`, () =>
    browser.visit("light", async (visit, page) => {
        await visit.login(logins.operator);
        await visit.heading(/^The books balance; \d checks? of the audit alarms?$/);
        const place = page.getByRole("region", { name: "Audit", exact: true });
        await place.locator("li.bad").filter({ hasText: name }).first().waitFor();
        await visit.check(`operator-${options.check}`);
    }));

await browser.start();
process.exitCode = await run();
await browser.stop();
