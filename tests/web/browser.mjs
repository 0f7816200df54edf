// SPDX-License-Identifier: Apache-2.0
// Chromium for the tests of the page, and what must hold on every page: no complaint of axe, of the
// console or of the content security policy, no request to another origin.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

export const LOOKS = {
    light: { colorScheme: "light", viewport: { width: 1200, height: 900 } },
    dark: { colorScheme: "dark", viewport: { width: 1200, height: 900 } },
    phone: { colorScheme: "light", viewport: { width: 360, height: 740 }, hasTouch: true },
};

export class Browser {
    // modules: the folder that has node_modules; shots: a folder for pictures, or none
    constructor(base, modules, chromium, shots) {
        Object.assign(this, { base, chromium, shots });
        const require = createRequire(path.join(path.resolve(modules), "package.json"));
        this.playwright = require("playwright-core");
        this.axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf-8");
    }

    async start() {
        this.browser = await this.playwright.chromium.launch({
            executablePath: this.chromium,
            args: FLAGS,
        });
    }

    async stop() {
        await this.browser.close();
    }

    // Runs act(visit) on a fresh profile; fails if anything was complained about.
    async visit(look, act, options = {}) {
        const context = await this.browser.newContext({
            ...LOOKS[look],
            reducedMotion: "reduce",
            acceptDownloads: true,
            ...options,
        });
        const page = await context.newPage();
        const visit = new Visit(this, look, page);
        await visit.prepare();
        try {
            await act(visit, page);
        } catch (error) {
            const text = await page
                .locator("main")
                .innerText()
                .catch(() => "");
            const more = [`at ${page.url()}`, ...visit.complaints, text.slice(0, 500)];
            error.stack += `\n${more.join("\n")}`;
            throw error;
        } finally {
            await context.close();
        }
        assert.deepEqual(visit.complaints, []);
    }
}

class Visit {
    complaints = [];

    constructor(browser, look, page) {
        Object.assign(this, { browser, look, page });
    }

    // A status of 400 or more is told on the console; tests that expect it say so.
    allow(pattern) {
        this.allowed = pattern;
    }

    complain(text) {
        if (!this.allowed?.test(text)) this.complaints.push(text);
    }

    async prepare() {
        const { page, browser } = this,
            origin = new URL(browser.base).origin;
        page.setDefaultTimeout(20000);
        page.on("console", (message) => {
            if (["error", "warning"].includes(message.type()))
                this.complain(`console: ${message.text()} ${message.location().url}`);
        });
        page.on("pageerror", (error) => this.complain(`error: ${error.stack}`));
        page.on("request", (request) => {
            const url = new URL(request.url());
            if (url.origin !== origin && !["data:", "blob:"].includes(url.protocol))
                this.complain(`request: ${request.url()}`);
        });
        await page.exposeFunction("reportPolicy", (text) => this.complain(`policy: ${text}`));
        await page.addInitScript(() =>
            document.addEventListener("securitypolicyviolation", (event) =>
                window.reportPolicy(
                    `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`,
                ),
            ),
        );
    }

    // Waits until a page with this heading is there.
    async heading(pattern) {
        await this.page.getByRole("heading", { level: 1, name: pattern }).waitFor();
    }

    async login({ name, password }) {
        const { page, browser } = this;
        await page.goto(browser.base);
        await page.getByLabel("Name").fill(name);
        await page.getByLabel("Password").fill(password);
        await page.getByRole("button", { name: "Log in" }).click();
        await page.getByRole("button", { name: "Log out" }).waitFor();
    }

    async go(link, pattern) {
        await this.page
            .getByRole("navigation")
            .getByRole("link", { name: link, exact: true })
            .click();
        await this.heading(pattern);
    }

    // axe finds nothing, the page is not wider than the window; takes a picture if asked to.
    async check(name) {
        const { page, browser } = this;
        await page.waitForLoadState("networkidle");
        if (browser.shots)
            await page.screenshot({
                path: path.join(browser.shots, `${name}-${this.look}.png`),
                fullPage: true,
            });
        const wide = await page.evaluate(
            () => document.documentElement.scrollWidth - window.innerWidth,
        );
        assert(wide <= 0, `${name}: ${wide} pixels too wide`);
        await page.evaluate(browser.axe);
        const { violations } = await page.evaluate(() =>
            window.axe.run(document, {
                runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
            }),
        );
        const found = violations.map(
            ({ id, nodes }) =>
                `${id}: ${nodes
                    .map(({ html, failureSummary }) => `${html} ${failureSummary}`)
                    .join("; ")}`,
        );
        assert.deepEqual(found, [], name);
    }
}
