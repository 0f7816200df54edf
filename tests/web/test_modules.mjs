// SPDX-License-Identifier: Apache-2.0
// The page's modules that need no browser: money as text, and receipts of which no byte can change.
//   node test_modules.mjs        prints TAP
import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { money, moneyError, labelled, plain, units } from "../../web/format.js";
import { Tree, hex, includes, leafHash, readVkey, tilePath } from "../../web/merkle.js";
import { verifyReceipt } from "../../web/receipt.js";
import { sampleLedger, treeHash, treePath } from "./ledger.mjs";
import { run, test } from "./tap.mjs";

globalThis.crypto ??= webcrypto; // before Node 20

test("amounts keep every digit", () => {
    for (const text of [
        "0.000000",
        "12.340000",
        "-0.000001",
        "9007199254.740993",
        "123456789012345.678901",
    ])
        assert.equal(plain(units(text, 6), 6), text);
    assert.equal(units("5", 6), 5000000n);
    assert.equal(units(1234567, 6), 1234567n);
    for (const wrong of ["", "1e3", "1.2345678", "--1", "1,5", "NaN", 0.5, 2 ** 53])
        assert.throws(() => units(wrong, 6), undefined, String(wrong));
});

test("amounts are written for people", () => {
    const text = (amount, decimals = 6) => money(units(amount, decimals), decimals);
    assert.equal(text("12.340000"), "12.34");
    assert.equal(text("0.009214"), "0.009214");
    assert.equal(text("1234567.5"), "1,234,567.50");
    assert.equal(text("-0.5"), "−0.50");
    assert.equal(text("1000", 0), "1,000");
    assert.equal(labelled("6"), "a 6");
    assert.equal(labelled("8"), "an 8");
    assert.equal(labelled("cat"), "“cat”");
});

test("an amount has as many digits as its error allows", () => {
    assert.equal(moneyError(12784321n, 1671234, 6), "12.78 ±\u00a01.67");
    assert.equal(moneyError(9214n, 312.4, 6), "0.00921 ±\u00a00.00031");
    assert.equal(moneyError(5000000n, 0, 6), "5.00 ±\u00a00.00");
    assert.equal(moneyError(1234567n, null, 6), "1.234567");
    assert.equal(moneyError(-1995000n, 250000, 6), "−2.00 ±\u00a00.25");
});

test("trees are those of RFC 6962", async () => {
    const tree = new Tree(),
        leaves = [];
    assert.equal(hex(await tree.root()), treeHash([]).toString("hex"));
    for (let size = 1; size <= 70; size++) {
        leaves.push(Buffer.from(await leafHash(Buffer.from(`leaf ${size}`))));
        await tree.add(leaves.at(-1));
        const root = treeHash(leaves);
        assert.equal(hex(await tree.root()), root.toString("hex"), `size ${size}`);
        for (let i = 0; i < size; i++) {
            const path = treePath(leaves, i);
            assert(await includes(leaves[i], i, size, path, root), `${i} of ${size}`);
            assert(!(await includes(leaves[i], i, size, [...path, root], root)));
            if (size > 1) {
                assert(!(await includes(leaves[i], (i + 1) % size, size, path, root)));
                assert(!(await includes(leaves[i], i, size, path.slice(1), root)));
            }
        }
    }
});

test("tiles have the paths of the specification", () => {
    assert.equal(tilePath("entries", 1234067, 256), "/log/tile/entries/x001/x234/067");
    assert.equal(tilePath(0, 0, 7), "/log/tile/0/000.p/7");
    assert.equal(tilePath(0, 1000, 256), "/log/tile/0/x001/000");
});

const { ledger } = sampleLedger();

async function check(text, expected = {}, vkey = ledger.vkey) {
    const steps = [];
    const result = await verifyReceipt(text, vkey, expected, (name, state) =>
        steps.push(`${name} ${state}`),
    );
    return { ...result, steps };
}

test("a receipt is right, step by step", async () => {
    for (const index of [20, 100, 255, 256, 270]) {
        const text = ledger.receipt(index, "south");
        const { units: own } = ledger.entries[index].postings.find(
            ({ account }) => account === "south",
        );
        const result = await check(text, { index, account: "south", units: BigInt(own) });
        assert.equal(result.verdict, "right");
        assert.deepEqual(result.steps, [
            "file done",
            "key done",
            "signature done",
            "log done",
            "share done",
            "shown done",
        ]);
    }
});

test("no byte of a receipt can change", async () => {
    const text = ledger.receipt(100, "south"),
        bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at++)
        for (const bit of [1, 32]) {
            bytes[at] ^= bit;
            const { verdict } = await check(bytes.toString("utf-8"));
            assert.equal(verdict, "wrong", `byte ${at}, bit ${bit}: ${text.slice(at, at + 20)}`);
            bytes[at] ^= bit;
        }
    for (let size = 0; size < text.length; size += 7)
        assert.equal((await check(text.slice(0, size))).verdict, "wrong");
});

test("the step that failed is named", async () => {
    const text = ledger.receipt(100, "south"),
        other = ledger.receipt(101, "south");
    const withExtra = (change) =>
        text.replace(/extra (\S+)/, (_, extra) => {
            const text = change(Buffer.from(extra, "base64").toString());
            return `extra ${Buffer.from(text).toString("base64")}`;
        });
    const failed = async (...args) => (await check(...args)).failed;
    assert.equal(await failed(text, { units: 1n }), "shown");
    assert.equal(await failed(text, { account: "north" }), "shown");
    assert.equal(
        await failed(withExtra((extra) => extra.replace(/units \d/, (s) => `${s}0`))),
        "share",
    );
    assert.equal(await failed(withExtra((extra) => extra.replace(/label \d/, "label x"))), "log");
    assert.equal(
        await failed(withExtra((extra) => extra.replace("entry 100", "entry 99"))),
        "file",
    );
    assert.equal(
        await failed(text.replace(/\n285\n|\n27\d\n/, (size) => size.replace("2", "3"))),
        "signature",
    );
    assert.equal(await failed(text, {}, ledger.vkey.replace("example", "exbmple")), "key");
    assert.equal(
        await failed(text.replace(/index 100\n\S+/, `index 100\n${other.split("\n")[4]}`)),
        "log",
    );
    assert.equal(await failed("nonsense"), "file");
});

test("a key must agree with its hash", async () => {
    assert.equal((await readVkey(ledger.vkey)).name, "example.com/test");
    for (const wrong of ["", "a+b+c", ledger.vkey.replace("+", "+0"), ledger.vkey.slice(0, -1)])
        await assert.rejects(readVkey(wrong));
});

process.exitCode = await run();
