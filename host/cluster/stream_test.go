package cluster

import "testing"

// When all is confirmed the memory of one block is kept, and no other can be reached.
func TestSpareBlocksAreGivenBack(t *testing.T) {
	s := newStream()
	frame := make([]byte, full)
	for range mostSpare {
		s.parts(1, frame, full+maxParts)
	}
	if len(s.out) != mostSpare {
		t.Fatalf("%d blocks", len(s.out))
	}
	s.confirm(s.next)
	if len(s.spare) != 1 || s.bytes != 0 {
		t.Errorf("%d blocks are kept, %d bytes wait", len(s.spare), s.bytes)
	}
	s.parts(1, frame, full+maxParts)
	for i, b := range s.spare[:cap(s.spare)] {
		if b != nil {
			t.Errorf("spare block %d is still there", i)
		}
	}
}
