package registry

import (
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// laggard is a source that knows what of its log it has handed out.
type laggard interface {
	Lag() map[pipeline.Input]kafkaio.Lag
	Handed() map[pipeline.Input]int64
}

// behind is how many offsets of the log are not in the database; -1 = not known.
func (pt *part) behind() int64 {
	src, ok := pt.src.(laggard)
	if !ok {
		return -1
	}
	handed := src.Handed()
	for in, lag := range src.Lag() {
		return lag.Offsets + max(0, handed[in]-pt.next)
	}
	return -1 // the log's end has not been told yet
}
