// Command guard compares the benchmarks of two commits. Each benchmark of both runs in turns, as a process of its own
// that does a fixed number of operations, and what counts is the processor time of that process, less that of one
// operation. Where the machine counts instructions (perf stat), these count instead: other work does not change them. A
// benchmark fails if it is slower by more than -bar and beyond noise (Mann-Whitney), twice. Rounds alternate which
// commit begins, since other work on the machine changes processor time, too.
package main
