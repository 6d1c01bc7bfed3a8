package saved

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/wasmactors/wasmactors/abi"
)

// DecodeParts reads the parts of a checkpoint: the head, and the states of the actors, which know each other then. It is done by as many
// goroutines as run at a time; the error is that of the first part that is wrong.
func DecodeParts(parts [][]byte) (head Head, all []*State, err error) {
	if len(parts) == 0 {
		return head, nil, errors.New("a checkpoint without a head")
	}
	if err := unmarshal(parts[0], &head); err != nil {
		return head, nil, fmt.Errorf("the head of the checkpoint: %w", err)
	}
	if head.Version < Oldest || head.Version > Version {
		return head, nil, fmt.Errorf("the checkpoint has version %d, this host reads versions %d to %d", head.Version, Oldest, Version)
	}
	parts = parts[1:]
	all = make([]*State, len(parts))
	errs := make([]error, len(parts))
	var wait sync.WaitGroup
	for from, n := 0, min(runtime.GOMAXPROCS(0), len(parts)); from < n; from++ {
		wait.Go(func() {
			for i := from; i < len(parts); i += n {
				all[i], errs[i] = Decode(parts[i])
				if errs[i] == nil && all[i].Whole == nil {
					errs[i] = errors.New("it has no life")
				}
			}
		})
	}
	wait.Wait()
	known := make(map[abi.Ref]*State, len(all))
	knows := func(ref abi.Ref) bool { return known[ref] != nil }
	for i, x := range all {
		if errs[i] != nil {
			return head, nil, fmt.Errorf("actor %d of the checkpoint: %w", i, errs[i])
		}
		x.Whole.Knows, known[x.Ref] = knows, x
	}
	for _, x := range all { // in the order of their start
		if x.Whole.Noted == nil {
			continue
		}
		if parent := known[x.Whole.Parent]; parent != nil {
			parent.Children = append(parent.Children, x.child())
		} else {
			head.Children = append(head.Children, x.child())
		}
	}
	return head, all, nil
}
