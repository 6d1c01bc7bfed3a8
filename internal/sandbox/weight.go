package sandbox

// What an instance counts for in its actor's account, in bytes. While it may run it counts for all memory that it
// could write to without growing, whatever it has written to: so it cannot touch what is not counted.
// While it does not run it can count for the pages that are its own.

const (
	// tableSpan is how much memory one of the kernel's page tables is for, and tableBytes what that takes.
	tableSpan, tableBytes = 2 << 20, 4 << 10
	// mostCounted is the largest memory whose pages are counted, which takes 12 us a MiB at most.
	mostCounted = 32 << 20
)

// weigh is the weight of an instance with a memory of a size.
func (i *Image) weigh(size uint64) int64 { return i.beside(size) + int64(size) }

// beside is what an instance takes beside the pages of its memory: its parts in Go's heap, and the kernel's tables.
func (i *Image) beside(size uint64) int64 {
	n := pooledBase + int64(i.heapBytes)
	if size >= tableSpan/2 {
		n += int64(size+tableSpan-1) / tableSpan * tableBytes
	}
	return n
}

// Weight is what a fresh instance of the image counts for while it may run.
func Weight(i *Image) int64 { return i.weigh(i.startBytes) }

// SavedWeight is the weight of an instance in the state of a snapshot.
func SavedWeight(i *Image, s *Snapshot) int64 { return i.weigh(max(s.patch.Size(), i.startBytes)) }

// Weight is what the instance counts for while it may run.
func (x *Instance) Weight() int64 { return x.image.weigh(max(x.memory.Size(), x.image.startBytes)) }

// LeanWeight is what the instance counts for while it does not run: the pages that are its own. ok is false
// if they cannot be counted, or only in a long time. Pages that all instances share, because none has written to them, count for none.
func (x *Instance) LeanWeight() (n int64, ok bool) {
	size := x.memory.Size()
	if size > mostCounted {
		return 0, false
	}
	own, ok := x.memory.Resident()
	return x.image.beside(size) + int64(own), ok
}
