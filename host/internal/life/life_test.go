package life

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The transitions once more, as a list of what is allowed: everything else is not.
func TestTransitions(t *testing.T) {
	allowed := map[string]State{
		"new start": Running, "new stop": Stopping,
		"running fail": Failed, "running restart": Restarting, "running stop": Stopping,
		"failed resume": Running, "failed restart": Restarting, "failed stop": Stopping,
		"restarting begin": Running, "restarting stop": Stopping,
		"stopping end": Stopped,
	}
	for s := range states {
		for e := range events {
			next, ok := s.Next(e)
			want, may := allowed[fmt.Sprint(s, " ", e)]
			if ok != may || ok && next != want || !ok && next != s {
				t.Errorf("%v after %v: %v, %v", s, e, next, ok)
			}
			var m Machine
			m.state.Store(uint32(s))
			if m.Do(e) != may || m.State() != next {
				t.Errorf("the machine goes from %v after %v to %v", s, e, m.State())
			}
		}
	}
}

// Every state is reached from the first, and the last from every one.
func TestEveryStateIsReachedAndEnds(t *testing.T) {
	reach := func(from State) map[State]bool {
		seen := map[State]bool{from: true}
		for todo := []State{from}; len(todo) > 0; {
			s := todo[0]
			todo = todo[1:]
			for e := range events {
				if next, ok := s.Next(e); ok && !seen[next] {
					seen[next] = true
					todo = append(todo, next)
				}
			}
		}
		return seen
	}
	if n := len(reach(New)); n != int(states) {
		t.Errorf("%d states are reached, there are %d", n, states)
	}
	for s := range states {
		if !reach(s)[Stopped] {
			t.Errorf("%v never ends", s)
		}
	}
}

func TestSuspensions(t *testing.T) {
	var m Machine
	m.Inherit(2)
	m.Do(Start)
	if m.Open() || m.Burden() != 2 {
		t.Error("suspended from the start", m.Burden())
	}
	m.Do(Fail)
	if m.Burden() != 3 || m.Suspended() != 2 {
		t.Error("its own failure counts for its children", m.Burden())
	}
	m.Unsuspend()
	m.Unsuspend()
	if m.Open() {
		t.Error("open while it waits for a decision")
	}
	m.Do(Resume)
	if !m.Open() {
		t.Error("not open")
	}
	m.Suspend()
	if m.Open() {
		t.Error("open while suspended")
	}
}

// The page shows the machine that there is.
func TestDiagramIsInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/architecture/actors.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```mermaid\n"+Diagram()+"```") {
		t.Errorf("docs/architecture/actors.md does not have this diagram:\n%s", Diagram())
	}
}
