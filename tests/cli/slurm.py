# SPDX-License-Identifier: Apache-2.0
"""Slurm on this machine alone, for a test: munged, slurmctld and slurmd in the foreground, with a configuration, a key
and ports of their own in a folder. Needs root, and Debian's packages (scripts/deps slurm)."""
import os
import pathlib
import shutil
import socket
import subprocess
import time

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Why Slurm cannot be started here, or None."""
    for program in ("munged", "slurmctld", "slurmd", "sbatch"):
        if not shutil.which(program):
            return f"no {program}: scripts/deps slurm"
    return None if os.geteuid() == 0 else "slurmd needs root"


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait(what, seconds):
    """Whether what() holds before the time is over."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


class Slurm:
    def __init__(self, folder):
        self.folder, self.running = pathlib.Path(folder).resolve(), []
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.conf = self.folder / "slurm.conf"
        self.conf.write_text(CONFIGURATION.format(folder=self.folder, host=socket.gethostname().split(".")[0],
                                                  ports=free_ports(2)))
        self.env = dict(os.environ, SLURM_CONF=str(self.conf))

    def start(self, *words):
        with open(self.folder / f"{words[0]}.log", "wb") as log:
            self.running.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env))

    def ask(self, *words):
        """What a command of Slurm's prints, or None if it fails."""
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=30)
        return done.stdout.strip() if done.returncode == 0 else None

    def __enter__(self):
        place = {name: f"--{name}={self.folder}/munge.{name.partition('-')[0]}" for name in
                 ("key-file", "socket", "pid-file", "seed-file")}
        try:
            # --force: the folder of a test is closed to other users, which munged warns of
            self.start("munged", "--foreground", "--force", *place.values())
            assert wait((self.folder / "munge.socket").exists, 10), "munged does not start"
            self.start("slurmctld", "-D", "-f", str(self.conf))
            self.start("slurmd", "-D", "-f", str(self.conf))
            assert wait(lambda: self.ask("sinfo", "-h", "-o", "%T") == "idle", 15), "Slurm has no idle node"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def wait_jobs(self, seconds):
        """Whether the queue becomes empty in time."""
        return wait(lambda: self.ask("squeue", "-h") == "", seconds)
