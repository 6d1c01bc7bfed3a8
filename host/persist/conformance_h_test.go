package persist_test

import "testing"

func TestH02_H08_PersistAndRecover(t *testing.T) {
	both(t, func(w *world) {
		a := w.spawn("a", "diary", "")
		w.wants("recovered 0: ")
		w.say(a, "put x", "put y", "state")
		w.wants("put x", "put y", "state 2: x y")
		w.again()
		a = w.spawn("a", "diary", "")
		w.wants("recovered 2: x y")
		w.say(a, "put z", "state")
		w.wants("put z", "state 3: x y z")
	})
}
