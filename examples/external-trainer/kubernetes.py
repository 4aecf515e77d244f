"""An external trainer that trains nothing itself: a Kubernetes Job does, one for each request, and this program waits for it.

    trainer:
      dir: /var/lib/plumbline/trainer
      command: [python3, examples/external-trainer/kubernetes.py]

`plumbline trainer` runs it with the path of job.json as the last argument. It fills in the template beside it
(training-job.yaml, or the file that PLUMBLINE_JOB_TEMPLATE names), creates the Job with kubectl, passes the lines of its
output on, and ends as it does. The Job's container gets the same job.json and leaves the same result directory: trainer.dir is
a volume that is mounted at one path here and there.

A Job is named after its request. So whoever takes a request up again, after a crash of whatever, first deletes what is left of
the Job before; its result directory is no longer looked at. Without this program nobody wants the Job: it deletes it when it is
told to stop, or when its standard input ends, and activeDeadlineSeconds bounds the Job where it could not.
"""

import hashlib
import json
import os
import pathlib
import re
import signal
import string
import subprocess
import sys
import threading
import time

ATTEMPTS = 12  # of asking for a Job's state, before nobody is thought to answer any more
POLL = float(os.environ.get("PLUMBLINE_JOB_POLL", "5"))  # seconds
KUBECTL = os.environ.get("KUBECTL", "kubectl").split()


def kubectl(*args, **more):
    return subprocess.run([*KUBECTL, *args], check=True, text=True, capture_output=True, **more).stdout


def job_name(request):
    """A DNS label that is the request's own: what is readable of its id, and a hash of all of it."""
    words = re.sub("[^a-z0-9]+", "-", request["id"].lower()).strip("-")[:40].strip("-")
    return f"plumbline-{words}-{hashlib.sha256(request['id'].encode()).hexdigest()[:8]}"


def delete(name, wait):
    kubectl("delete", "job", name, "--ignore-not-found", "--cascade=foreground", f"--wait={str(wait).lower()}")


def conditions(name):
    status = json.loads(kubectl("get", "job", name, "-o", "json")).get("status", {})
    return {c["type"]: c for c in status.get("conditions", []) if c["status"] == "True"}


def follow(name, ended):
    """Passes the lines of the Job's output on, once it has a pod."""
    told = False
    while not told and not ended.is_set():
        with subprocess.Popen([*KUBECTL, "logs", "--follow", "--pod-running-timeout=1h", f"job/{name}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as logs:
            for line in logs.stdout:
                told = True
                print(line, end="", flush=True)
        ended.wait(POLL)


def unwanted(name, why):
    """Deletes the Job and ends this program."""
    try:
        delete(name, wait=False)
    except subprocess.CalledProcessError as e:
        why = f"{why}; the Job {name} cannot be deleted: {e.stderr.strip()}"
    print(why, file=sys.stderr, flush=True)
    os._exit(1)


def main(job_file):
    job = json.loads(pathlib.Path(job_file).read_text())
    name = job_name(job["request"])
    template = pathlib.Path(os.environ.get("PLUMBLINE_JOB_TEMPLATE") or pathlib.Path(__file__).with_name("training-job.yaml"))
    manifest = string.Template(template.read_text()).substitute(
        NAME=name, JOB_FILE=json.dumps(str(job_file)), DIR=json.dumps(os.environ.get("PLUMBLINE_JOB_DIR", "/var/lib/plumbline"))
    )
    signal.signal(signal.SIGTERM, lambda *_: unwanted(name, "told to stop"))
    threading.Thread(target=lambda: (wait_for_end(), unwanted(name, "the trainer is gone")), daemon=True).start()
    delete(name, wait=True)
    kubectl("create", "-f", "-", input=manifest)
    ended = threading.Event()
    output = threading.Thread(target=follow, args=(name, ended), daemon=True)
    output.start()
    silent = 0
    while True:
        try:
            now, silent = conditions(name), 0
        except subprocess.CalledProcessError as e:  # an API server may be away for a moment; a Job that is gone does not come back
            now, silent, why = {}, silent + 1, e.stderr.strip()
            if silent == ATTEMPTS or "not found" in why:
                unwanted(name, f"Job {name}: {why}")
        if "Complete" in now or "Failed" in now:
            break
        time.sleep(POLL)
    ended.set()
    output.join(2 * POLL)
    if "Failed" in now:
        sys.exit(f"Job {name} failed: {now['Failed'].get('reason', '')}: {now['Failed'].get('message', '')}")
    report = pathlib.Path(job["result"]) / "report.json"
    if not report.exists():
        sys.exit(f"Job {name} is complete and left no {report}: is trainer.dir one volume, mounted at one path?")
    delete(name, wait=False)


def wait_for_end():
    while os.read(0, 4096):
        pass


if __name__ == "__main__":
    try:
        main(sys.argv[-1])
    except subprocess.CalledProcessError as e:
        sys.exit(f"{' '.join(e.cmd)}: {e.stderr.strip()}")
