// SPDX-License-Identifier: Apache-2.0
// Elements, tables, forms and messages. Texts always become text nodes, never HTML.

const SVG = "http://www.w3.org/2000/svg";

// Sets properties that start with "on" as listeners, all others as attributes; skips null.
function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(
        ...children.flat(Infinity).filter((child) => child !== null && child !== undefined),
    );
    return element;
}

export function h(name, attributes, ...children) {
    return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
}

// Announces a sentence to screen readers, wherever the focus is.
export function announce(text) {
    document.getElementById("status").textContent = text;
}

export function problem(error) {
    return h("p", { class: "problem", role: "alert" }, error.message ?? String(error));
}

// A table: columns are [title, "number" or ""], rows are lists of cells. The first cell of a row is
// its header. Narrow screens scroll the table, not the page.
export function table(caption, columns, rows, empty = "Nothing yet.") {
    if (rows.length === 0) return h("p", { class: "soft" }, empty);
    const cell = (content, i) =>
        i === 0
            ? h("th", { scope: "row" }, content)
            : h("td", { class: columns[i][1] || null }, content);
    const id = `table-${++tables}`;
    const size = columns.length < 4 ? "scroll short" : "scroll";
    return scrolling(
        h(
            "div",
            { class: size, role: "group", "aria-labelledby": id },
            h(
                "table",
                {},
                h("caption", {}, h("span", { id }, caption)),
                h(
                    "thead",
                    {},
                    h(
                        "tr",
                        {},
                        columns.map(([title, kind]) =>
                            h("th", { scope: "col", class: kind || null }, title),
                        ),
                    ),
                ),
                h(
                    "tbody",
                    {},
                    rows.map((row) => h("tr", {}, row.map(cell))),
                ),
            ),
        ),
    );
}
let tables = 0;

// Keyboards reach what can be scrolled, and do not stop at what cannot.
function scrolling(element) {
    new ResizeObserver(() => {
        if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
        else element.removeAttribute("tabindex");
    }).observe(element);
    return element;
}

export function button(text, act, attributes = {}) {
    return h("button", { type: "button", onclick: act, ...attributes }, text);
}

export function field(label, name, attributes, hint) {
    const id = `field-${name}-${++fields}`;
    const tag = attributes?.tag ?? "input";
    const rest = { ...attributes };
    delete rest.tag;
    const control = h(tag, { id, name, "aria-describedby": hint ? `${id}-hint` : null, ...rest });
    return h(
        "div",
        { class: "field" },
        h("label", { for: id }, label),
        control,
        hint ? h("small", { id: `${id}-hint` }, hint) : null,
    );
}
let fields = 0;

// A form whose submission is `act(values)`. While it runs the button is off; what `act` returns, or
// the error, is shown below.
export function form(title, parts, label, act) {
    const outcome = h("div", { class: "outcome" });
    const submit = h("button", { type: "submit" }, label);
    const id = `form-${++forms}`;
    async function run(event) {
        event.preventDefault();
        const values = Object.fromEntries(new FormData(event.target));
        submit.disabled = true;
        try {
            outcome.replaceChildren((await act(values, event.target)) ?? "");
        } catch (error) {
            outcome.replaceChildren(problem(error));
        } finally {
            submit.disabled = false;
        }
    }
    return h(
        "form",
        { onsubmit: run, "aria-labelledby": id },
        h("h2", { id }, title),
        parts,
        submit,
        outcome,
    );
}
let forms = 0;

export function done(...text) {
    const note = h("p", { class: "done" }, ...text);
    announce(note.textContent);
    return note;
}

export function card(title, ...children) {
    const id = `card-${++cards}`;
    return h(
        "section",
        { class: "card", "aria-labelledby": id },
        h("h2", { id }, title),
        ...children,
    );
}
let cards = 0;

// Large figures with their names: [[name, value, remark], ...]
export function figures(list) {
    return h(
        "dl",
        { class: "figures" },
        list.map(([name, value, remark]) =>
            h(
                "div",
                {},
                h("dt", {}, name),
                h("dd", {}, h("b", {}, value), remark ? h("small", {}, remark) : null),
            ),
        ),
    );
}

// A list of states, told by a word and a sign, never by colour alone.
export function lights(list) {
    const words = {
        good: ["✓", "In order"],
        bad: ["✗", "Wrong"],
        wait: ["!", "Look at this"],
        none: ["–", "Not known"],
    };
    return h(
        "ul",
        { class: "lights" },
        list.map(([state, text, remark]) =>
            h(
                "li",
                { class: state },
                h("span", { class: "sign", "aria-hidden": "true" }, words[state][0]),
                h(
                    "span",
                    {},
                    h("span", { class: "quiet" }, `${words[state][1]}: `),
                    text,
                    remark ? h("small", {}, remark) : null,
                ),
            ),
        ),
    );
}
