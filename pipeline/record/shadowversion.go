package record

import (
	"strconv"
	"strings"
)

// headMark stands between a version and the number of its head in the name of a shadow version.
const headMark = "+head"

// ShadowVersion names the shadow of a version that is its head number n.
func ShadowVersion(version string, n int) string { return version + headMark + strconv.Itoa(n) }

// BaseVersion is the inverse of ShadowVersion; ok is false for other names.
func BaseVersion(shadow string) (version string, n int, ok bool) {
	i := strings.LastIndex(shadow, headMark)
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(shadow[i+len(headMark):])
	if err != nil || n < 1 || shadow != ShadowVersion(shadow[:i], n) {
		return "", 0, false
	}
	return shadow[:i], n, true
}
