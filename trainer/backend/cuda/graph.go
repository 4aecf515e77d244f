package cuda

// graphKey is what recorded launches are good for.
type graphKey struct {
	loss, n, slot       int
	mask, restrict, mix bool
}

// warmed marks a key whose kernels have run once, unrecorded: first launches may load code, which recording forbids.
const warmed = 0

// record runs a step: the first of its kind launch by launch, the second is recorded, further ones are replayed, so
// that a step costs one call. Without the calls for that, every step goes launch by launch.
func (s *session) record(t step, key graphKey) error {
	if s.direct || s.GraphLaunch == nil || s.GraphInstantiate == nil || s.CaptureBegin == nil || s.CaptureEnd == nil {
		return s.fused(t)
	}
	if t.in.slot == nil {
		key.slot = 0
	}
	g, known := s.graphs[key]
	if !known {
		s.graphs[key] = warmed
		return s.fused(t)
	}
	if g == warmed {
		var err error
		if g, err = s.capture(t); err != nil {
			return err
		}
		if g == 0 {
			return s.fused(t)
		}
		s.graphs[key] = g
	}
	return s.check("replay", s.GraphLaunch(g, s.stream))
}

// capture records a step, and returns 0 where the driver does not.
func (s *session) capture(t step) (uintptr, error) {
	if s.CaptureBegin(s.stream, captureThreadLocal) != 0 {
		s.direct = true
		return 0, nil
	}
	var graph, exec uintptr
	failed := s.fused(t)
	ended := s.check("recording", s.CaptureEnd(s.stream, &graph))
	if failed != nil {
		return 0, failed
	}
	if ended != nil {
		return 0, ended
	}
	defer s.GraphDestroy(graph)
	return exec, s.check("recorded launches", s.GraphInstantiate(&exec, graph, 0))
}

func (s *session) dropGraphs() error {
	if err := s.sync(); err != nil {
		return err
	}
	for _, g := range s.graphs {
		if g != warmed {
			s.GraphExecDestroy(g)
		}
	}
	s.graphs = map[graphKey]uintptr{}
	return nil
}
