// Package window holds what a window is configured by.
package window
