// Package control sends requests to the HTTP API of running processes: orders, pauses, the history.
//
// A [Client] holds the user and the trusted authorities, a [Process] one process to ask, which takes an [Order] and may
// be waited for until it is decided. Errors name the process. If none answers, they say what to do. The package must
// not know flags, nor how an answer is printed.
package control
