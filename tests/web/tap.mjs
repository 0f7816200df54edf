// SPDX-License-Identifier: Apache-2.0
// Tests in JavaScript that speak TAP: test(name, function), then await run().
const tests = [];

export function test(name, act) {
    tests.push([name, act]);
}

export async function run() {
    let failures = 0;
    console.log(`1..${tests.length}`);
    for (const [i, [name, act]] of tests.entries()) {
        try {
            await act();
            console.log(`ok ${i + 1} - ${name}`);
        } catch (error) {
            failures++;
            console.log(`not ok ${i + 1} - ${name}`);
            for (const line of String(error.stack ?? error).split("\n")) console.log(`# ${line}`);
        }
    }
    return failures ? 1 : 0;
}
