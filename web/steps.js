// SPDX-License-Identifier: Apache-2.0
// Steps of a check, each with a sign, a word for those who do not see it, and a remark.
import { h } from "./dom.js";
import { plural } from "./format.js";

const STATES = {
    waiting: ["·", "Not reached"],
    done: ["✓", "Passed"],
    failed: ["✗", "Failed"],
    unknown: ["?", "Not checked"],
};

class Step {
    constructor(name, title) {
        this.sign = h("span", { class: "sign", "aria-hidden": "true" });
        this.word = h("span", { class: "quiet" });
        this.remark = h("small");
        this.bar = h("progress", { max: 1, value: 0, "aria-label": title });
        this.body = h("span", {}, this.word, title, this.remark);
        this.node = h("li", { "data-step": name }, this.sign, this.body);
        this.tell("waiting");
    }

    tell(state, remark = "") {
        const [sign, word] = STATES[state];
        this.bar.remove();
        this.node.className = state;
        this.sign.textContent = sign;
        this.word.textContent = `${word}: `;
        this.remark.textContent = remark;
    }

    progress(done, of) {
        if (!this.bar.isConnected) this.body.append(this.bar);
        this.bar.max = Math.max(1, of);
        this.bar.value = done;
        const all = plural(of, "entry", "entries");
        this.remark.textContent = `${done.toLocaleString("en")} of ${all}`;
    }
}

// steps: [[name, title], ...]. The verdict above them is told to screen readers when it changes.
export class Steps {
    constructor(steps) {
        this.steps = Object.fromEntries(
            steps.map(([name, title]) => [name, new Step(name, title)]),
        );
        this.verdict = h("p", { class: "verdict", role: "status" }, "Checking …");
        const items = Object.values(this.steps).map(({ node }) => node);
        this.nodes = [this.verdict, h("ol", { class: "lights steps" }, items)];
    }

    tell(name, state, remark) {
        this.steps[name].tell(state, remark);
    }

    progress(name, done, of) {
        this.steps[name].progress(done, of);
    }

    // kind: "right", "wrong" or "unsigned"
    conclude(kind, text) {
        for (const step of Object.values(this.steps))
            if (step.node.className === "waiting") step.tell("waiting");
        this.verdict.className = `verdict ${kind}`;
        this.verdict.textContent = text;
    }
}
