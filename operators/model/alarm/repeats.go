package alarm

import (
	"fmt"

	"github.com/plumbline/plumbline/operators/model/stage"
)

// repeated says what stage.Repeats found in the rows since an event time; "" where that is nothing. An alert may come
// without an error then.
func repeated(k *stage.Key, since int64) string {
	n, of := stage.Repeats(k, since, stage.RepeatsSure)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the latest %d labelled predictions have the scores of another one, and far "+
		"more often its label than chance explains: if requests are repeated under new ids, each counts as "+
		"evidence. Send a request once, or give each of its g repeats the weight 1/g", 100*float64(n)/float64(of), of)
}
