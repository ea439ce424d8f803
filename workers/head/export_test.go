package head

// Remembered is how many flights are known from the batches before.
func (h *Head) Remembered() int { return len(h.memory.known) }
