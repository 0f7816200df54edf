// SPDX-License-Identifier: Apache-2.0
// Money and times as text. Money is a BigInt of units, 10^-decimals of the currency; it never goes
// through a floating-point number. Standard errors are estimates, and do.

// An amount of the server as units: a string is in the currency ("12.340000"), a number in units.
export function units(amount, decimals) {
    if (typeof amount === "bigint") return amount;
    if (typeof amount === "number") {
        if (!Number.isSafeInteger(amount)) throw new Error(`${amount} is not a number of units`);
        return BigInt(amount);
    }
    const found = /^([-+]?)(\d+)(?:\.(\d*))?$/.exec(String(amount).trim());
    const rest = found?.[3] ?? "";
    if (!found || /[1-9]/.test(rest.slice(decimals)))
        throw new Error(`“${amount}” is not an amount with at most ${decimals} decimals`);
    const value = BigInt(found[2] + rest.slice(0, decimals).padEnd(decimals, "0"));
    return found[1] === "-" ? -value : value;
}

// The standard error of the server in units, or null: strings are in the currency.
export function errorUnits(error, decimals) {
    if (error === null || error === undefined) return null;
    const value = typeof error === "string" ? Number(error) * 10 ** decimals : error;
    return Number.isFinite(value) ? value : null;
}

function abs(value) {
    return value < 0n ? -value : value;
}

// value · 10^-from rounded to a multiple of 10^-to, halves away from zero.
function round(value, from, to) {
    if (to >= from) return value * 10n ** BigInt(to - from);
    const step = 10n ** BigInt(from - to);
    const whole = (abs(value) + step / 2n) / step;
    return value < 0n ? -whole : whole;
}

// 1234567n, 6 decimals → "1.234567"
export function plain(value, decimals) {
    const digits = abs(value)
        .toString()
        .padStart(decimals + 1, "0");
    const sign = value < 0n ? "-" : "";
    return (
        sign +
        digits.slice(0, digits.length - decimals) +
        (decimals ? `.${digits.slice(-decimals)}` : "")
    );
}

// For people: thousands apart, at least two decimals, no more zeros than needed.
export function money(value, decimals, shown = null) {
    const places = shown ?? decimals;
    let [whole, part = ""] = plain(abs(round(value, decimals, places)), places).split(".");
    whole = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    if (shown === null) part = part.replace(/0+$/, "").padEnd(Math.min(2, decimals), "0");
    return (value < 0n ? "−" : "") + whole + (part ? `.${part}` : "");
}

// "12.34 USD", of an amount of the server or of units.
export function priced(me, amount) {
    return `${money(units(amount, me.decimals), me.decimals)} ${me.currency}`;
}

// As many decimals as give the error two digits, but at least two.
function places(error, decimals) {
    if (!(error > 0)) return Math.min(2, decimals);
    const first = Math.floor(Math.log10(error)) - decimals; // of its first digit, in the currency
    return Math.min(decimals, Math.max(2, 1 - first));
}

// "12.78 ± 1.67"; the amount alone where the error is not known.
export function moneyError(value, error, decimals) {
    if (error === null) return money(value, decimals);
    const shown = places(error, decimals);
    const wide = money(BigInt(Math.round(error)), decimals, shown);
    return `${money(value, decimals, shown)} ±\u00a0${wide}`; // no line ends before the error
}

// "a 6", "an 8", "“cat”"
export function labelled(label) {
    if (/^\d+$/.test(label)) return (/^(8|11$|18$)/.test(label) ? "an " : "a ") + label;
    return `“${label}”`;
}

export function plural(count, one, many = `${one}s`) {
    return `${Number(count).toLocaleString("en")} ${Number(count) === 1 ? one : many}`;
}

// "2026-11-18T01:02:03.456Z" → "18 Nov 2026, 01:02:03 UTC"
export function time(text) {
    const at = new Date(text);
    if (Number.isNaN(at.getTime())) return String(text);
    const day = at.toLocaleDateString("en-GB", {
        day: "numeric",
        month: "short",
        year: "numeric",
        timeZone: "UTC",
    });
    return `${day}, ${at.toISOString().slice(11, 19)} UTC`;
}

export function day(text) {
    return new Date(`${text}T00:00:00Z`).toLocaleDateString("en-GB", {
        day: "numeric",
        month: "short",
        timeZone: "UTC",
    });
}

export function percent(part) {
    return `${(100 * part).toFixed(part < 0.1 ? 1 : 0)} %`;
}

export function duration(seconds) {
    if (seconds < 90) return plural(Math.round(seconds), "second");
    if (seconds < 5400) return plural(Math.round(seconds / 60), "minute");
    if (seconds < 129600) return plural(Math.round(seconds / 3600), "hour");
    return plural(Math.round(seconds / 86400), "day");
}

// Predictions share the errors of their run, so errors add up; one that is not known makes the sum not known.
export function addErrors(a, b) {
    return a === null || b === null ? null : a + b;
}
