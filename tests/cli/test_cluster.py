# SPDX-License-Identifier: Apache-2.0
"""The scripts of examples/cluster: each fits the run that one machine fits. Slurm runs them where it is installed. A
stand-in for sbatch runs them everywhere, as Slurm does: tasks of an array have their number, and a job begins when the
one that it depends on has ended well."""
import re
import shutil

import slurm
from harness import *  # noqa: F403

CLUSTER = pathlib.Path(__file__).resolve().parents[2] / "examples/cluster"
OPTIONS = ["--players", "20", "--inputs", "40", "--coalitions", "40", "--method", "afds"]
PARTS = 3

SBATCH = r"""#!/usr/bin/env python3
import os, re, subprocess, sys
words, script = sys.argv[1:-1], sys.argv[-1]
text = "\n".join(words) + "\n" + "\n".join(
    line[8:].strip() for line in open(script) if line.startswith("#SBATCH "))
assert "--parsable" in words
after = re.search(r"--dependency=afterok:(\d+)", text)
assert not after or open("sbatch." + after[1]).read() == "0"
number = str(1 + len([name for name in os.listdir(".") if name.startswith("sbatch.")]))
array, cpus = re.search(r"--array=(\d+)-(\d+)", text), re.search(r"--cpus-per-task=(\d+)", text)
tasks = range(int(array[1]), int(array[2]) + 1) if array else [None]
code = 0
for task in tasks:
    own = {"SLURM_JOB_ID": number, "SLURM_CPUS_PER_TASK": cpus[1]}
    if task is not None:
        own["SLURM_ARRAY_TASK_ID"] = str(task)
    code = code or subprocess.run([script], env={**os.environ, **own}, stdout=subprocess.DEVNULL).returncode
open("sbatch." + number, "w").write(str(code))
print(number)
"""


def settings(**more):
    """Paths have spaces."""
    os.mkdir("my files")
    os.symlink(FDS, "my files/fds")
    os.symlink(MNIST, "my files/mnist")
    here = os.path.abspath("my files")
    return {**environment(), "FDS": f"{here}/fds", "DATA": f"{here}/mnist", "OPTIONS": " ".join(OPTIONS), "PARTS": str(PARTS),
            "RUN": "my files/parts.run", **more}


def check_run(run):
    fds("fit", MNIST, *OPTIONS, "-o", "one.run", "-q")
    for name in ("utilities/00000.seg", "utilities/table.json", "models.bank", "service.safetensors"):
        assert pathlib.Path("one.run", name).read_bytes() == pathlib.Path(run, name).read_bytes(), name
    assert len(fds_json("explain", run, "--index", 7)["inputs"]) == 1


def run_script(words, env):
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@test
def the_slurm_array_fits_a_run():
    os.mkdir("bin")
    pathlib.Path("bin/sbatch").write_text(SBATCH)
    os.chmod("bin/sbatch", 0o755)
    run_script([CLUSTER / "submit-slurm"], settings(PATH=f"{os.path.abspath('bin')}:{os.environ['PATH']}"))
    assert sorted(os.listdir("my files/parts.run.parts")) == ["1", "2", "3"]
    check_run("my files/parts.run")


@test
def slurm_runs_the_array_and_then_the_fit():
    reason = slurm.missing()
    if reason:
        raise Skip(reason)
    with slurm.Slurm("slurm") as here:
        run_script([CLUSTER / "submit-slurm"], settings(SLURM_CONF=str(here.conf)))
        said = lambda: {path.name: path.read_text()[-300:] for path in pathlib.Path(".").glob("slurm-*.out")}
        assert here.wait_jobs(60), (here.ask("squeue"), said())
    assert len(said()) == PARTS + 1, said()  # one of each task, one of the fit
    assert sorted(os.listdir("my files/parts.run.parts")) == ["1", "2", "3"]
    check_run("my files/parts.run")


@test
def a_failed_task_ends_the_second_job_of_slurm_too():
    reason = slurm.missing()
    if reason:
        raise Skip(reason)
    with slurm.Slurm("slurm") as here:
        run_script([CLUSTER / "submit-slurm"], settings(SLURM_CONF=str(here.conf), FDS=shutil.which("false")))
        assert here.wait_jobs(60), here.ask("squeue")
    assert not os.path.exists("my files/parts.run")


@test
def gnu_parallel_fits_a_run():
    found = shutil.which("parallel")
    if not found or b"GNU" not in subprocess.run([found, "--version"], capture_output=True).stdout:
        raise Skip("GNU parallel is not installed")
    run_script([CLUSTER / "with-parallel"], settings())
    check_run("my files/parts.run")


@test
def the_kubernetes_jobs_are_indexed_jobs_of_batch_v1():
    try:
        import yaml
    except ImportError as error:
        raise Skip("no yaml: scripts/deps cluster") from error
    parts, finish = yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text())
    for job in (parts, finish):
        assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job"), job
        pod = job["spec"]["template"]["spec"]
        assert pod["restartPolicy"] in ("OnFailure", "Never"), pod  # a job allows no other
        (container,) = pod["containers"]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted <= {volume["name"] for volume in pod["volumes"]}, pod
        assert job["metadata"]["labels"]["step"] in ("parts", "finish")
        (script,) = container["args"]
        assert f"--threads {container['resources']['requests']['cpu']} " in script, script  # not as many as the node has
    spec = parts["spec"]
    assert spec["completionMode"] == "Indexed" and spec["parallelism"] <= spec["completions"], spec
    (script,) = spec["template"]["spec"]["containers"][0]["args"]
    assert "JOB_COMPLETION_INDEX + 1" in script and f"--part $part/{spec['completions']} " in script, script


@test
def the_pods_of_the_kubernetes_jobs_fit_a_run():
    text = (CLUSTER / "kubernetes.yaml").read_text()
    parts, finish = (re.findall(r"- \|\n((?:          .*\n)+)", job)[0] for job in text.split("\n---\n"))
    completions = int(re.search(r"completions: (\d+)", text)[1])
    assert f"/{completions} " in parts, parts  # as many parts as pods
    os.mkdir("bin")  # in the image fds has its own name, and mnist is fetched
    pathlib.Path("bin/fds").write_text(f'#!/bin/sh\nexec "{FDS}" "$@"\n')
    os.chmod("bin/fds", 0o755)
    env = dict(environment(), PATH=f"{os.path.abspath('bin')}:{os.environ['PATH']}")
    replace = lambda script: script.replace("mnist --players 100", f"{MNIST} {' '.join(OPTIONS)}")
    for index in range(completions):
        run_script(["sh", "-ec", replace(parts)], dict(env, JOB_COMPLETION_INDEX=str(index)))
    run_script(["sh", "-ec", replace(finish)], env)
    check_run("mnist.run")


sys.exit(main())
