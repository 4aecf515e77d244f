package record

// VersionStatus is a model version in the state of its task.
type VersionStatus struct {
	Model   string `json:"model"`
	Version string `json:"version"`
	Classes int    `json:"classes"`
	// Settled: the number of classes stands until a person changes it.
	Settled bool `json:"settled"`
	// Others are predictions of other numbers of classes that were dropped, or are held while nothing is settled.
	Others map[int]int64 `json:"others,omitempty"`
}
