// SPDX-License-Identifier: Apache-2.0
// Two small charts in SVG: earnings by day, and one prediction as the paper's figure. Bars have
// whiskers of one standard error. Colours come from style.css by class; every chart has its numbers
// as a table or a list beside it, so the picture itself is one image to screen readers.
import { h, svg } from "./dom.js";
import { day, labelled, money, moneyError, percent } from "./format.js";

// Only for positions in a picture, never for amounts that are shown.
function approximate(units, decimals) {
    return Number(units) / 10 ** decimals;
}

// A round step so that about `count` of them reach `most`.
function step(most, count) {
    const raw = most / count,
        power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
}

function ticks(most, count = 4) {
    const size = step(most, count),
        list = [];
    for (let i = 0; i * size <= most * 1.0001 || i < 2; i++) list.push(i * size);
    if (list.at(-1) < most) list.push(list.length * size);
    const places = Math.max(0, -Math.floor(Math.log10(size) + 1e-9));
    return list.map((value) => [value, value.toFixed(places)]);
}

function whisker(x, low, high, half) {
    return svg("path", {
        class: "whisker",
        d: `M${x} ${low}V${high}M${x - half} ${low}H${x + half}M${x - half} ${high}H${x + half}`,
    });
}

// Every day between the first and the last, at most the last 60.
function everyDay(days) {
    const all = [],
        names = [...days.keys()].sort();
    const last = Date.parse(`${names.at(-1)}T00:00:00Z`);
    const first = Math.max(Date.parse(`${names[0]}T00:00:00Z`), last - 59 * 86400e3);
    for (let at = first; at <= last; at += 86400e3) {
        const name = new Date(at).toISOString().slice(0, 10);
        all.push([name, days.get(name) ?? { units: 0n, error: 0 }]);
    }
    return all;
}

// days: Map of "2026-11-18" → {units, error or null in units}
export function earningsChart(days, currency, decimals) {
    const list = everyDay(days),
        H = 230,
        left = 52,
        bottom = 28,
        top = 12;
    const W = Math.max(280, Math.min(908, window.innerWidth - 62)); // a unit is about a pixel
    const values = list.map(([, { units, error }]) => ({
        value: approximate(units, decimals),
        error: error === null ? 0 : error / 10 ** decimals,
    }));
    const scale = ticks(Math.max(1e-9, ...values.map(({ value, error }) => value + error)));
    const most = scale.at(-1)[0],
        y = (value) => top + (H - top - bottom) * (1 - value / most);
    const slot = (W - left - 8) / list.length,
        width = Math.min(44, slot * 0.7);
    const every = Math.ceil((list.length * 64) / (W - left));
    const bars = list.map(([name], i) => {
        const { value, error } = values[i],
            x = left + slot * (i + 0.5),
            base = Math.max(0, value);
        return [
            svg("rect", {
                class: "bar",
                x: x - width / 2,
                y: y(base),
                width,
                height: Math.max(0, y(0) - y(base)),
                rx: Math.min(3, width / 4),
            }),
            error > 0
                ? whisker(
                      x,
                      y(Math.max(0, value - error)),
                      y(value + error),
                      Math.min(6, width / 3),
                  )
                : null,
            i % every === 0
                ? svg("text", { x, y: H - 8, "text-anchor": "middle" }, day(name))
                : null,
        ];
    });
    const sum = [...days.values()].reduce((total, { units }) => total + units, 0n);
    return svg(
        "svg",
        {
            class: "chart",
            viewBox: `0 0 ${W} ${H}`,
            role: "img",
            "aria-label":
                `Earnings by day, from ${day(list[0][0])} to ${day(list.at(-1)[0])}: ` +
                `${money(sum, decimals)} ${currency} together. The table below has the numbers.`,
        },
        scale.map(([value, text]) => [
            svg("line", { class: "grid", x1: left, x2: W - 8, y1: y(value), y2: y(value) }),
            svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, text),
        ]),
        bars,
    );
}

// The picture of an input: pixels from 0 to 255, on a canvas that scales without smoothing.
export function picture(pixels, width, height, label) {
    const canvas = h("canvas", {
        class: "pixels",
        width,
        height,
        role: "img",
        "aria-label": label,
    });
    const context = canvas.getContext("2d"),
        image = context.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
        image.data.fill(pixels[i], 4 * i, 4 * i + 3);
        image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    return canvas;
}

// One bar of the figure: picture, name, amount ± error, share.
function row(payee, most, total, decimals) {
    const W = 240,
        H = 18,
        { units, error } = payee;
    const x = (value) => Math.max(0, Math.min(W, (W * value) / most));
    const value = approximate(units, decimals),
        wide = error === null ? 0 : error / 10 ** decimals;
    const share = total > 0n ? Number((units * 1000000n) / total) / 1e6 : 0;
    const middle = H / 2;
    return h(
        "li",
        { class: payee.isRest ? "rest" : null },
        payee.picture
            ? h("img", { src: payee.picture, alt: "", class: "thumb" })
            : h("span", { class: "thumb none", "aria-hidden": "true" }),
        h("span", { class: "name" }, payee.name),
        svg(
            "svg",
            { viewBox: `0 0 ${W} ${H}`, "aria-hidden": "true", preserveAspectRatio: "none" },
            svg("rect", { class: "track", x: 0, y: 2, width: W, height: H - 4, rx: 3 }),
            payee.isRest
                ? null
                : svg("rect", { class: "bar", x: 0, y: 2, width: x(value), height: H - 4, rx: 3 }),
            wide > 0
                ? svg("path", {
                      class: "whisker",
                      "vector-effect": "non-scaling-stroke",
                      d:
                          `M${x(value - wide)} ${middle}H${x(value + wide)}` +
                          `M${x(value - wide)} 5V${H - 5}M${x(value + wide)} 5V${H - 5}`,
                  })
                : null,
        ),
        h("span", { class: "amount" }, moneyError(units, error, decimals)),
        h("small", {}, percent(share)),
    );
}

// For sorting: the largest amount first, equal ones in their order.
export function largestFirst(a, b) {
    return a.units < b.units ? 1 : a.units > b.units ? -1 : 0;
}

// One prediction: what was predicted at the left, the payees with the largest shares at the right.
// payees: [{name, units, error or null, picture?}]; input: an element or null.
export function predictionFigure(
    { label, confidence, input, payees, total, currency, decimals },
    shown = 10,
) {
    const sorted = [...payees].sort(largestFirst);
    const top = sorted.slice(0, shown),
        rest = sorted.slice(shown);
    const most = Math.max(
        1e-9,
        ...top.map(({ units, error }) => (1.01 * (Number(units) + (error ?? 0))) / 10 ** decimals),
    );
    if (rest.length)
        top.push({
            name: `${rest.length} others together`,
            error: null,
            isRest: true,
            units: rest.reduce((sum, { units }) => sum + units, 0n),
        });
    return h(
        "figure",
        { class: "prediction" },
        h(
            "div",
            { class: "input" },
            input ?? h("p", { class: "glyph", "aria-hidden": "true" }, label),
            h(
                "p",
                {},
                "Predicted: ",
                h("b", {}, labelled(label)),
                confidence === undefined || confidence === null
                    ? null
                    : h("small", {}, `probability ${percent(confidence)}`),
            ),
        ),
        h(
            "ol",
            { class: "payees" },
            top.map((payee) => row(payee, most, total, decimals)),
        ),
        h(
            "figcaption",
            {},
            `Who was paid for this prediction, in ${currency}, the largest shares first. `,
            "Whiskers are one standard error.",
        ),
    );
}
