// Package control sends requests to the HTTP API of running processes: orders, pauses, the history.
//
// A [Client] holds the user and the trusted authorities. Errors name the process. If none answers, they say what to do.
// The package must not know what is requested; the commands do.
package control
