# SPDX-License-Identifier: Apache-2.0
"""The Python end of the pipe protocol: whatever comes, it answers or says what is wrong."""
import io
import random
import subprocess
import sys

import numpy as np
import pytest

import fuzz_worker
from fds import worker


def refusal(raw):
    with pytest.raises(worker.MessageError) as caught:
        worker.receive(io.BytesIO(raw))
    return str(caught.value)


def test_mutated_messages_are_read_or_refused():
    done, counts = fuzz_worker.fuzz(20000)
    assert done >= 20000
    assert counts["read"] > 1000 and counts["refused"] > 1000 and counts["ended"] > 1000  # it reaches everything


def test_right_messages_are_read():
    rng = random.Random(0)
    for _ in range(200):
        header, data = fuzz_worker.question(rng)
        fields, tensors = worker.receive(io.BytesIO(fuzz_worker.pack(header, data)))
        assert fields == header["__metadata__"] and tensors["samples"].tolist() == np.frombuffer(data, "<i4").tolist()


@pytest.mark.parametrize("size", [0, 7, 2**20 + 1, 2**63, 2**64 - 1])
def test_a_length_that_lies_is_refused_before_anything_is_read(size):
    assert f"{size} bytes" in refusal(fuzz_worker.pack({}, b"", size=size))


@pytest.mark.parametrize("about", [
    {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}, {"dtype": "I32", "shape": [1], "data_offsets": [4, 12]},
    {"dtype": "I32", "shape": [3], "data_offsets": [0, 8]}, {"dtype": "I32", "shape": [-1], "data_offsets": [8, 4]},
    {"dtype": "I32", "shape": [2.0], "data_offsets": [0, 8]}, {"dtype": "I32", "shape": [True], "data_offsets": [0, 4]},
    {"dtype": "I32", "shape": [2**62, 4], "data_offsets": [0, 0]}, {"dtype": [], "shape": [1], "data_offsets": [0, 4]},
    {"shape": [2], "data_offsets": [0, 8]}, [], None, "I32"])
def test_a_tensor_that_is_not_as_described_is_refused(about):
    assert "'samples'" in refusal(fuzz_worker.pack({"__metadata__": {"type": "eval"}, "samples": about}, b"\0" * 8))


@pytest.mark.parametrize("header", [{}, {"__metadata__": None}, {"__metadata__": {"type": 5}}, {"__metadata__": ["type"]},
                                    []])
def test_fields_that_are_not_texts_are_refused(header):
    assert "__metadata__" in refusal(fuzz_worker.pack(header, b""))


def test_headers_that_are_nested_deeply_are_refused():
    assert "not JSON" in refusal(fuzz_worker.pack(b"[" * 100000, b""))


@pytest.mark.parametrize("change,text", [
    (dict(type="evil"), "eval is expected"), (dict(type="hello"), "eval is expected"), (dict(id="-1"), "field id"),
    (dict(seed="1e3"), "field seed"), (dict(seed=str(2**64)), "field seed"), (dict(samples=[3, 2]), "ascending"),
    (dict(samples=[-1, 2]), "ascending"), (dict(samples=[5, 12]), "below 12"), (dict(samples=[]), "no samples")])
def test_questions_that_break_the_protocol_end_the_process_with_an_error(change, text, tmp_path):
    fuzz_worker.data_for_workers(tmp_path)
    chosen = np.array(change.pop("samples", [1, 2]), "<i4")
    asked = {"__metadata__": {"type": "eval", "id": "1", "seed": "7", **change},
             "samples": {"dtype": "I32", "shape": [len(chosen)], "data_offsets": [0, chosen.nbytes]}}
    stream = fuzz_worker.pack(*fuzz_worker.hello(str(tmp_path))) + fuzz_worker.pack(asked, chosen.tobytes())
    answers = io.BytesIO()
    worker.serve(io.BytesIO(stream * 2), answers, str(tmp_path / "model.pickle"))
    assert fuzz_worker.read_answers(answers.getvalue()) == ["ready", "error"]
    assert text.encode() in answers.getvalue()


@pytest.mark.parametrize("change,text", [(dict(type="eval"), "hello is expected"), (dict(protocol="2"), "protocol 1"),
                                         (dict(classes="99999999999"), "field classes"),
                                         (dict(folder="/no/such"), "FileNotFoundError")])
def test_a_hello_that_breaks_the_protocol_is_answered_by_an_error(change, text, tmp_path):
    fuzz_worker.data_for_workers(tmp_path)
    header, _ = fuzz_worker.hello(str(tmp_path))
    header["__metadata__"].update(change)
    answers = io.BytesIO()
    worker.serve(io.BytesIO(fuzz_worker.pack(header, b"")), answers, str(tmp_path / "model.pickle"))
    assert fuzz_worker.read_answers(answers.getvalue()) == ["error"] and text.encode() in answers.getvalue()


def test_a_process_that_is_sent_a_length_that_lies_does_not_wait_for_the_rest(tmp_path):
    with subprocess.Popen([sys.executable, "-m", "fds.worker", "none"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdin.write(b"\xff" * 7 + b"\x7f")
        process.stdin.flush()  # and the pipe stays open
        raw = process.stdout.read()
        assert process.wait(60) == 0
    assert fuzz_worker.read_answers(raw) == ["error"]


def test_a_process_whose_input_ends_within_a_message_ends_quietly():
    done = subprocess.run([sys.executable, "-m", "fds.worker", "none"], input=fuzz_worker.pack({}, b"")[:-1],
                          capture_output=True, timeout=120, check=True)
    assert done.stdout == b"" and done.stderr == b""
