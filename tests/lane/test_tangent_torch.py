#!/usr/bin/python3
"""Our tangent kernels against PyTorch's gradients: one backward for each sample and output,
products in double precision.

Usage: test_tangent_torch.py WITNESS MNIST_SAMPLE   (prints TAP; skips without PyTorch)
"""
import json
import subprocess
import tempfile

from test_torch import (CNN, LENET5, RESIDUAL, WIDE, WITNESS, np, random_images, read_mnist,
                        read_safetensors, sequential, torch)

ROWS, COLUMNS = 30, 50  # that are looked at, of the kernel of 30 samples with all images


def gradients(model, x):
    rows, weights = [], list(model.parameters())
    for sample in x:
        y = model(sample[None])[0]
        rows.append(torch.cat([g.reshape(-1) for out in y for g in torch.autograd.grad(
            out, weights, retain_graph=True)]).double())
    return torch.stack(rows)


def compare(text, images):
    """The greatest relative difference of an entry, and of an entry from the greatest of all."""
    with tempfile.TemporaryDirectory() as folder:
        for name, values in images.items():
            np.save(f"{folder}/{name}.npy", values)
        subprocess.run([WITNESS, folder, text, str(ROWS), "tangent"], check=True)
        init, _ = read_safetensors(f"{folder}/init.safetensors")
        _, meta = read_safetensors(f"{folder}/trained.safetensors")
        index = json.load(open(f"{folder}/order.json"))["index"]
        ours = np.fromfile(f"{folder}/kernel.f32", np.float32).reshape(ROWS, -1)
    shape = json.loads(meta["fds.input"])
    mean = torch.tensor(json.loads(meta["fds.mean"])).reshape(1, -1, 1, 1)
    std = torch.tensor(json.loads(meta["fds.std"])).reshape(1, -1, 1, 1)

    def normalised(values):
        scale = 255.0 if values.dtype == np.uint8 else 1.0
        values = torch.from_numpy(values.astype(np.float32)) / scale
        return (values.reshape(-1, *shape) - mean) / std

    model, _ = sequential(meta["fds.network"], tuple(shape))
    model.load_state_dict(init)
    columns = np.linspace(0, ours.shape[1] - 1, COLUMNS).astype(int)
    a, b = normalised(images["x_train"][index]), normalised(images["x_test"][columns])
    classes = int(meta["fds.network"].split(":")[-1])
    theirs = (gradients(model, a) @ gradients(model, b).T).numpy() / classes
    off = np.abs(ours[:, columns] - theirs)
    return (off / np.abs(theirs)).max(), off.max() / np.abs(theirs).max()


def main():
    torch.set_num_threads(1)
    mnist, source = read_mnist()
    odd = random_images(3, 17, 13, 5)
    cases = [("lenet5", LENET5, mnist), ("cnn", CNN, mnist), ("mlp", "mlp", mnist),
             ("residual blocks", RESIDUAL, mnist), ("wide convolutions", WIDE, mnist),
             ("odd shapes", "conv:5x3p1,relu,maxpool:3,conv:7x4p2,relu,fc:19,relu,fc:5", odd)]
    print(f"1..{len(cases)}")
    for number, (name, text, images) in enumerate(cases, 1):
        relative, greatest = compare(text, images)
        right = greatest <= 1e-5 and (relative <= 1e-4 or images is odd)
        print(f"{'ok' if right else 'not ok'} {number} - the tangent kernel of {name} agrees")
        print(f"# {ROWS} x {COLUMNS} ({source}): entries within {relative:.1e}, of the greatest "
              f"{greatest:.1e}", flush=True)


if __name__ == "__main__":
    main()
