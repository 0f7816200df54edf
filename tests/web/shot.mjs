// SPDX-License-Identifier: Apache-2.0
// A picture of the page of a server that runs, as one who has logged in sees it: those of docs/pictures.
//   node shot.mjs --modules build-web --base URL --name NAME --password WORD [--link TEXT]
//                 [--width 1000] [--height 0: the whole page] --output FILE.png
import { parseArgs } from "node:util";
import { Browser } from "./browser.mjs";

const { values: options } = parseArgs({
    options: {
        modules: { type: "string" },
        base: { type: "string" },
        name: { type: "string" },
        password: { type: "string" },
        link: { type: "string" }, // of the navigation
        width: { type: "string", default: "1000" },
        height: { type: "string", default: "0" },
        output: { type: "string" },
        chromium: { type: "string", default: "/usr/bin/chromium" },
    },
});
const width = Number(options.width),
    height = Number(options.height);
const browser = new Browser(options.base, options.modules, options.chromium);
await browser.start();
try {
    await browser.visit(
        "light",
        async (visit, page) => {
            visit.allow(/401/); // before the login
            await visit.login(options);
            await visit.heading(/^(?!Log in$)/);
            if (options.link) await visit.go(options.link, /./);
            await page.waitForLoadState("networkidle");
            await page.screenshot({
                path: options.output,
                ...(height ? { clip: { x: 0, y: 0, width, height } } : { fullPage: true }),
            });
        },
        { viewport: { width, height: height || 900 } },
    );
} finally {
    await browser.stop();
}
