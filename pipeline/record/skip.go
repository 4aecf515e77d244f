package record

// Skip is a record that ended its task again and again and was skipped: its rows are in no statistic. A replay of
// the topic skips it, too.
type Skip struct {
	Schema int    `json:"schema"` // 1
	Model  string `json:"model"`  // NoModel: what is in the record is not known
	// Topic, Partition and Offset are where it is, At is its time in the log.
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	// Offsets, as "7,9-12", are of records that ended nothing: their timestamps were in the future when they were read
	// first, and their rows were rejected. Offset is the first of them.
	Offsets string `json:"offsets,omitempty"`
	// Source names the record of which the repartition stage made this one, as TOPIC/PARTITION/OF/OFFSET/PART, for one
	// of so many Shards. Replays make it anew, and know it by that.
	Source string `json:"source,omitempty"`
	Shards int    `json:"shards,omitempty"`
	// Sources, as "7,9-12", are the offsets of these records where they are several.
	Sources string `json:"sources,omitempty"`
	At      Time   `json:"at,omitzero"`
	Why     string `json:"why"`
}

// NoModel is the model of decisions about records whose model is not known.
const NoModel = "~records"

// Subject implements Decided.
func (s *Skip) Subject() (kind, model, version string) { return DecisionSkip, s.Model, "" }
