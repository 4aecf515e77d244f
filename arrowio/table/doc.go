// Package table reads and writes whole files of predictions.
//
// [Open] reads an Arrow IPC file or stream, a Parquet, an .npz or a CSV file as a [Table]: N rows of K scores with what
// stands beside them. The content of a file decides its format. [Write] writes a table by its path's extension.
// [ScanFeatures] reads features and labels for training piece by piece, and leaves features that lie uncompressed in an
// Arrow file where they are. Both go by the column names of docs/schema.md, which messages use too.
//
// Arrow files, .npz and CSV files may hold anything: they are read or refused. The package knows nothing of streams,
// operators and calibration; the commands hand its tables on. Package arrowio/parquet reads and writes Parquet for it.
package table
