package cluster

// Hash spreads texts over nodes and shards, the same on all nodes: FNV-1a of 64 bits of one text after the other, and [Mix].
func Hash(texts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, text := range texts {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 1099511628211
		}
	}
	return Mix(h)
}

// Mix spreads what differs in few bits over all of them (the finalizer of MurmurHash3).
func Mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
