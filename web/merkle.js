// SPDX-License-Identifier: Apache-2.0
// The texts and trees of the log, checked by the browser alone: SHA-256 and Ed25519 of WebCrypto,
// the Merkle trees of RFC 6962, checkpoints as signed notes (C2SP). The same rules as
// src/ledger/merkle.c and note.c: there is one way to write each value, and nothing else is read.

const encoder = new TextEncoder();

export class Wrong extends Error {}

export function bytesOf(text) {
    return encoder.encode(text);
}

export function concat(...parts) {
    const out = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
    let at = 0;
    for (const part of parts) {
        out.set(part, at);
        at += part.length;
    }
    return out;
}

export function equal(a, b) {
    return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

export function hex(bytes) {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function fromHex(text) {
    if (!/^([0-9a-f]{2})*$/.test(text)) throw new Wrong("a hash is not hexadecimal");
    return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function fromBase64(text) {
    let raw;
    try {
        raw = atob(text);
    } catch {
        throw new Wrong("a line is not base64");
    }
    // one encoding only: no blanks, no bits left over
    if (btoa(raw) !== text) throw new Wrong("a line is not base64");
    return Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
}

export function hashFromBase64(text) {
    const bytes = fromBase64(text);
    if (bytes.length !== 32) throw new Wrong("a hash does not have 32 bytes");
    return bytes;
}

// A count: decimal, without leading zeros, below 2^53 so that a Number has it exactly.
export function count(text) {
    const value = /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : NaN;
    if (!Number.isSafeInteger(value)) throw new Wrong(`“${text.slice(0, 40)}” is not a number`);
    return value;
}

// Browsers have no WebCrypto on pages that came over plain HTTP from another machine.
export function needCrypto() {
    if (!globalThis.crypto?.subtle)
        throw new Error("This browser offers no cryptography here. Open the page over https.");
}

export async function sha256(...parts) {
    return new Uint8Array(await crypto.subtle.digest("SHA-256", concat(...parts)));
}

const LEAF = Uint8Array.of(0),
    NODE = Uint8Array.of(1);

export function leafHash(data) {
    return sha256(LEAF, data);
}

function nodeHash(left, right) {
    return sha256(NODE, left, right);
}

// ---- a tree that grows: one peak for each bit of its size ----

export class Tree {
    #peaks = [];
    size = 0;

    async add(leaf) {
        this.#peaks.push(leaf);
        for (let left = ++this.size; left % 2 === 0; left /= 2) {
            const right = this.#peaks.pop();
            this.#peaks.push(await nodeHash(this.#peaks.pop(), right));
        }
    }

    async root() {
        if (this.size === 0) return sha256();
        let root = this.#peaks[this.#peaks.length - 1];
        for (let i = this.#peaks.length - 2; i >= 0; i--)
            root = await nodeHash(this.#peaks[i], root);
        return root;
    }
}

// Whether leaf `index` of a tree of `size` leaves with this root has this hash (RFC 9162, 2.1.3.2).
export async function includes(leaf, index, size, path, root) {
    if (index >= size) return false;
    let node = index,
        last = size - 1,
        hash = leaf;
    const up = () => {
        node = Math.floor(node / 2);
        last = Math.floor(last / 2);
    };
    for (const beside of path) {
        if (last === 0) return false; // the root is reached already
        if (node % 2 === 1 || node === last) {
            hash = await nodeHash(beside, hash);
            while (node % 2 === 0 && node !== 0) up();
        } else {
            hash = await nodeHash(hash, beside);
        }
        up();
    }
    return last === 0 && equal(hash, root);
}

// ---- keys and checkpoints ----

// NAME+ID+base64(0x01 | PUBLIC KEY), where ID begins SHA-256(NAME | 0x0a | 0x01 | PUBLIC KEY)
export async function readVkey(text) {
    const found = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]{44})$/.exec(text.trim());
    if (!found) throw new Wrong("the public key is not of the form name+hash+base64");
    const typed = fromBase64(found[3]);
    if (typed[0] !== 1) throw new Wrong("the public key is not an Ed25519 key");
    const digest = await sha256(bytesOf(`${found[1]}\n`), typed);
    if (hex(digest.slice(0, 4)) !== found[2])
        throw new Wrong("the public key does not agree with its own hash");
    return { name: found[1], id: digest.slice(0, 4), key: typed.slice(1) };
}

// ORIGIN, SIZE, base64(ROOT), an empty line, signatures. Throws Wrong if it is malformed, or if no
// line claims to be a signature of this key.
export function readCheckpoint(note, vkey) {
    const lines = note.split("\n");
    if (lines.pop() !== "") throw new Wrong("the last line of the checkpoint has no end");
    if (lines[0] !== vkey.name)
        throw new Wrong(`the checkpoint is of another log than ${vkey.name}`);
    const size = count(lines[1] ?? "");
    const root = hashFromBase64(lines[2] ?? "");
    if (lines[3] !== "") throw new Wrong("the fourth line of the checkpoint is not empty");
    const ours = lines
        .slice(4)
        .map((line) => {
            const found = /^— (\S+) (\S+)$/.exec(line);
            if (!found) throw new Wrong("a line of the checkpoint is not a signature");
            return { name: found[1], bytes: fromBase64(found[2]) };
        })
        .filter(({ name, bytes }) => name === vkey.name && equal(bytes.slice(0, 4), vkey.id));
    if (ours.length !== 1 || ours[0].bytes.length !== 4 + 64)
        throw new Wrong("the checkpoint is not signed once by this key");
    const signed = bytesOf(
        lines
            .slice(0, 3)
            .map((line) => `${line}\n`)
            .join(""),
    );
    return { size, root, signed, signature: ours[0].bytes.slice(4) };
}

// true, false, or null where the browser has no Ed25519.
export async function isSigned(checkpoint, vkey) {
    let key;
    try {
        key = await crypto.subtle.importKey("raw", vkey.key, { name: "Ed25519" }, false, [
            "verify",
        ]);
    } catch (error) {
        if (error.name === "DataError") return false;
        return null;
    }
    return crypto.subtle.verify({ name: "Ed25519" }, key, checkpoint.signature, checkpoint.signed);
}

// ---- the leaf of an entry ----

// The lines of "fds entry v1" by their names.
export function readLeaf(text) {
    const lines = text.split("\n");
    if (lines.shift() !== "fds entry v1" || lines.pop() !== "")
        throw new Wrong("it is not an entry of the log");
    const found = {};
    for (const line of lines) {
        const blank = line.indexOf(" ");
        const name = line.slice(0, blank);
        if (blank < 1 || name in found) throw new Wrong("a line of the entry is malformed");
        found[name] = line.slice(blank + 1);
    }
    return found;
}

// The entries of a bundle: each after its length in two bytes, the higher one first.
export function readBundle(bytes) {
    const leaves = [];
    for (let at = 0; at < bytes.length;) {
        const size = bytes[at] * 256 + bytes[at + 1];
        if (!(at + 2 + size <= bytes.length)) throw new Wrong("a bundle of entries is cut short");
        leaves.push(bytes.subarray(at + 2, at + 2 + size));
        at += 2 + size;
    }
    return leaves;
}

// tile/entries/x001/x234/067, with .p/W where it is not full
export function tilePath(kind, n, width) {
    const groups = String(n)
        .padStart(Math.ceil(String(n).length / 3) * 3, "0")
        .match(/.../g);
    const name = groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join("/");
    return `/log/tile/${kind}/${name}${width < 256 ? `.p/${width}` : ""}`;
}
