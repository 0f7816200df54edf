// SPDX-License-Identifier: Apache-2.0
// Checks a receipt (C2SP tlog-proof, docs/ledger.md) in steps that a person can follow. Each step
// depends on those before it, so the first that fails ends the check.
import {
    Wrong,
    bytesOf,
    count,
    fromBase64,
    fromHex,
    hashFromBase64,
    hex,
    includes,
    isSigned,
    leafHash,
    needCrypto,
    readCheckpoint,
    readLeaf,
    readVkey,
} from "./merkle.js";

const HEAD = "c2sp.org/tlog-proof@v1";

// Text up to the first empty line, and what follows it.
function cut(text, what) {
    const at = text.indexOf("\n\n");
    if (at < 0) throw new Wrong(`${what} is missing`);
    return [text.slice(0, at).split("\n"), text.slice(at + 2)];
}

// A line that begins with a word: what follows it.
function after(line, word) {
    if (!line?.startsWith(`${word} `)) throw new Wrong(`a line must begin with “${word}”`);
    return line.slice(word.length + 1);
}

function textOf(bytes) {
    try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
        throw new Wrong("it is not text");
    }
}

function readShare(text) {
    const [head, entry, account, units, salt, end, ...more] = text.split("\n");
    if (
        head !== "fds share v1" ||
        end !== "" ||
        more.length ||
        !/^[0-9a-f]{64}$/.test(after(salt, "salt"))
    )
        throw new Wrong("its share is malformed");
    const number = after(units, "units");
    if (!/^-?(0|[1-9]\d*)$/.test(number)) throw new Wrong("its share has no number of units");
    return {
        entry: count(after(entry, "entry")),
        account: after(account, "account"),
        units: BigInt(number),
    };
}

function readExtra(text) {
    const [head, rest] = cut(text, "the share");
    const at = rest.indexOf("\n\n");
    if (head[0] !== "fds receipt v1") throw new Wrong("it is not a receipt of fds");
    if (at < 0) throw new Wrong("the entry is missing");
    const numbers = after(head[1], "posting").split(" ");
    if (numbers.length !== 2)
        throw new Wrong("a line must be: posting, its number, how many there are");
    const shareText = rest.slice(0, at + 1),
        leafText = rest.slice(at + 2);
    return {
        posting: count(numbers[0]),
        postings: count(numbers[1]),
        path: head.slice(2).map((line) => hashFromBase64(after(line, "path"))),
        shareText,
        leafText,
        share: readShare(shareText),
        leaf: readLeaf(leafText),
    };
}

function readReceipt(text) {
    const [lines, note] = cut(text, "the checkpoint");
    if (lines[0] !== HEAD) throw new Wrong(`the first line must be ${HEAD}`);
    const extra = readExtra(textOf(fromBase64(after(lines[1], "extra"))));
    return {
        ...extra,
        index: count(after(lines[2], "index")),
        proof: lines.slice(3).map(hashFromBase64),
        note,
    };
}

function sameEntry(receipt) {
    const { index, share, leaf, postings } = receipt;
    if (share.entry !== index || count(leaf.index ?? "") !== index)
        throw new Wrong("its parts are of different entries");
    if (leaf.payees !== undefined && count(leaf.payees) + 2 !== postings)
        throw new Wrong("the number of postings is not that of the entry");
}

// `expected` is what this page shows of the entry: {index, account, units}, each if known.
function sameAsShown({ index, share }, expected) {
    if (expected.index !== undefined && expected.index !== index)
        throw new Wrong(`the receipt is of entry ${index}, not of entry ${expected.index}`);
    if (expected.account !== undefined && expected.account !== share.account)
        throw new Wrong(`the receipt is of ${share.account}, not of ${expected.account}`);
    if (expected.units !== undefined && expected.units !== share.units)
        throw new Wrong(`the receipt says ${share.units} units, the page ${expected.units}`);
}

export const STEPS = [
    ["file", "The receipt can be read"],
    ["key", "The log’s public key is well formed"],
    ["signature", "The log has signed its checkpoint"],
    ["log", "The entry is in the signed log"],
    ["share", "The share is in the entry"],
    ["shown", "The receipt says what this page says"],
];

// Calls onStep(name, "done" | "failed" | "unknown", remark) for each step that was taken. Returns
// {verdict: "right" | "wrong" | "unsigned", failed, receipt}; unsigned: all but the signature.
export async function verifyReceipt(text, vkeyText, expected, onStep) {
    let step,
        receipt,
        vkey,
        checkpoint,
        verdict = "right";
    const pass = (remark) => onStep(step, "done", remark);
    needCrypto();
    try {
        step = "file";
        receipt = readReceipt(text);
        sameEntry(receipt);
        pass(`entry ${receipt.index}, ${receipt.share.units} units of ${receipt.share.account}`);

        step = "key";
        vkey = await readVkey(vkeyText);
        pass(vkey.name);

        step = "signature";
        checkpoint = readCheckpoint(receipt.note, vkey);
        const signed = await isSigned(checkpoint, vkey);
        if (signed === false)
            throw new Wrong("the signature is not by this key, or the text was changed");
        if (signed === null) {
            verdict = "unsigned";
            onStep(step, "unknown", "not checked: this browser has no Ed25519");
        } else {
            pass(`checkpoint of ${checkpoint.size} entries`);
        }

        step = "log";
        const leaf = await leafHash(bytesOf(receipt.leafText));
        if (!(await includes(leaf, receipt.index, checkpoint.size, receipt.proof, checkpoint.root)))
            throw new Wrong("the log that signed the checkpoint has no such entry at this place");
        pass(`leaf ${hex(leaf).slice(0, 16)}…`);

        step = "share";
        const root = fromHex(receipt.leaf.shares ?? "");
        const share = await leafHash(bytesOf(receipt.shareText));
        if (!(await includes(share, receipt.posting, receipt.postings, receipt.path, root)))
            throw new Wrong("the entry was signed with other shares");
        pass(`share ${receipt.posting + 1} of ${receipt.postings}`);

        step = "shown";
        sameAsShown(receipt, expected);
        pass();
    } catch (error) {
        if (!(error instanceof Wrong)) throw error;
        onStep(step, "failed", error.message);
        return { verdict: "wrong", failed: step, receipt };
    }
    return { verdict, failed: null, receipt };
}
