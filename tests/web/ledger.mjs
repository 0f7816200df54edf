// SPDX-License-Identifier: Apache-2.0
// A ledger in memory for the tests of the page: entries, leaves, receipts and a signed log, written
// from docs/ledger.md and RFC 6962's recursive definitions, not from the page's own code.
import crypto from "node:crypto";

export const CURRENCY = "USD",
    DECIMALS = 6;
const ORIGIN = "example.com/test";

export function sha256(...parts) {
    const hash = crypto.createHash("sha256");
    for (const part of parts) hash.update(part);
    return hash.digest();
}

// Merkle tree hash and audit path of hashes of leaves: RFC 6962, 2.1 and 2.1.1.
function split(n) {
    return 2 ** Math.ceil(Math.log2(n) - 1);
}

export function treeHash(leaves) {
    if (leaves.length === 0) return sha256();
    if (leaves.length === 1) return leaves[0];
    const k = split(leaves.length);
    return sha256(Buffer.of(1), treeHash(leaves.slice(0, k)), treeHash(leaves.slice(k)));
}

export function treePath(leaves, i) {
    if (leaves.length <= 1) return [];
    const k = split(leaves.length);
    return i < k
        ? [...treePath(leaves.slice(0, k), i), treeHash(leaves.slice(k))]
        : [...treePath(leaves.slice(k), i - k), treeHash(leaves.slice(0, k))];
}

const leafHash = (text) => sha256(Buffer.of(0), text);

export function money(units) {
    const text = String(Math.abs(units)).padStart(DECIMALS + 1, "0");
    return `${units < 0 ? "-" : ""}${text.slice(0, -DECIMALS)}.${text.slice(-DECIMALS)}`;
}

export function unitsOf(amount) {
    const [whole, part = ""] = amount.replace("-", "").split(".");
    return (amount.startsWith("-") ? -1 : 1) * Number(whole + part.padEnd(DECIMALS, "0"));
}

export class Ledger {
    accounts = new Map(); // name → {name, kind, balance, earned, predictions}
    entries = [];

    constructor(start) {
        this.at = Date.parse(start);
        const seed = sha256("the key of the tests");
        const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
        this.private = crypto.createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
        const spki = crypto.createPublicKey(this.private).export({ format: "der", type: "spki" });
        const typed = Buffer.concat([Buffer.of(1), spki.subarray(-32)]);
        this.id = sha256(ORIGIN, "\n", typed).subarray(0, 4);
        this.vkey = `${ORIGIN}+${this.id.toString("hex")}+${typed.toString("base64")}`;
    }

    open(name, kind) {
        this.accounts.set(name, { name, kind, balance: 0, earned: 0, predictions: 0 });
        return this.add({ kind: "open", text: { kind, name } });
    }

    // What it is and its postings: {kind, label?, amount?, fee?, postings: [{account, units, ...}]}
    add(what) {
        const index = this.entries.length,
            postings = what.postings ?? [];
        const salt = sha256("salt", String(index));
        const at = new Date(this.at).toISOString();
        const shares = postings.map(
            ({ account, units }, i) =>
                `fds share v1\nentry ${index}\naccount ${account}\n` +
                `units ${units}\nsalt ${sha256(salt, "share", String(i)).toString("hex")}\n`,
        );
        const lines = [
            ["index", index],
            ["kind", what.kind],
            ["at", at],
        ];
        if (what.kind === "prediction")
            lines.push(
                ["run", what.run],
                ["label", what.label],
                ["amount", `${what.amount} ${CURRENCY}/${DECIMALS}`],
                ["fee", what.fee],
                ["rule", what.rule],
                ["payees", postings.length - 2],
                ["input", sha256(salt, "input").toString("hex")],
            );
        if (what.ref !== undefined) lines.push(["ref", what.ref]);
        if (postings.length) lines.push(["shares", treeHash(shares.map(leafHash)).toString("hex")]);
        lines.push(["private", sha256(salt, "private").toString("hex")]);
        const leaf = `fds entry v1\n${lines.map(([name, value]) => `${name} ${value}\n`).join("")}`;
        this.entries.push({
            ...what,
            index,
            at,
            postings,
            shares,
            leafText: leaf,
            hash: leafHash(leaf),
        });
        for (const { account, units, value } of postings) {
            const owner = this.accounts.get(account);
            owner.balance += units;
            if (value === undefined) continue;
            owner.earned += units;
            owner.predictions++;
        }
        return index;
    }

    // As the server shows it to a viewer: null sees everything.
    view(index, viewer) {
        const { leafText, hash, shares, customer, account, confidence, text, postings, ...rest } =
            this.entries[index];
        const isParty = viewer === null || postings.some((posting) => posting.account === viewer);
        if (rest.kind !== "prediction" && !isParty) delete rest.amount;
        return {
            ...rest,
            leaf: hash.toString("hex"),
            ...(viewer === null || viewer === customer ? { customer, account, confidence } : {}),
            ...(isParty ? { text } : {}),
            postings: postings.filter((posting) => viewer === null || posting.account === viewer),
        };
    }

    checkpoint() {
        const text =
            `${ORIGIN}\n${this.entries.length}\n` +
            `${treeHash(this.entries.map(({ hash }) => hash)).toString("base64")}\n`;
        const signature = crypto.sign(null, Buffer.from(text), this.private);
        return `${text}\n— ${ORIGIN} ${Buffer.concat([this.id, signature]).toString("base64")}\n`;
    }

    receipt(index, account) {
        const { postings, shares, leafText } = this.entries[index];
        const posting = postings.findIndex((one) => one.account === account);
        if (posting < 0) return null;
        const path = treePath(shares.map(leafHash), posting).map(
            (hash) => `path ${hash.toString("base64")}\n`,
        );
        const extra =
            `fds receipt v1\nposting ${posting} ${shares.length}\n${path.join("")}\n` +
            `${shares[posting]}\n${leafText}`;
        const proof = treePath(
            this.entries.map(({ hash }) => hash),
            index,
        ).map((hash) => `${hash.toString("base64")}\n`);
        return (
            `c2sp.org/tlog-proof@v1\nextra ${Buffer.from(extra).toString("base64")}\n` +
            `index ${index}\n` +
            `${proof.join("")}\n${this.checkpoint()}`
        );
    }

    // tile/0/000, tile/entries/001.p/20; higher levels are not asked for
    file(path) {
        const found = /^tile\/(0|entries)\/(\d{3})(?:\.p\/(\d+))?$/.exec(path);
        if (path === "checkpoint") return Buffer.from(this.checkpoint());
        if (!found) return null;
        const first = 256 * Number(found[2]),
            width = Number(found[3] ?? 256);
        const part = this.entries.slice(first, first + width);
        if (part.length !== width) return null;
        if (found[1] === "0") return Buffer.concat(part.map(({ hash }) => hash));
        return Buffer.concat(
            part.flatMap(({ leafText }) => {
                const size = Buffer.alloc(2);
                size.writeUInt16BE(Buffer.byteLength(leafText));
                return [size, Buffer.from(leafText)];
            }),
        );
    }
}

// ---- what the tests look at ----

// A generator of numbers from 0 to 1, the same every time (mulberry32).
function random(seed) {
    return () => {
        seed = (seed + 0x6d2b79f5) | 0;
        let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
}

export const PROVIDERS = [
    "north",
    "south",
    "east",
    "west",
    "harbour clinic",
    "hill clinic",
    "lake clinic",
    "market",
    "station",
    "bridge",
    "tower",
    "mill",
];

// A prediction of `label` that costs `amount`: a tenth is the fee, providers share the rest.
export function predict(ledger, next, customer, label, amount, confidence) {
    const fee = amount / 10,
        values = PROVIDERS.map(() => next() ** 3);
    const sum = values.reduce((a, b) => a + b, 0);
    const shares = values.map((value) => Math.floor(((amount - fee) * value) / sum));
    shares[0] += amount - fee - shares.reduce((a, b) => a + b, 0);
    return ledger.add({
        kind: "prediction",
        run: sha256("run").toString("hex"),
        customer,
        label,
        amount,
        fee,
        rule: "clip",
        confidence,
        postings: [
            { account: customer, units: -amount },
            ...PROVIDERS.map((account, i) => ({
                account,
                units: shares[i],
                value: values[i],
                error: values[i] / 8,
                unit_error: shares[i] / 8,
            })),
            { account: "fees", units: fee },
        ],
    });
}

export function sampleLedger() {
    const ledger = new Ledger("2026-11-03T09:00:00.000Z"),
        next = random(7);
    ledger.open("cash", "platform");
    ledger.open("fees", "platform");
    for (const name of PROVIDERS) ledger.open(name, "provider");
    for (const name of ["acme", "borealis"]) ledger.open(name, "customer");
    for (const [name, units] of [
        ["acme", 500e6],
        ["borealis", 120e6],
    ])
        ledger.add({
            kind: "topup",
            customer: name,
            amount: units,
            text: { ref: "invoice 7", operator: "ada" },
            postings: [
                { account: name, units },
                { account: "cash", units: -units },
            ],
        });
    for (let i = 0; i < 260; i++) {
        ledger.at += 3600e3 + Math.floor(next() * 1800e3);
        predict(
            ledger,
            next,
            i % 5 ? "acme" : "borealis",
            String(Math.floor(next() * 10)),
            1e6,
            0.5 + next() / 2,
        );
    }
    ledger.add({
        kind: "payout",
        account: "north",
        amount: 10e6,
        text: { ref: "2026-10", operators: ["ada", "bob"] },
        postings: [
            { account: "north", units: -10e6 },
            { account: "cash", units: 10e6 },
        ],
    });
    return { ledger, next };
}
