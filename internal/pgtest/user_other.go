//go:build !unix

package pgtest

import "os/exec"

func give(string) error      { return nil }
func demote(*exec.Cmd) error { return nil }
func kill(cmd *exec.Cmd)     { _ = cmd.Process.Kill() }
