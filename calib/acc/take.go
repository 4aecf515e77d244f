package acc

// TakeSample returns the sampled rows, in the order of their hashes, and drops the sample: the set then has the
// shape of one made with SampleRows = 0 and merges with those. The rows own their memory.
func (s *Set) TakeSample() []SampleRow {
	s.cfg.SampleRows = 0
	if s.Labelled == nil {
		return nil
	}
	rows := s.Labelled.Sample.Rows()
	s.Labelled.Sample = &Sample{k: s.cfg.K, seed: s.cfg.SampleSeed}
	return rows
}
