package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// Events are shown in order, and nobody waits for them to be shown.
func TestNews(t *testing.T) {
	blocked, shown := make(chan struct{}), []uint16{}
	n := newNews(func(e cluster.Event) {
		<-blocked
		shown = append(shown, e.Node)
	})
	for i := range uint16(3 * mostNews) {
		n.add(cluster.Event{Node: i})
	}
	close(blocked)
	n.close()
	if len(shown) < mostNews || len(shown) > mostNews+1 {
		t.Fatalf("%d are shown", len(shown))
	}
	for i, node := range shown {
		if int(node) != i {
			t.Fatalf("the event %d is that of %d", i, node)
		}
	}
}

// A node that was lost joins again: what it has left behind does not keep it out, and somebody else does.
func TestAgain(t *testing.T) {
	name, other := fmt.Errorf("x: %w", cluster.ErrName), errors.New("other")
	for _, x := range []struct {
		errs []error
		want error
		n    int
	}{
		{[]error{nil}, nil, 1},
		{[]error{cluster.ErrLost, cluster.ErrLost, nil}, nil, 3},
		{[]error{name, cluster.ErrLost, name, nil}, nil, 4},
		{[]error{name, name, name, name, nil}, name, 4},
		{[]error{other, nil}, other, 1},
	} {
		n := 0
		err := again(context.Background(), func(context.Context) error { n++; return x.errs[n-1] })
		if err != x.want || n != x.n {
			t.Errorf("%v: %v after %d", x.errs, err, n)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := again(ctx, func(context.Context) error { return cluster.ErrLost }); err == nil {
		t.Error("it goes on after the end of the run")
	}
}
