// Package plot draws pages of small panels, as SVG or PNG.
//
// A [Panel] has a title, two axes with ticks, a grid and marks: lines, dots, whiskers, bars and texts. [Write] lays
// panels out in rows on a white page, in the format of the file's extension. It knows nothing of what is drawn. It is a
// few hundred lines where a plotting library brings megabytes of fonts into every process.
package plot
