// SPDX-License-Identifier: Apache-2.0
// A canvas to draw a digit on, by pointer or by choosing an example, and the drawing as a sample of
// the model: scaled and centred as the digits of MNIST are.
import { button, h } from "./dom.js";

const SIZE = 280,
    PEN = 22;

// Strokes of the example digits, in parts of the canvas.
const EXAMPLES = [
    [
        [
            0.5, 0.15, 0.36, 0.2, 0.29, 0.35, 0.28, 0.55, 0.32, 0.75, 0.42, 0.85, 0.55, 0.85, 0.66,
            0.75, 0.72, 0.55, 0.7, 0.33, 0.62, 0.19, 0.5, 0.15,
        ],
    ],
    [[0.4, 0.3, 0.54, 0.15, 0.52, 0.5, 0.5, 0.85]],
    [
        [
            0.3, 0.32, 0.36, 0.19, 0.5, 0.14, 0.64, 0.2, 0.68, 0.34, 0.6, 0.5, 0.42, 0.68, 0.28,
            0.84, 0.5, 0.82, 0.74, 0.84,
        ],
    ],
    [
        [
            0.3, 0.22, 0.45, 0.14, 0.62, 0.19, 0.66, 0.32, 0.57, 0.44, 0.45, 0.48, 0.6, 0.52, 0.69,
            0.65, 0.63, 0.8, 0.46, 0.86, 0.3, 0.8,
        ],
    ],
    [
        [0.4, 0.15, 0.33, 0.35, 0.28, 0.54, 0.45, 0.53, 0.72, 0.52],
        [0.62, 0.3, 0.6, 0.55, 0.57, 0.86],
    ],
    [
        [
            0.68, 0.16, 0.38, 0.16, 0.34, 0.45, 0.5, 0.41, 0.64, 0.48, 0.69, 0.63, 0.62, 0.79, 0.46,
            0.86, 0.29, 0.8,
        ],
    ],
    [
        [
            0.6, 0.14, 0.44, 0.28, 0.33, 0.5, 0.31, 0.7, 0.4, 0.84, 0.55, 0.85, 0.66, 0.75, 0.66,
            0.61, 0.55, 0.53, 0.42, 0.57, 0.33, 0.68,
        ],
    ],
    [[0.28, 0.18, 0.5, 0.17, 0.72, 0.16, 0.62, 0.4, 0.5, 0.62, 0.43, 0.86]],
    [
        [
            0.5, 0.48, 0.36, 0.38, 0.36, 0.23, 0.5, 0.15, 0.64, 0.22, 0.64, 0.36, 0.5, 0.48, 0.35,
            0.6, 0.34, 0.76, 0.5, 0.86, 0.66, 0.77, 0.65, 0.6, 0.5, 0.48,
        ],
    ],
    [
        [
            0.66, 0.32, 0.55, 0.16, 0.39, 0.2, 0.34, 0.35, 0.44, 0.47, 0.58, 0.43, 0.66, 0.32, 0.64,
            0.55, 0.58, 0.86,
        ],
    ],
];

// A smooth line through the points (x, y, x, y, ...) in pixels.
function stroke(context, points) {
    context.beginPath();
    context.moveTo(points[0], points[1]);
    for (let i = 2; i + 3 < points.length; i += 2)
        context.quadraticCurveTo(
            points[i],
            points[i + 1],
            (points[i] + points[i + 2]) / 2,
            (points[i + 1] + points[i + 3]) / 2,
        );
    context.lineTo(points.at(-2), points.at(-1));
    context.stroke();
}

// White ink on black, whatever the colours of the page: the canvas is the sample.
function prepare(context) {
    context.fillStyle = "#000";
    context.fillRect(0, 0, SIZE, SIZE);
    Object.assign(context, {
        strokeStyle: "#fff",
        lineWidth: PEN,
        lineCap: "round",
        lineJoin: "round",
    });
}

// Where there is ink, and its centre of mass; null if there is none.
function measure(data) {
    let left = SIZE,
        right = -1,
        top = SIZE,
        bottom = -1,
        mass = 0,
        x = 0,
        y = 0;
    for (let i = 0; i < SIZE * SIZE; i++) {
        const ink = data[4 * i],
            column = i % SIZE,
            line = Math.floor(i / SIZE);
        if (ink < 16) continue;
        left = Math.min(left, column);
        right = Math.max(right, column);
        top = Math.min(top, line);
        bottom = Math.max(bottom, line);
        mass += ink;
        x += ink * (column + 0.5);
        y += ink * (line + 0.5);
    }
    return mass
        ? { width: right - left + 1, height: bottom - top + 1, x: x / mass, y: y / mass }
        : null;
}

// MNIST: the ink fits a square of 20 of 28 pixels, its centre of mass is the middle. Gives the
// pixels of one channel, 0 to 255, or null if nothing is drawn.
function sample(canvas, width, height) {
    const ink = measure(canvas.getContext("2d").getImageData(0, 0, SIZE, SIZE).data);
    if (!ink) return null;
    const scale = (Math.min(width, height) * 20) / 28 / Math.max(ink.width, ink.height);
    const small = h("canvas", { width, height }),
        context = small.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.fillRect(0, 0, width, height);
    context.setTransform(scale, 0, 0, scale, width / 2 - scale * ink.x, height / 2 - scale * ink.y);
    context.drawImage(canvas, 0, 0);
    const data = context.getImageData(0, 0, width, height).data;
    return Array.from({ length: width * height }, (_, i) => data[4 * i]);
}

function listen(canvas, context, points, onChange) {
    const at = (event) => {
        const box = canvas.getBoundingClientRect();
        return [
            ((event.clientX - box.left) * SIZE) / box.width,
            ((event.clientY - box.top) * SIZE) / box.height,
        ];
    };
    canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        points.push([...at(event), ...at(event)]);
        stroke(context, points.at(-1));
        onChange();
    });
    canvas.addEventListener("pointermove", (event) => {
        if (!canvas.hasPointerCapture(event.pointerId)) return;
        const line = points.at(-1);
        line.push(...at(event));
        stroke(context, line.slice(-4));
    });
}

// The drawing board: {node, sample(width, height)}. `onChange` is called when the drawing changes.
export function board(onChange) {
    const canvas = h("canvas", {
        class: "board",
        width: SIZE,
        height: SIZE,
        role: "img",
        "aria-label": "Drawing: empty",
    });
    const context = canvas.getContext("2d", { willReadFrequently: true }),
        points = [];
    const changed = (label) => {
        canvas.setAttribute("aria-label", `Drawing: ${label}`);
        onChange(label);
    };
    const clear = (label = "empty") => {
        points.length = 0;
        prepare(context);
        changed(label);
    };
    const example = (digit) => {
        clear(`the example ${digit}`);
        for (const line of EXAMPLES[digit])
            stroke(
                context,
                line.map((part) => part * SIZE),
            );
    };
    prepare(context);
    listen(canvas, context, points, () => changed("your own"));
    const node = h(
        "div",
        { class: "drawing" },
        canvas,
        h(
            "div",
            { role: "group", "aria-label": "Examples", class: "examples" },
            h("span", { class: "soft" }, "Or take an example:"),
            EXAMPLES.map((_, digit) =>
                button(String(digit), () => example(digit), {
                    class: "small",
                    "aria-label": `Draw an example of ${digit}`,
                }),
            ),
            button("Clear", () => clear(), { class: "small" }),
        ),
    );
    return { node, sample: (width, height) => sample(canvas, width, height) };
}
