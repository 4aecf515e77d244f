// Package refit holds what refits are configured by.
package refit
