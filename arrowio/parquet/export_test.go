package parquet

// OpenWithin is Open of a file that may expand to fewer bytes, so that a fuzzer does not spend its time on expanding.
var OpenWithin = open
