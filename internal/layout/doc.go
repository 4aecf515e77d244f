// Package layout holds no code: its tests enforce which package may import which, how large packages and types may be,
// and that links in documents lead somewhere.
package layout
