package weak

import "testing"

func TestClamp(t *testing.T) {
	for _, c := range [][4]int{{1, 2, 4, 2}, {2, 2, 4, 2}, {3, 2, 4, 3}, {4, 2, 4, 4}, {5, 2, 4, 4}} {
		if got := Clamp(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%v: %d", c, got)
		}
	}
}

func TestLog(t *testing.T) { Log(new([]string), "x") }

func TestLoop(t *testing.T) {
	if Loop(3) != 6 {
		t.Error(Loop(3))
	}
}

func TestNext(t *testing.T) {
	if Next(3) != 4 {
		t.Error(Next(3))
	}
}
