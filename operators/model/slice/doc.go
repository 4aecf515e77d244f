// Package slice holds what the slices of a model version are configured by.
package slice
