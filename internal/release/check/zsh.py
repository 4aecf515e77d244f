"""zsh.py DIRECTORY LINE: what zsh shows for LINE and the tab key, at a terminal, with the completions of DIRECTORY."""
import os
import pty
import select
import sys
import time

pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="dumb")
    os.execvp("zsh", ["zsh", "-f", "-i"])


def read(seconds: float, until: bytes = b"\0") -> bytes:
    out, end = b"", time.time() + seconds
    while time.time() < end and until not in out:
        if select.select([fd], [], [], 0.1)[0]:
            out += os.read(fd, 65536)
    return out


directory, line = sys.argv[1:]
read(1)
os.write(fd, f"fpath=({directory} $fpath); autoload -U compinit; compinit -u -D; echo rea''dy\n".encode())
read(30, b"ready\r")
read(0.5)
os.write(fd, line.encode() + b"\t\t")
print(read(30, b"Train the heads").decode(errors="replace"))
os.kill(pid, 9)
