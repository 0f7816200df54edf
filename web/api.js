// SPDX-License-Identifier: Apache-2.0
// Requests to the server: JSON, the session's token, errors with the server's own words.

let token = null;
let onEnd = () => {};

export function setToken(value) {
    token = value;
}

// Called when the server no longer knows the session.
export function whenSessionEnds(act) {
    onEnd = act;
}

export class Refused extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

async function refuse(response) {
    const text = await response.text();
    let message = `the server answered ${response.status}`;
    try {
        message = JSON.parse(text).error ?? message;
    } catch {
        /* not JSON: the status says enough */
    }
    return new Refused(response.status, message[0].toUpperCase() + message.slice(1));
}

async function ask(path, options = {}) {
    let response;
    try {
        response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
    } catch {
        throw new Refused(0, "The server cannot be reached.");
    }
    if (response.ok) return response;
    const error = await refuse(response);
    if (response.status === 401 && token) onEnd();
    throw error;
}

export function query(path, values) {
    const pairs = Object.entries(values).filter(
        ([, value]) => value !== undefined && value !== null && value !== "",
    );
    return pairs.length ? `${path}?${new URLSearchParams(pairs)}` : path;
}

export async function get(path, values = {}) {
    return (await ask(query(path, values))).json();
}

export async function getText(path, values = {}) {
    return (await ask(query(path, values))).text();
}

export async function getBytes(path) {
    return new Uint8Array(await (await ask(path)).arrayBuffer());
}

export async function post(path, body, headers = {}) {
    const all = { "Content-Type": "application/json", ...headers };
    if (token) all["X-FDS-Token"] = token;
    return (await ask(path, { method: "POST", headers: all, body: JSON.stringify(body) })).json();
}

// 128 random bits as text: a key under which a payment is made at most once.
export function freshKey() {
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
        byte.toString(16).padStart(2, "0"),
    ).join("");
}

// The key of a request that may be sent twice by mistake: another one once the request has changed, or was
// answered.
export function keeper() {
    let key = freshKey(),
        last = null;
    return {
        keyOf(body) {
            const text = JSON.stringify(body);
            if (last !== null && last !== text) key = freshKey();
            last = text;
            return key;
        },
        answered() {
            key = freshKey();
            last = null;
        },
    };
}
