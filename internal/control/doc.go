// Package control asks running processes over their HTTP API: orders, pauses, the history.
//
// A [Client] has the user and the authorities to trust. Errors name the process, and say what to do where none answers.
// The package must not know what is asked; the commands do.
package control
