package shard

import (
	"testing"
	"time"
)

// A region that does not know the table yet says so: that it has no shards is not known. It may be drained all the same.
func TestAStateThatIsNotKnown(t *testing.T) {
	s := three(t)
	l := s.up()[0]
	if x := l.state.state(); x.Wrong != "" || x.Leaving || x.Owned == 0 {
		t.Fatalf("%+v", x)
	}
	l.state.table = nil // as after a failure of the region
	if x := l.state.state(); x.Wrong == "" || x.Owned != 0 {
		t.Errorf("%+v", x)
	}
	var x State
	s.ask(l, l.order("drain", wish{On: true}), &x)
	if !x.Leaving || x.Wrong == "" {
		t.Errorf("%+v", x)
	}
	s.pass(10 * time.Second)
	if x := l.state.state(); !x.Leaving || x.Wrong != "" || x.Owned != 0 {
		t.Errorf("%+v", x)
	}
	l.state.table, l.state.role = nil, "other" // a node that takes no shards has none
	if x := l.state.state(); x.Wrong != "" || x.Owned != 0 {
		t.Errorf("%+v", x)
	}
}
