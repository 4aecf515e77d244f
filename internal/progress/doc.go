// Package progress shows on a terminal how far a command is: rows of a known number, or a few long steps. Anywhere else
// it shows nothing. It must not know what is done.
package progress
