// SPDX-License-Identifier: Apache-2.0
// Computes the whole ledger again, as far as a browser can see it: the leaves of the log against
// the signed root, the entries against their leaves, and the balances as the sum of all postings.
import { get, getBytes, getText } from "./api.js";
import { plain, units } from "./format.js";
import {
    Tree,
    Wrong,
    equal,
    hex,
    isSigned,
    leafHash,
    needCrypto,
    readBundle,
    readCheckpoint,
    readLeaf,
    readVkey,
    tilePath,
} from "./merkle.js";

const TILE = 256,
    PAGE = 200;

// A mistake in the ledger; `index` is the first entry that has it, if it can be told.
export class Bad extends Error {
    constructor(step, message, index = null) {
        super(message);
        this.step = step;
        this.index = index;
    }
}

function decode(step, bytes, index) {
    try {
        return readLeaf(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    } catch {
        throw new Bad(step, `The leaf of entry ${index} cannot be read.`, index);
    }
}

// Step 1: the newest checkpoint, signed by the key.
async function openCheckpoint(vkeyText) {
    try {
        const vkey = await readVkey(vkeyText);
        const checkpoint = readCheckpoint(await getText("/log/checkpoint"), vkey);
        const signed = await isSigned(checkpoint, vkey);
        if (signed === false) throw new Wrong("the signature is not by this key");
        return { ...checkpoint, isChecked: signed !== null };
    } catch (error) {
        if (!(error instanceof Wrong)) throw error;
        throw new Bad("checkpoint", `The checkpoint is wrong: ${error.message}.`);
    }
}

// The leaves of one tile, as bytes and as hashes; each must hash to what the tile of hashes says.
async function readTile(n, width) {
    const [bundle, tile] = await Promise.all([
        getBytes(tilePath("entries", n, width)),
        getBytes(tilePath(0, n, width)),
    ]);
    const first = n * TILE;
    let leaves;
    try {
        leaves = readBundle(bundle);
    } catch (error) {
        throw new Bad(
            "log",
            `The bundle that begins with entry ${first}: ${error.message}.`,
            first,
        );
    }
    const hashes = await Promise.all(leaves.map(leafHash));
    for (let i = 0; i < width; i++) {
        const index = first + i;
        if (i >= leaves.length)
            throw new Bad("log", `Entry ${index} is missing in the log.`, index);
        if (!equal(hashes[i], tile.subarray(32 * i, 32 * i + 32)))
            throw new Bad(
                "log",
                `Entry ${index} does not have the hash that the log has of it.`,
                index,
            );
        if (decode("log", leaves[i], index).index !== String(index))
            throw new Bad("log", `Entry ${index} has the number of another.`, index);
    }
    if (leaves.length !== width)
        throw new Bad("log", `There are entries too many after ${first + width - 1}.`);
    return { leaves, hashes };
}

// What the server says of an entry against its leaf, which is signed.
function compare(entry, leaf, decimals) {
    const { index } = entry,
        text = decode("entries", leaf.bytes, index);
    const wrong = (what) =>
        new Bad("entries", `Entry ${index}: its ${what} is not that of the log.`, index);
    if (entry.leaf !== hex(leaf.hash)) throw wrong("hash");
    for (const name of ["kind", "at", "run", "label", "rule"])
        if (text[name] !== undefined && text[name] !== entry[name]) throw wrong(name);
    if (
        text.amount !== undefined &&
        BigInt(text.amount.split(" ")[0]) !== units(entry.amount, decimals)
    )
        throw wrong("amount");
    if (text.fee !== undefined && BigInt(text.fee) !== units(entry.fee, decimals))
        throw wrong("fee");
    if (
        text.payees !== undefined &&
        entry.kind === "prediction" &&
        Number(text.payees) + 2 !== entry.postings.length
    )
        throw wrong("number of payees");
}

// Shares and fee of a prediction must sum to what the customer paid.
function fold(balances, entry, decimals) {
    let sum = 0n;
    for (const posting of entry.postings ?? []) {
        const amount = units(posting.units, decimals);
        sum += amount;
        balances.set(posting.account, (balances.get(posting.account) ?? 0n) + amount);
    }
    if (sum !== 0n)
        throw new Bad(
            "entries",
            `Entry ${entry.index}: its postings sum to ${plain(sum, decimals)}, not to 0.`,
            entry.index,
        );
    if (
        entry.kind === "prediction" &&
        -units(entry.postings[0].units, decimals) !== units(entry.amount, decimals)
    )
        throw new Bad(
            "entries",
            `Entry ${entry.index}: the customer did not pay its amount.`,
            entry.index,
        );
}

// Entries from `from` up to `to`, which is excluded; the server lists the newest first.
async function readEntries(from, to) {
    const found = [];
    while (found.length < to - from) {
        const before = to - found.length;
        const limit = Math.min(PAGE, before - from);
        const { entries } = await get("/api/entries", { before, limit });
        entries.forEach(({ index }, i) => {
            const due = before - 1 - i;
            if (index !== due) throw new Bad("entries", `Entry ${due} is missing.`, due);
        });
        if (entries.length === 0)
            throw new Bad("entries", `Entry ${before - 1} is missing.`, before - 1);
        found.push(...entries);
    }
    return found.reverse();
}

// Steps 2 and 3, tile by tile, so that a long log needs no more memory than a short one: all leaves
// are hashed, each entry is compared with its leaf and added to the balances.
async function readLog(checkpoint, balances, decimals, steps) {
    const tree = new Tree();
    for (let first = 0; first < checkpoint.size; first += TILE) {
        const width = Math.min(TILE, checkpoint.size - first);
        const tile = await readTile(first / TILE, width);
        for (const hash of tile.hashes) await tree.add(hash);
        steps.progress("log", first + width, checkpoint.size);
        for (const entry of await readEntries(first, first + width)) {
            const i = entry.index - first;
            compare(entry, { bytes: tile.leaves[i], hash: tile.hashes[i] }, decimals);
            fold(balances, entry, decimals);
        }
        steps.progress("entries", first + width, checkpoint.size);
    }
    if (!equal(await tree.root(), checkpoint.root))
        throw new Bad(
            "log",
            "The entries do not have the root that was signed, although each agrees with its " +
                "tile: the tiles or the checkpoint are of another log.",
        );
}

// Balances at a known number of entries: the log may grow meanwhile.
async function readAccounts(origin) {
    const size = async () => Number((await getText("/log/checkpoint")).split("\n")[1]);
    for (let before = await size(), tries = 0; tries < 20; tries++) {
        const { accounts } = await get("/api/accounts");
        const after = await size();
        if (before === after) return { accounts, size: before };
        before = after;
    }
    throw new Error(`The log of ${origin} grows too fast to compare its balances. Try again.`);
}

// Step 4: the fold against the server's balances, and the sum of all.
function compareBalances(balances, accounts, decimals) {
    const sum = [...balances.values()].reduce((total, value) => total + value, 0n);
    if (sum !== 0n)
        throw new Bad("balances", `All balances sum to ${plain(sum, decimals)}, not to 0.`);
    const told = new Map(accounts.map(({ name, balance }) => [name, units(balance, decimals)]));
    for (const [name, value] of balances)
        if (!told.has(name) && value !== 0n)
            throw new Bad("balances", `The account ${name} is missing.`);
    for (const [name, value] of told)
        if (value !== (balances.get(name) ?? 0n))
            throw new Bad(
                "balances",
                `The balance of ${name} is said to be ${plain(value, decimals)}; ` +
                    `its entries sum to ${plain(balances.get(name) ?? 0n, decimals)}.`,
            );
}

export const AUDIT_STEPS = [
    ["checkpoint", "The checkpoint is signed by the log"],
    ["log", "All leaves of the log have the signed root"],
    ["entries", "Every entry agrees with its leaf, and its postings sum to 0"],
    ["balances", "All balances are the sums of their entries, and sum to 0"],
];

// Shows each step in `steps` (steps.js). Throws Bad at the first mistake.
export async function recompute(vkey, decimals, steps) {
    needCrypto();
    const checkpoint = await openCheckpoint(vkey);
    const { size, isChecked } = checkpoint;
    const balances = new Map();
    if (isChecked) steps.tell("checkpoint", "done", `${size} entries`);
    else steps.tell("checkpoint", "unknown", "this browser has no Ed25519");
    await readLog(checkpoint, balances, decimals, steps);
    steps.tell("log", "done", `root ${hex(checkpoint.root).slice(0, 16)}…`);
    steps.tell("entries", "done", `${size} entries`);
    const now = await readAccounts(vkey.split("+")[0]);
    for (const entry of await readEntries(size, now.size)) fold(balances, entry, decimals);
    compareBalances(balances, now.accounts, decimals);
    steps.tell("balances", "done", `${now.accounts.length} accounts`);
    return { size, accounts: now.accounts.length, isChecked };
}
