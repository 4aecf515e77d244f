package history

// shares is how models are shared out among processes: each is of a task, and this process does not have all tasks for
// ever.
type shares struct {
	of    func(model string) int
	moved map[int]bool // tasks that another process has
	here  map[int]bool // tasks that have returned, and not left since
}

func (s *shares) movedModel(model string) bool { return len(s.moved) > 0 && s.moved[s.of(model)] }

// Share says which task each model is of, before any is left.
func (h *History) Share(of func(model string) int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shares = shares{of: of, moved: map[int]bool{}, here: map[int]bool{}}
}

// Leave says that another process has a task now: none of its models' alerts is current here, and what is kept of them
// is of the past.
func (h *History) Leave(task int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shares.moved[task] {
		return
	}
	h.shares.moved[task] = true
	delete(h.shares.here, task)
	for k := range h.models.m {
		if h.shares.of(k.model) == task {
			d, _ := h.models.peek(k)
			clear(d.current)
		}
	}
}

// Return says that this process has a task, and that what the task remembers has been added. It reports whether the
// history lacks what was published since it left: false for a task that has merely begun again.
func (h *History) Return(task int) (lacks bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.shares.moved, task)
	lacks = !h.shares.here[task]
	h.shares.here[task] = true
	return lacks
}
