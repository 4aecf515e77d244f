package service

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Exit codes of Guard where the program has none, as shells have them.
const (
	exitNotStarted = 127
	exitSignalled  = 128 // and the signal's number
)

// Guard runs a program in a process group of its own, leaves no process of the group behind, and returns the program's
// exit code. The program has the same standard input, output and error.
//
// The guard sends the group SIGTERM, and after grace SIGKILL, when it gets SIGTERM or SIGINT itself, or when its
// standard input ends: then the process at the other end is gone, however it ended. When the program ends by itself the
// guard sends SIGKILL to what is left of the group.
//
// A trainer that is killed cannot end what it has started; the guard can. Where the guard itself is killed, Linux ends
// the program, but not what the program has started.
func Guard(args []string, grace time.Duration) (code int) {
	runtime.LockOSThread() // Linux has a child end with the thread that started it
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	ownGroup(cmd)
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitNotStarted
	}
	alone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // nothing is written to it: it ends when the trainer does
		close(alone)
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-alone:
		err = endGroup(cmd, ended, grace)
	case <-signals:
		err = endGroup(cmd, ended, grace)
	}
	signalGroup(cmd, syscall.SIGKILL)
	return exitCode(err)
}

// endGroup asks a group to end, and waits for its first process.
func endGroup(cmd *exec.Cmd, ended <-chan error, grace time.Duration) error {
	signalGroup(cmd, syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		signalGroup(cmd, syscall.SIGKILL)
		return <-ended
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return exitNotStarted
	case exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok {
		return exitSignalled + int(ws.Signal())
	}
	return exitSignalled
}
