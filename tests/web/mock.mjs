// SPDX-License-Identifier: Apache-2.0
// A server of the page with made-up data, for tests alone: the HTTP contract of docs/serve.md with
// a ledger in memory. Run by itself, it prints its address: node mock.mjs [PORT]
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import zlib from "node:zlib";
import { fileURLToPath } from "node:url";
import {
    CURRENCY,
    DECIMALS,
    PROVIDERS,
    money,
    predict,
    sampleLedger,
    sha256,
    unitsOf,
} from "./ledger.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const WEB = path.join(HERE, "..", "..", "web");
const TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
};
const HEADERS = {
    "Content-Security-Policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; " +
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
        "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
};
const PRICE = 1e6;

export const LOGINS = {
    customer: { name: "acme", account: "acme", password: "acme's password" },
    provider: { name: "north", account: "north", password: "north's password" },
    operator: { name: "ada", account: "ada", password: "ada's password" },
    second: { name: "bob", account: "bob", password: "bob's password" },
    auditor: { name: "carol", account: "carol", password: "carol's password" },
};

class Refusal extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

// A grey picture of 28 by 28 with a blot, as PNG.
function png(seed) {
    const rows = Buffer.alloc(28 * 29);
    for (let y = 0; y < 28; y++)
        for (let x = 0; x < 28; x++) {
            const d = Math.hypot(x - 14 - 3 * Math.sin(seed), (y - 14) * 0.7);
            rows[29 * y + 1 + x] = Math.max(0, 255 - 60 * Math.abs(d - 5 - (seed % 3)));
        }
    const chunk = (kind, data) => {
        const body = Buffer.concat([Buffer.from(kind), data]),
            out = Buffer.alloc(body.length + 8);
        out.writeUInt32BE(data.length);
        body.copy(out, 4);
        out.writeUInt32BE(crc(body), body.length + 4);
        return out;
    };
    const head = Buffer.from([0, 0, 0, 28, 0, 0, 0, 28, 8, 0, 0, 0, 0]);
    return Buffer.concat([
        Buffer.from("89504e470d0a1a0a", "hex"),
        chunk("IHDR", head),
        chunk("IDAT", zlib.deflateSync(rows)),
        chunk("IEND", Buffer.alloc(0)),
    ]);
}

function crc(bytes) {
    let value = ~0;
    for (const byte of bytes) {
        value ^= byte;
        for (let k = 0; k < 8; k++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
    }
    return ~value >>> 0;
}

export class Mock {
    sessions = new Map();
    proposals = [];
    keys = new Map();

    constructor() {
        Object.assign(this, sampleLedger());
    }

    // ---- who asks ----

    session(request) {
        const id = /(?:^|; )fds=(\w+)/.exec(request.headers.cookie ?? "")?.[1];
        return this.sessions.get(id);
    }

    need(request, ...roles) {
        const session = this.session(request);
        if (!session) throw new Refusal(401, "log in first");
        if (!roles.includes(session.role)) throw new Refusal(403, "this role may not do this");
        if (request.method === "POST" && request.headers["x-fds-token"] !== session.token)
            throw new Refusal(403, "the session's token is missing");
        return session;
    }

    me(session) {
        const models = [
            {
                name: "mnist",
                version: "e794e9c45773d9c1",
                shape: [1, 28, 28],
                classes: Array.from({ length: 10 }, (_, i) => String(i)),
            },
            { name: "houses", version: "5a1f0c33b2e4d701", shape: [3, 1, 1], classes: [] },
        ];
        if (!session) return { role: "nobody" };
        return {
            role: session.role,
            account: session.account,
            name: session.name,
            token: session.token,
            currency: CURRENCY,
            decimals: DECIMALS,
            price: money(PRICE),
            models,
            vkey: this.ledger.vkey,
        };
    }

    login({ name, password }) {
        const found = Object.entries(LOGINS).find(([, login]) => login.name === name);
        if (!found || found[1].password !== password)
            throw new Refusal(401, "name or password is wrong");
        const role = found[0] === "second" ? "operator" : found[0],
            count = this.sessions.size;
        const id = sha256("session", String(count)).toString("hex");
        const session = { role, name, account: name, token: sha256("token", id).toString("hex") };
        this.sessions.set(id, session);
        return [this.me(session), { "Set-Cookie": `fds=${id}; HttpOnly; SameSite=Strict; Path=/` }];
    }

    // Whose entries: providers and customers see their own, the others those they ask for.
    viewer(session, asked) {
        return session.role === "provider" || session.role === "customer"
            ? session.account
            : asked || null;
    }

    // ---- reading ----

    account(name) {
        const account = this.ledger.accounts.get(name),
            sums = new Map();
        if (!account) throw new Refusal(404, "there is no such account");
        for (const { kind, at, label, postings } of this.ledger.entries) {
            const own =
                kind === "prediction" &&
                postings.find((p) => p.account === name && p.value !== undefined);
            if (!own || own.units === 0) continue;
            const key = `${at.slice(0, 10)} ${label}`,
                sum = sums.get(key) ?? [0, 0, 0];
            sums.set(key, [sum[0] + own.units, sum[1] + 1, sum[2] + own.unit_error]);
        }
        return {
            name,
            kind: account.kind,
            balance: money(account.balance),
            earnings: [...sums].map(([key, [units, count, error]]) => ({
                day: key.slice(0, 10),
                label: key.slice(11),
                amount: money(units),
                count,
                error: money(Math.round(error)),
            })),
            total: { amount: money(account.earned), count: account.predictions },
        };
    }

    entries(session, query) {
        const account = this.viewer(session, query.get("account"));
        const before = Number(query.get("before") ?? this.ledger.entries.length);
        const limit = Number(query.get("limit") ?? 50),
            own = session.role === "operator" || session.role === "auditor" ? null : account;
        const found = this.ledger.entries
            .filter(
                ({ index, postings }) =>
                    index < before &&
                    (!account || postings.some((posting) => posting.account === account)),
            )
            .reverse();
        return {
            entries: found.slice(0, limit).map(({ index }) => this.ledger.view(index, own)),
            more: found.length > limit,
        };
    }

    // A verification takes two looks.
    verify() {
        this.verifying = { stage: "copy", done: 40, total: 100 };
        this.verifyError = null;
        return { verifying: this.verifying };
    }

    goOn() {
        const isOver = this.verifying.stage === "verify";
        this.verifying = isOver ? null : { stage: "verify", done: 70, total: 100 };
        if (isOver) this.verifiedAt = "2026-11-18T05:00:00Z";
    }

    cancelVerify() {
        this.verifying = null;
        this.verifyError = "cancelled";
        return { verifying: null };
    }

    // As fds_auditor_report has it: one check alarms, and one could say nothing yet.
    audit() {
        const verifying = this.verifying;
        if (verifying) this.goOn();
        const check = (name, verdict, answer, evidence, more = {}) => ({
            check: name,
            verdict,
            answer,
            evidence,
            e: 1.2,
            needed: 100,
            predictions: 260,
            alarm_at: null,
            correction: null,
            ...more,
        });
        const party = (name, paid, owed, e, at = null) => ({
            ...{ name, paid, owed, ratio: paid / owed, lacks_low: owed - paid - 9e4, e },
            ...{ lacks_high: owed - paid + 9e4, needed: 900, predictions: 130, alarm_at: at },
        });
        const known = Boolean(this.verifiedAt);
        return {
            format: "fds-audit 1",
            verdict: "alarm",
            alpha: 0.01,
            entries: this.ledger.entries.length,
            predictions: 260,
            audited: 130,
            missed: 2,
            audit_share: 0.05,
            waiting: 1,
            verifying: verifying ?? null,
            verified_at: this.verifiedAt ?? null,
            verify_error: this.verifyError ?? null,
            checks: [
                check("ledger", known ? "ok" : "unknown", known ? "The ledger is right." : "The ledger was not verified.", []),
                check("truth", "ok", "The explainer misallocates no more than at fit time.", [
                    { misallocated: 0.05, at_least: 0.03, level: 0.05, tolerance: 0.02 },
                ]),
                check(
                    "provider",
                    "alarm",
                    "1 of 2 providers is paid wrongly, first of all north.",
                    [party("north", 9.5e6, 1e7, 1e4, 41), party("south", 5e6, 4.5e6, 3.5)],
                    { e: 1e4, needed: 900, alarm_at: 41, correction: { postings: [{}, {}] } },
                ),
                check("coverage", "ok", "The stated 95 % intervals hold.", [
                    { inside: 0.95, stated: 0.95, least: 0.9 },
                ]),
                check("groups", "unknown", "Unknown: no groups were named.", [], { e: null }),
                check("drift", "ok", "Inputs are like those of the fit.", [{ mean_rank: 0.51 }]),
                check("self", "ok", "No customer’s predictions favour a provider.", [
                    {
                        ...{ customer: "acme", provider: "north", predictions: 260, share: 0.51 },
                        ...{ usual: 0.5, evidence: 0.1, alarm_at: null },
                    },
                ]),
            ],
        };
    }

    overview() {
        const sum = (test) =>
            [...this.ledger.accounts.values()].filter(test).reduce((s, a) => s + a.balance, 0);
        const of = (kind) =>
            this.ledger.entries.filter((e) => e.kind === kind).reduce((s, e) => s + e.amount, 0);
        const customers = sum(({ kind }) => kind === "customer"),
            providers = sum(({ kind }) => kind === "provider");
        const fees = this.ledger.accounts.get("fees").balance,
            into = of("topup"),
            out = of("payout");
        return {
            entries: this.ledger.entries.length,
            checkpoint: this.ledger.checkpoint(),
            vkey: this.ledger.vkey,
            money: {
                in: money(into),
                out: money(out),
                customers: money(customers),
                providers: money(providers),
                fees: money(fees),
                difference: money(into - out - customers - providers - fees),
            },
            requests_per_s: 41.5,
            p50_ms: 1.84,
            p99_ms: 12.2,
            paid: 260,
            failures: 0,
            models: [{ name: "mnist" }, { name: "houses" }],
            uptime_s: 86400 * 3,
        };
    }

    samples() {
        return {
            samples: Array.from({ length: 10 }, (_, i) => ({
                model: "mnist",
                player: i,
                name: `sample ${i}`,
                label: String(i),
                value: 0.08 / (i + 1),
                count: 260,
                picture: i === 9 ? null : `data:image/png;base64,${png(i).toString("base64")}`,
            })),
        };
    }

    // ---- writing ----

    topup(session, body) {
        if (!this.ledger.accounts.has(body.account)) {
            if (!body.new) throw new Refusal(404, `there is no customer ${body.account}`);
            this.ledger.open(body.account, "customer");
        }
        const units = unitsOf(body.amount);
        return {
            index: this.ledger.add({
                kind: "topup",
                customer: body.account,
                amount: units,
                text: { ref: body.ref, operator: session.name },
                postings: [
                    { account: body.account, units },
                    { account: "cash", units: -units },
                ],
            }),
        };
    }

    propose(session, kind, what) {
        const id = this.ledger.add({ kind: "audit", text: { propose: kind, by: session.name } });
        this.proposals.push({
            id,
            kind,
            by: session.name,
            at: new Date(this.ledger.at).toISOString(),
            what,
        });
        return id;
    }

    payout(session, { minimum, ref }) {
        const payouts = PROVIDERS.map((name) => this.ledger.accounts.get(name))
            .map(({ name, balance }) => ({
                account: name,
                amount: money(Math.floor(balance / 1e4) * 1e4),
            }))
            .filter(({ amount }) => unitsOf(amount) >= unitsOf(minimum));
        return { proposal: this.propose(session, "payout", { ref, minimum, payouts }), payouts };
    }

    carryOut({ kind, what }) {
        if (kind === "payout")
            return what.payouts.map(({ account, amount }) =>
                this.ledger.add({
                    kind: "payout",
                    account,
                    amount: unitsOf(amount),
                    text: { ref: what.ref },
                    postings: [
                        { account, units: -unitsOf(amount) },
                        { account: "cash", units: unitsOf(amount) },
                    ],
                }),
            );
        return [
            this.ledger.add({
                kind: "correction",
                ref: what.of,
                text: { reason: what.reason },
                postings: what.postings.map(({ account, amount }) => ({
                    account,
                    units: unitsOf(amount),
                })),
            }),
        ];
    }

    decide(session, id, isAgreed) {
        const proposal = this.proposals.find((one) => one.id === id);
        if (!proposal) throw new Refusal(404, "there is no such proposal");
        if (isAgreed && proposal.by === session.name)
            throw new Refusal(403, "a second operator must agree");
        this.proposals = this.proposals.filter((one) => one !== proposal);
        return { indexes: isAgreed ? this.carryOut(proposal) : [] };
    }

    // "mnist" says what all pixels sum to, and "houses" the sum of its numbers.
    infer(session, request, model, { inputs: [input] }) {
        const key = request.headers["idempotency-key"];
        if (this.keys.has(key)) return this.keys.get(key);
        const sum = input.data.reduce((total, value) => total + value, 0);
        const label = model === "mnist" ? sum % 10 : sum;
        if (this.ledger.accounts.get(session.account).balance < PRICE)
            throw new Refusal(402, "the balance is too low");
        const index = predict(this.ledger, this.next, session.account, String(label), PRICE, 0.91);
        const { postings, amount, fee } = this.ledger.entries[index];
        const tensor = (name, data) => ({ name, datatype: "FP64", shape: [1, data.length], data });
        const answer = {
            model_name: `${model}.explain`,
            outputs: [
                ...(model === "houses"
                    ? [tensor("prediction", [label])]
                    : [
                          tensor("label", [String(label)]),
                          tensor(
                              "probabilities",
                              Array.from({ length: 10 }, (_, i) => (i === label ? 0.91 : 0.01)),
                          ),
                      ]),
                tensor(
                    "shares",
                    postings.slice(1, -1).map(({ units }) => units / (amount - fee)),
                ),
                tensor("payees", PROVIDERS),
                tensor("receipt", [index]),
            ],
        };
        this.keys.set(key, answer);
        return answer;
    }

    // ---- HTTP ----

    get(request, where, query) {
        const all = ["customer", "provider", "operator", "auditor"],
            see = ["operator", "auditor"];
        if (where === "me") return this.me(this.session(request));
        if (where === "account")
            return this.account(this.viewer(this.need(request, ...all), query.get("name")));
        if (where === "entries") return this.entries(this.need(request, ...all), query);
        if (where === "entry") {
            const session = this.need(request, ...all);
            return this.ledger.view(
                Number(query.get("index")),
                see.includes(session.role) ? null : session.account,
            );
        }
        if (where === "samples") return this.need(request, "provider", ...see) && this.samples();
        this.need(request, ...see);
        if (where === "overview") return this.overview();
        if (where === "audit") return this.audit();
        if (where === "proposals") return { proposals: this.proposals };
        if (where === "accounts")
            return {
                accounts: [...this.ledger.accounts.values()].map((account) => ({
                    ...account,
                    balance: money(account.balance),
                    earned: money(account.earned),
                })),
            };
        throw new Refusal(404, "there is no such page");
    }

    text(request, where, query) {
        const session = this.need(request, "provider", "customer", "operator", "auditor");
        const account = this.viewer(session, query.get("account"));
        if (where === "receipt") {
            const receipt = this.ledger.receipt(Number(query.get("index")), account);
            if (!receipt) throw new Refusal(404, "the entry has no posting of this account");
            return ["text/plain", receipt, {}];
        }
        const rows = this.ledger.entries.flatMap(({ at, index, kind, postings }) =>
            postings
                .filter(
                    (posting) =>
                        posting.account === account || (where === "payouts" && kind === "payout"),
                )
                .map(({ units }) => `${at},${index},${kind},${money(units)}\n`),
        );
        return [
            "text/csv",
            `date,entry,kind,amount\n${rows.join("")}`,
            { "Content-Disposition": `attachment; filename="${where}.csv"` },
        ];
    }

    post(request, where, body) {
        if (where === "login") return this.login(body);
        if (where === "logout") {
            const id = /fds=(\w+)/.exec(request.headers.cookie ?? "")?.[1];
            this.sessions.delete(id);
            return [{}, { "Set-Cookie": "fds=; Max-Age=0; Path=/" }];
        }
        const model = /^models\/(mnist|houses)\.explain\/infer$/.exec(where)?.[1];
        if (model) return [this.infer(this.need(request, "customer"), request, model, body), {}];
        if (where === "audit/verify")
            return [this.need(request, "operator", "auditor") && this.verify(), {}];
        if (where === "audit/cancel")
            return [this.need(request, "operator", "auditor") && this.cancelVerify(), {}];
        const session = this.need(request, "operator");
        if (where === "topup") return [this.topup(session, body), {}];
        if (where === "payout") return [this.payout(session, body), {}];
        if (where === "correct") return [{ proposal: this.propose(session, "correct", body) }, {}];
        if (where === "proposals/agree") return [this.decide(session, body.id, true), {}];
        if (where === "proposals/refuse") return [this.decide(session, body.id, false), {}];
        throw new Refusal(404, "there is no such page");
    }

    async answer(request, reply) {
        const url = new URL(request.url, "http://localhost"),
            name = url.pathname;
        const send = (status, type, body, more = {}) => {
            reply.writeHead(status, { ...HEADERS, "Content-Type": type, ...more });
            reply.end(body);
        };
        const json = (body, more) => send(200, "application/json", JSON.stringify(body), more);
        try {
            if (name.startsWith("/log/")) {
                const file = this.ledger.file(name.slice(5));
                if (!file) throw new Refusal(404, "the log has no such file");
                return send(200, "application/octet-stream", file);
            }
            if (name.startsWith("/api/")) {
                const where = name.slice(5);
                if (request.method === "POST") {
                    const parts = [];
                    for await (const part of request) parts.push(part);
                    return json(
                        ...this.post(
                            request,
                            decodeURIComponent(where),
                            JSON.parse(Buffer.concat(parts)),
                        ),
                    );
                }
                if (["receipt", "statement", "payouts"].includes(where)) {
                    const [type, body, more] = this.text(request, where, url.searchParams);
                    return send(200, type, body, more);
                }
                return json(this.get(request, where, url.searchParams));
            }
            const file = name === "/" ? "index.html" : name.slice(1);
            if (!fs.readdirSync(WEB).includes(file) || !TYPES[path.extname(file)])
                throw new Refusal(404, "there is no such page");
            return send(200, TYPES[path.extname(file)], fs.readFileSync(path.join(WEB, file)));
        } catch (error) {
            return send(
                error.status ?? 500,
                "application/json",
                JSON.stringify({ error: error.message }),
            );
        }
    }

    start(port = 0) {
        this.server = http.createServer((request, reply) => this.answer(request, reply));
        return new Promise((resolve) => {
            this.server.listen(port, "127.0.0.1", () =>
                resolve(`http://127.0.0.1:${this.server.address().port}`),
            );
        });
    }

    stop() {
        this.server.close();
        this.server.closeAllConnections();
    }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
    console.log(await new Mock().start(Number(process.argv[2] ?? 0)));
