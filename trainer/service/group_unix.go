//go:build unix

package service

import (
	"os/exec"
	"syscall"
)

// ownGroup has a command lead a process group of its own, in which what it starts is too.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup signals the group of a command that was started; one that is gone already gets nothing.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }
