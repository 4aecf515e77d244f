package pipeline

import (
	"fmt"
	"strings"
)

// balances are the equations of the counts of rows: rows that came in on the left, rows that went out or wait on the
// right. A name with a minus sign is subtracted; "rejected" is the sum over its reasons.
var balances = []struct {
	of      string
	in, out []string
	where   string // there is this count; "" = always
}{
	{"rows", []string{CountRows, CountMovedHalves}, []string{CountPredictions, CountLabels, CountDuplicates,
		CountRejected, "-" + CountRejectedJoins, CountPaired, CountRequestsUnmet, CountWaitingRequests,
		CountWaitingResponses}, ""},
	{"predictions", []string{CountPredictions, CountEvictedLabels, CountMoved}, []string{CountInline, CountUnlabelled,
		CountJoined, CountExpired, CountEvicted, CountWaiting}, ""},
	{"labels", []string{CountLabels, CountMovedLabels}, []string{CountMet, CountCorrections, CountOrphans,
		CountEvictedLabels, CountWaitingLabels}, ""},
	{"labelled rows", []string{CountLabelled}, []string{CountInline, CountJoined}, ""},
	{"labelled rows for the archive", []string{CountInline, CountJoined, "-" + CountArchiveOff},
		[]string{CountArchived, CountArchiveSkipped, CountArchiveDropped}, CountArchiveOff},
	{"archived rows", []string{CountArchived}, []string{CountArchivePublished, archiveWaiting, CountArchiveLost},
		CountArchiveOff},
}

// Unaccounted is how many rows of a shard have no fate in its counts, or more than one: the sum of the differences
// between the two sides of each balance. It is 0 at any moment between two records, and so in every checkpoint and
// status; anything else is a defect.
func Unaccounted(counts map[string]int64) (rows int64, detail string) {
	sums := map[string]int64{}
	for name, n := range counts {
		head, _, _ := strings.Cut(name, ":")
		sums[head] += n
	}
	add := func(names []string) (n int64) {
		for _, name := range names {
			if off, ok := strings.CutPrefix(name, "-"); ok {
				n -= sums[off]
			} else {
				n += sums[name]
			}
		}
		return n
	}
	var bad []string
	for _, b := range balances {
		if _, ok := counts[b.where]; b.where != "" && !ok {
			continue
		}
		if in, out := add(b.in), add(b.out); in != out {
			rows += max(in-out, out-in)
			bad = append(bad, fmt.Sprintf("%s: %d in, %d accounted for", b.of, in, out))
		}
	}
	return rows, strings.Join(bad, "; ")
}

// withoutArchive turns restored counts into those of a task without an archive: rows that waited for it count as lost.
// An archive, whose state is restored after the counts, corrects this.
func withoutArchive(n map[string]int64) {
	delete(n, CountArchiveOff)
	waited := n[CountArchiveMemory] + n[CountArchiveDisk]
	delete(n, CountArchiveMemory)
	delete(n, CountArchiveDisk)
	if waited != 0 {
		n[CountArchiveLost] += waited
	}
}
