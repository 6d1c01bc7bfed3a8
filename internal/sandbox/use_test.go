package sandbox

import (
	"errors"
	"sync"
	"testing"
)

// A retired image is closed by its last user, and by nobody else.
func TestRetire(t *testing.T) {
	for _, first := range []bool{true, false} { // whether it is retired before its users go
		i := loadGuest(t, "echo")
		for range 2 {
			if !Use(i) {
				t.Fatal("it cannot be used")
			}
		}
		if n := Users(i); n != 2 {
			t.Fatal(n)
		}
		if first {
			i.Retire()
			i.Retire()
		}
		Unuse(i)
		if !Use(i) {
			t.Fatal("a retired image with a user takes no more")
		}
		Unuse(i)
		if x, err := Get(i); err != nil {
			t.Fatal("it is closed although it has a user:", err)
		} else {
			x.Put()
		}
		Unuse(i)
		if !first {
			if x, err := Get(i); err != nil {
				t.Fatal("it is closed although it is not retired:", err)
			} else {
				x.Put()
			}
			i.Retire()
		}
		if _, err := Get(i); !errors.Is(err, ErrClosed) || Use(i) || Users(i) != 0 {
			t.Error("it is not closed:", err, Users(i))
		}
		Unuse(i) // of one whose Use has failed
		if Use(i) || Users(i) != 0 {
			t.Error("it has come back")
		}
	}
	Unuse(nil)
}

// Users that come and go while the image is retired never meet a closed one: either Use is false, or Get works.
func TestRetireRace(t *testing.T) {
	for range 20 {
		i := loadGuest(t, "echo")
		begin := make(chan struct{})
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				<-begin
				for n := 0; n < 1000 && Use(i); n++ {
					if x, err := Get(i); err != nil {
						t.Error(err)
					} else {
						x.Put()
					}
					Unuse(i)
				}
			})
		}
		wait.Go(func() { <-begin; i.Retire() })
		close(begin)
		wait.Wait()
		if !i.closed.Load() {
			t.Error("it is open")
		}
	}
}

func loadGuest(t *testing.T, name string) *Image {
	t.Helper()
	return load(t, newEngine(t, NewConfig()), name, ImageConfig{})
}
