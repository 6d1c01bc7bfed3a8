package dispatch

import "testing"

// However many tasks wait that were never run and take long, a task that is known to be short is next after a
// few of them: whether it waits in the lane or comes to the global queue, and however many have gone before.
func TestACrowdOfNewTasksDoesNotHoldUpALane(t *testing.T) {
	const few = 1 + freshBatch
	for _, crowd := range []int{10, 1000, 5000} {
		for _, where := range []string{"lane", "injector", "slot"} {
			d := newDispatcher(2)
			w := &Worker{d: d, lane: d.lanes[0]}
			l := w.lane
			for range crowd {
				d.injector.push(new(Task))
			}
			known := new(Task)
			known.heat.Store(light)
			worst, waits, passed, fresh := 0, false, 0, 0
			for {
				if !waits && fresh%3 == 0 {
					switch waits, passed = true, 0; where {
					case "lane":
						d.append(l, known)
					case "slot":
						l.slot.Store(known)
					default:
						d.injector.push(known)
					}
				}
				k := l.next(w)
				if k == nil {
					k = d.injector.popInto(l, len(d.lanes), severalFresh)
				}
				if k == known {
					worst, waits = max(worst, passed), false
					if fresh == crowd {
						break
					}
					fresh++ // so that it comes again after two more
					continue
				}
				if k == nil {
					break
				}
				l.lookOut() // a fresh one has taken long, and has left the lane to another goroutine
				passed++
				if fresh++; fresh > 2*crowd {
					break
				}
			}
			if worst > few {
				t.Errorf("%d of %d come before what waits in the %s", worst, crowd, where)
			}
			if l.len() > freshBatch {
				t.Errorf("%d wait in the lane", l.len())
			}
		}
	}
}

// Fresh tasks have their turn all the same: of a lane that never runs dry every sixteenth.
func TestNewTasksHaveTheirTurn(t *testing.T) {
	d := newDispatcher(1)
	w := &Worker{d: d, lane: d.lanes[0]}
	l := w.lane
	const crowd = 100
	for range crowd {
		d.injector.push(new(Task))
	}
	known := new(Task)
	known.heat.Store(light)
	d.append(l, known)
	begun, tasks := 0, 0
	for ; begun < crowd && tasks < 100*injectorTurn*crowd; tasks++ {
		if k := l.next(w); k == known {
			d.append(l, known)
		} else {
			begun++
			l.lookOut()
		}
	}
	if begun < crowd || tasks > 3*injectorTurn*crowd {
		t.Errorf("%d have begun among %d", begun, tasks)
	}
}
