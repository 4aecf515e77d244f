//go:build !unix

package service

import (
	"os/exec"
	"syscall"
)

func ownGroup(*exec.Cmd) {}

// signalGroup ends the command alone, where there are no process groups.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) {
	if s == syscall.SIGKILL {
		_ = cmd.Process.Kill()
		return
	}
	_ = cmd.Process.Signal(s)
}
