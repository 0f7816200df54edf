#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waits until the bank of a server has answered all predictions that were chosen for audits.

usage: wait-audits.py ADDRESS OPERATOR_KEY_FILE
"""
import pathlib
import re
import sys
import time
import urllib.request

address, key_file = sys.argv[1:]
key = pathlib.Path(key_file).read_text(encoding="ascii").strip()
request = urllib.request.Request(f"{address}/metrics", headers={"Authorization": f"Bearer {key}"})
while True:
    with urllib.request.urlopen(request) as answer:
        waiting = re.search(r"^fds_audits_waiting (\d+)", answer.read().decode(), re.M)
    if int(waiting[1]) == 0:
        break
    time.sleep(0.5)
