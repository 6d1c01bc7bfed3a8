package main

// agenda has the jobs that wait, the one that is due first at its head: a binary heap. Of jobs that are due
// at the same time the one that was added first comes first.
type agenda struct {
	jobs  []*job
	added uint64
}

// add enters a job that is not in it.
func (a *agenda) add(j *job) {
	a.added++
	j.order = a.added
	a.jobs = append(a.jobs, j)
	at := len(a.jobs) - 1
	for at > 0 {
		up := (at - 1) / 2
		if !a.before(at, up) {
			break
		}
		a.jobs[at], a.jobs[up] = a.jobs[up], a.jobs[at]
		at = up
	}
}

// first is the head, nil if there is none.
func (a *agenda) first() *job {
	if len(a.jobs) == 0 {
		return nil
	}
	return a.jobs[0]
}

// take removes the head.
func (a *agenda) take() {
	last := len(a.jobs) - 1
	a.jobs[0] = a.jobs[last]
	a.jobs[last] = nil
	a.jobs = a.jobs[:last]
	for at := 0; ; {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < last; child++ {
			if a.before(child, least) {
				least = child
			}
		}
		if least == at {
			return
		}
		a.jobs[at], a.jobs[least] = a.jobs[least], a.jobs[at]
		at = least
	}
}

func (a *agenda) before(i, k int) bool {
	x, y := a.jobs[i], a.jobs[k]
	return x.Due < y.Due || x.Due == y.Due && x.order < y.order
}
