package outside

import (
	"testing"

	"github.com/wasmactors/wasmactors/host/internal/errs"
)

// Of what is there when a pipe looks the result counts, then the end of the actor.
func TestTheResultThatIsThereCounts(t *testing.T) {
	result, open := make(chan int, 1), make(chan struct{})
	closed := make(chan struct{})
	close(closed)
	for range 64 { // a select chooses at random
		for _, c := range []struct {
			there       bool
			late, ended chan struct{}
			why         error
		}{
			{true, closed, closed, nil},
			{true, closed, open, nil},
			{true, open, closed, nil},
			{false, closed, closed, errs.ErrStopped},
			{false, closed, open, errs.ErrTimeout},
			{false, open, closed, errs.ErrStopped},
		} {
			want := 0
			if c.there {
				want = 7
				result <- want
			}
			if r, why := first(result, c.late, c.ended); r != want || why != c.why {
				t.Fatalf("%+v: %d, %v", c, r, why)
			}
		}
	}
}
