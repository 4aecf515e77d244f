package service

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel end a command when the thread that starts it ends.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
