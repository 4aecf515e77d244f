// Package layout holds no code: its tests enforce which package may import which, and how long a file may be.
package layout
