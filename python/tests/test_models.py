# SPDX-License-Identifier: Apache-2.0
"""Models of the user's in worker processes: any form, any failure, killed and resumed."""
import io
import logging
import os
import pathlib
import pickle
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fds
import reference
from fds import models, worker
from reference import Centroids, Checking, Failing, Nan, Noisy, Predictor, Seeded, Silent, Suicidal, games, shapley

TESTS = pathlib.Path(__file__).resolve().parent


def exact(blobs, model, n=5, **how):
    X, y, Xtest, ytest = blobs
    return fds.value(X[:n], y[:n], Xtest[:8], ytest[:8], model=model, method="exact", **{"n_jobs": 1, **how})


def truth(blobs, make, n=5):
    X, y, Xtest, ytest = blobs
    return shapley(games(make, X[:n], y[:n], Xtest[:8], ytest[:8])[1], n)


# ---- models of all kinds ----

@pytest.mark.parametrize("model", [
    make_pipeline(StandardScaler(), LogisticRegression(C=2.0)), GradientBoostingClassifier(n_estimators=5),
    RandomForestClassifier(n_estimators=4), Centroids(2.0),
], ids=lambda model: type(model).__name__)
def test_any_classifier_is_a_utility(blobs, model):
    def make():
        return worker.fresh(model, 0)
    assert np.abs(exact(blobs, model).values - truth(blobs, make)).max() < 1e-9


def test_one_and_two_workers_give_the_same_bits(blobs):
    X, y, Xtest, ytest = blobs
    one, two = (fds.value(X[:10], y[:10], Xtest, ytest, model=RandomForestClassifier(n_estimators=3), coalitions=40,
                          random_state=4, n_jobs=jobs) for jobs in (1, 2))
    assert one.values.tobytes() == two.values.tobytes()


def test_random_numbers_of_models_are_seeded(blobs):
    first, second = exact(blobs, Seeded(), random_state=1), exact(blobs, Seeded(), random_state=1)
    assert first.values.tobytes() == second.values.tobytes()
    assert (first.values != exact(blobs, Seeded(), random_state=2).values).any()


def test_a_model_without_probabilities_is_certain(blobs, caplog):
    found = exact(blobs, Predictor())
    assert "no predict_proba" in caplog.text
    assert np.isfinite(found.values).all() and found.full * 8 == pytest.approx(round(found.full * 8))


def test_a_model_may_tell_no_classes(blobs):
    found = exact(blobs, Silent(), n=6)
    assert found.values.sum() == pytest.approx(found.full - found.empty, abs=1e-6)


@pytest.mark.parametrize("X,dtype", [(np.zeros((6, 4, 3)), "float64"), (np.zeros((6, 4, 3), np.float32), "float32"),
                                     (np.zeros((6, 4, 3), np.uint8), "uint8"), (np.zeros((6, 5, 4, 3)), "float64"),
                                     (np.zeros((6, 3, 5, 4), np.uint8), "uint8"), (np.zeros((6, 7), int), "float64")])
def test_samples_come_as_they_were_given(X, dtype):
    X = X + np.arange(X.size).reshape(X.shape).astype(X.dtype) % 250
    labels = np.array(["ja", "nein", "ä"])[np.arange(6) % 3]
    model = Checking(shape=X.shape[1:], dtype=dtype, labels=("ja", "nein", "ä"))
    found = fds.value(X, labels, X[:3], labels[:3], model=model, method="loo", n_jobs=1)
    assert len(found) == 6


def test_torch_networks(blobs):
    torch = pytest.importorskip("torch")

    def build(classes):
        return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, classes))

    model = fds.torch_model(build, epochs=3, lr=0.05)
    found = exact(blobs, model, n=4)
    game = games(lambda: worker_fit(model), *(part[:4] if i < 2 else part[:8] for i, part in enumerate(blobs)))[1]
    assert np.abs(found.values - shapley(game, 4)).max() < 1e-6
    with pytest.raises(fds.UsageError, match="function that returns a new network"):
        fds.torch_model(torch.nn.Linear(2, 2))


def worker_fit(model):
    worker.seed_all(0)
    return worker.fresh(model, 0)


def test_networks_by_text(blobs):
    found = exact(blobs, "fc:4,tanh,fc:classes", utility="retrain:5")
    assert found.about["network"].startswith("fc:4")


# ---- failures ----

@pytest.mark.parametrize("model,text", [(Failing(), "five are too many"), (Nan(), "nan"), (Noisy(), "random numbers")])
def test_a_model_that_fails_is_told(blobs, model, text, caplog):
    with pytest.raises(fds.ExternalError) as caught:
        exact(blobs, model, n=6)
    assert text in str(caught.value) and "FDS_" not in str(caught.value)


def test_the_traceback_of_a_model_is_logged(blobs, caplog):
    with pytest.raises(fds.ExternalError, match="coalition of"):
        exact(blobs, Failing(), n=6)
    assert "reference.py" in caplog.text and "RuntimeError" in caplog.text


def test_noise_is_allowed_if_asked(blobs):
    found = exact(blobs, Noisy(), allow_noise=True)
    assert (found.stderr > 0).all() and found.about["noise"] > 0


def test_a_killed_worker_is_replaced(blobs, tmp_path):
    flag = tmp_path / "flag"
    flag.touch()
    found = exact(blobs, Suicidal(str(flag)))
    assert not flag.exists()
    assert np.abs(found.values - truth(blobs, Centroids)).max() < 1e-9


@pytest.mark.parametrize("model,text", [
    (object(), "fit and predict_proba"), (LogisticRegression, "LogisticRegression()"), (open(os.devnull), "fit"),
])
def test_what_is_no_model_is_refused(blobs, model, text):
    with pytest.raises(fds.UsageError) as caught:
        exact(blobs, model)
    assert text in str(caught.value)


def test_a_model_that_cannot_travel_is_refused_with_advice(blobs):
    class Stuck(Centroids):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

    with pytest.raises(fds.UsageError, match="module of its own"):
        exact(blobs, Stuck())


# ---- where classes are defined ----

SCRIPT = """
import numpy as np, sys
import fds
{imports}

class Own:
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.p = np.array([(y == c).mean() for c in self.classes_])
        return self
    def predict_proba(self, X):
        return np.tile(self.p, (len(X), 1))

{guard}
X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
r = fds.value(X, y, X, y, model=Own(), method="exact", n_jobs=1)
print("sum", abs(round(float(r.values.sum()), 6)), r.names[0])
"""


def run_script(tmp_path, imports="", guard="if True:", stdin=False):
    body = SCRIPT.format(imports=imports, guard="")
    if guard:
        head, tail = body.split("\nX, y = ")
        body = head + f"\n{guard}\n" + textwrap.indent("X, y = " + tail, "    ")
    path = tmp_path / "main.py"
    path.write_text(body)
    command = [sys.executable, "-"] if stdin else [sys.executable, path]
    return subprocess.run(command, input=body if stdin else None, capture_output=True, text=True, cwd=tmp_path)


def test_classes_of_the_main_program_travel_by_value(tmp_path):
    done = run_script(tmp_path)
    assert done.stdout == "sum 0.0 sample 0\n", done.stderr


def test_classes_without_a_file_travel_by_value(tmp_path):
    done = run_script(tmp_path, stdin=True)
    assert done.stdout == "sum 0.0 sample 0\n", done.stderr


NO_CLOUD = "import fds.models; fds.models.cloud = lambda: None"


def test_without_cloudpickle_the_main_program_is_imported(tmp_path):
    done = run_script(tmp_path, NO_CLOUD, 'if __name__ == "__main__":')
    assert done.stdout == "sum 0.0 sample 0\n", done.stderr


def test_without_cloudpickle_and_guard_the_advice_is_to_add_one(tmp_path):
    done = run_script(tmp_path, NO_CLOUD)
    assert done.returncode and "__main__" in done.stderr


def test_without_cloudpickle_and_file_the_advice_is_a_module(tmp_path):
    done = run_script(tmp_path, NO_CLOUD, stdin=True)
    assert done.returncode and "module of its own" in done.stderr


# ---- what a model is ----

def same(a, b):
    return models.identity(a, [0, 1], (), "float64") == models.identity(b, [0, 1], (), "float64")


def test_equal_models_are_told_to_be_equal():
    assert same(LogisticRegression(), LogisticRegression())
    assert same(make_pipeline(StandardScaler(), LogisticRegression()), make_pipeline(StandardScaler(), LogisticRegression()))
    assert same(LogisticRegression(), pickle.loads(pickle.dumps(LogisticRegression())))
    assert same(Centroids(2), Centroids(2)) and same(Checking((1, 2)), Checking((1, 2)))
    fitted = LogisticRegression().fit([[0], [1]], [0, 1])
    assert same(LogisticRegression(), fitted)  # workers fit a new one


def test_other_models_are_told_apart():
    assert not same(LogisticRegression(), LogisticRegression(C=2))
    assert not same(LogisticRegression(), GradientBoostingClassifier())
    assert not same(Centroids(1), Centroids(2)) and not same(Centroids(), Seeded())
    assert not same(Centroids(np.ones(2)), Centroids(np.zeros(2)))
    one, other = (type("Own", (Centroids,), {"f": f}) for f in (lambda self: 1, lambda self: 2))
    assert not same(one(), other())
    assert models.identity(Centroids(), [0, 1], (), "float64") != models.identity(Centroids(), ["0", "1"], (), "float64")


def test_a_loop_in_a_model_ends():
    model = Centroids()
    model.scale = [model]
    assert models.identity(model, [0], (), "float64")


def test_the_same_model_in_another_process_is_the_same():
    program = ("import sys; sys.path.insert(0, sys.argv[1]); import reference; from fds import models; "
               "print(models.identity(reference.Centroids(3.0), [0, 1], (), 'float64'))")
    done = subprocess.run([sys.executable, "-c", program, TESTS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == models.identity(reference.Centroids(3.0), [0, 1], (), "float64")


# ---- the worker itself ----

def test_frames_are_read_as_they_are_written():
    file = io.BytesIO()
    worker.send(file, {"type": "answer", "id": "3"}, np.array([[0.25, 0.75]]))
    raw = file.getvalue()
    size, head = struct.unpack("<QQ", raw[:16])
    assert size == len(raw) - 8 and b'"F32"' in raw[16:16 + head]
    assert np.frombuffer(raw[16 + head:], "<f4").tolist() == [0.25, 0.75]
    fields, tensors = worker.receive(io.BytesIO(raw))
    assert fields == {"type": "answer", "id": "3"} and tensors["probabilities"].nbytes == 8
    assert worker.receive(io.BytesIO(b"")) is None and worker.receive(io.BytesIO(b"123")) is None


def test_probabilities_of_absent_classes_become_zero():
    classes, present = np.array(["a", "b", "c"]), np.array(["a", "c"])
    found = worker.fill(np.array([[0.2, 0.3, 0.5]]), present, None, classes)
    assert found.tolist() == [[pytest.approx(0.2 / 0.7), 0, pytest.approx(0.5 / 0.7)]]
    assert worker.fill(np.array([[0.4, 0.6]]), present, None, classes).tolist() == [[0.4, 0, 0.6]]
    assert worker.fill(np.array([[0.4, 0.6]]), present, present[::-1], classes).tolist() == [[0.6, 0, 0.4]]
    with pytest.raises(ValueError, match="one column per class"):
        worker.fill(np.ones((1, 4)), present, classes, classes)


def test_a_pickled_model_works_with_the_command(blobs, tmp_path):
    fds_command = pathlib.Path(os.environ.get("FDS_TEST_BUILD", TESTS.parents[1] / "build")) / "cli" / "fds"
    if not fds_command.exists():
        pytest.skip("the command is not built")
    X, y, Xtest, ytest = blobs
    for name, samples, labels in (("train", X[:5], y[:5]), ("test", Xtest[:8], ytest[:8])):
        np.save(tmp_path / f"x_{name}.npy", samples)
        np.save(tmp_path / f"y_{name}.npy", labels)
    with open(tmp_path / "model.pickle", "wb") as file:
        pickle.dump(LogisticRegression(), file)
    subprocess.run([fds_command, "value", tmp_path, "--players", "all", "--method", "exact", "--global", "-q", "--utility",
                    f"command:{sys.executable} -m fds.worker {tmp_path}/model.pickle", "-o", tmp_path / "v.npy"], check=True)
    assert np.abs(np.load(tmp_path / "v.npy")[0] - truth(blobs, LogisticRegression)).max() < 1e-9


# ---- interrupted, killed, resumed ----

LONG = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np, fds
from reference import Centroids
rng = np.random.default_rng(0)
y = np.arange(40) % 3
X = rng.normal(size=(40, 2)) + y[:, None]
def progress(stage, done, total):
    if done >= 4:
        print("ready", flush=True)
r = fds.value(X[:12], y[:12], X[20:], y[20:], model=Centroids(), coalitions=120, table="t", n_jobs=2,
              random_state=1, progress=progress)
r.save("v.npy")
"""


def start(folder, program=LONG, pause=0.3):
    """A program that will be stopped: it would take some time."""
    return subprocess.Popen([sys.executable, "-c", program.format(tests=str(TESTS))], cwd=folder, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "FDS_TEST_PAUSE": str(pause)},
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # shells may ignore it


def finish(folder):
    done = start(folder, pause=0)
    _, errors = done.communicate(timeout=300)
    assert done.returncode == 0, errors
    table = sorted(path for path in (folder / "t").iterdir() if path.suffix == ".seg")
    return (folder / "v.npy").read_bytes(), [path.read_bytes() for path in table]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return finish(tmp_path_factory.mktemp("whole"))


def test_a_killed_program_goes_on_with_the_same_bits(tmp_path, whole):
    for _ in range(2):
        process = start(tmp_path)
        process.stdout.readline()
        process.kill()
        process.wait()
    assert not (tmp_path / "v.npy").exists()
    assert finish(tmp_path)[0] == whole[0]


FIT = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np, fds
from reference import Centroids
rng = np.random.default_rng(0)
y = np.arange(60) % 3
X = rng.normal(size=(60, 2)) + y[:, None]
def progress(stage, done, total):
    if done >= 4:
        print("ready", flush=True)
ex = fds.Explainer(Centroids(), coalitions=60, run="r", n_jobs=1, random_state=1, progress=progress,
                   explainer_epochs=3)
ex.fit(X[:8], y[:8], inputs=X[8:40]).explain(X[40:]).save("v.npy")
"""


def test_a_killed_fit_goes_on_with_the_same_bits(tmp_path):
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    killed = start(tmp_path / "killed", FIT)
    killed.stdout.readline()
    killed.kill()
    killed.wait()
    assert not (tmp_path / "killed" / "v.npy").exists()
    for name in ("whole", "killed"):
        done = start(tmp_path / name, FIT, pause=0)
        _, errors = done.communicate(timeout=300)
        assert done.returncode == 0, errors
    whole, again = ((tmp_path / name / "v.npy").read_bytes() for name in ("whole", "killed"))
    assert whole == again


def test_ctrl_c_stops_within_a_second_and_the_table_is_whole(tmp_path, whole):
    process = start(tmp_path)
    process.stdout.readline()
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors and process.returncode
    assert time.monotonic() - begin < 5  # a second on an idle machine, with the end of the interpreter
    assert finish(tmp_path)[0] == whole[0]


def test_an_exception_of_a_callback_stops_the_call(blobs):
    class Stop(Exception):
        pass

    def progress(stage, done, total):
        raise Stop("enough")

    begin = time.monotonic()
    with pytest.raises(Stop, match="enough"):
        exact(blobs, Centroids(pause=0.05), n=12, progress=progress)
    assert time.monotonic() - begin < 20


def test_the_handler_of_ctrl_c_is_restored(blobs):
    before = signal.getsignal(signal.SIGINT)
    exact(blobs, "logistic")
    assert signal.getsignal(signal.SIGINT) is before


def test_progress_and_log_reach_python(blobs, caplog):
    told = []
    with caplog.at_level(logging.INFO, "fds"):
        fds.value(*blobs[:2], model="logistic", coalitions=100, progress=lambda *at: told.append(at))
    assert told and told[-1][1] == told[-1][2]
    assert "set aside" in caplog.text


def test_bars_are_shown_by_tqdm(blobs, capsys):
    pytest.importorskip("tqdm")
    exact(blobs, Centroids(pause=0.02), progress=True)
    assert "%|" in capsys.readouterr().err
    exact(blobs, Centroids(), progress=False)
    assert "%|" not in capsys.readouterr().err
