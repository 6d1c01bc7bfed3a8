package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// signatures sends what must not be kept.
func (r *run) signatures() error {
	cases := []struct {
		name   string
		status int
		change func(q *request)
	}{
		{"a wrong signature", 401, func(q *request) { q.header["webhook-signature"] = sign("bank", q) }},
		{"another body", 401, func(q *request) { q.body += " " }},
		{"another id", 401, func(q *request) { q.header["webhook-id"] += "x" }},
		{"another time", 401, func(q *request) { q.header["webhook-timestamp"] = stamp(time.Now().Add(time.Second)) }},
		{"another source", 401, func(q *request) { q.path = "/hooks/bank" }},
		{"too old", 401, func(q *request) { q.at(time.Now().Add(-6 * time.Minute)) }},
		{"from the future", 401, func(q *request) { q.at(time.Now().Add(6 * time.Minute)) }},
		{"no signature", 400, func(q *request) { delete(q.header, "webhook-signature") }},
		{"no id", 400, func(q *request) { delete(q.header, "webhook-id") }},
		{"no time", 400, func(q *request) { delete(q.header, "webhook-timestamp") }},
		{"a time that is none", 400, func(q *request) { q.header["webhook-timestamp"] = "today" }},
		{"a signature that is none", 400, func(q *request) { q.header["webhook-signature"] = "v1,x" }},
		{"a version that is unknown", 400, func(q *request) {
			q.header["webhook-signature"] = "v9" + strings.TrimPrefix(q.header["webhook-signature"], "v1")
		}},
		{"a source that is unknown", 404, func(q *request) { q.path = "/hooks/nobody" }},
		{"a body that is too large", 413, func(q *request) { q.body = strings.Repeat("x", 40<<10); q.at(time.Now()) }},
		{"another method", 405, func(q *request) { q.method = "PUT" }},
	}
	for i, c := range cases {
		q := newHook("forged", i).request()
		c.change(q)
		status, _, _, err := r.sender.do(q)
		if err != nil || status != c.status {
			return fmt.Errorf("%s: %d, %v, want %d", c.name, status, err, c.status)
		}
	}
	// A sender that changes its secret signs twice: one of them counts.
	h := newHook("twice", 0)
	q := h.request()
	q.header["webhook-signature"] = sign("bank", q) + " v9,later " + q.header["webhook-signature"]
	err := r.until("what is signed twice is accepted", func() (bool, error) {
		status, v, after, err := r.sender.do(q)
		h.job = v.Job
		if err == nil && status != 202 && (status != 503 || after == "") { // 503: the queue is reading the store
			err = fmt.Errorf("signed twice: %d", status)
		}
		return status == 202, err
	})
	if err != nil {
		return err
	}
	r.hooks = append(r.hooks, h)
	fmt.Printf("signatures   %d forged, broken, old or too large hooks were refused\n", len(cases))
	return nil
}

// load sends from many senders, some of it twice, while the outside fails half of the time and all that can crash does.
func (r *run) load() error {
	const chunk, senders = 60, 16
	r.out.be(flaky)
	events := []struct {
		name string
		do   func() error
	}{
		{"the workers", func() error { return r.host.crash("/user/queue/delivery/*", 8) }},
		{"the intakes", func() error { return r.host.crash("/user/intake-*", 2) }},
		{"the queue", func() error { return r.host.crash("/user/queue", 1) }},
		{"the host", func() error {
			open := r.sender.acknowledged() - (r.out.count() - 1)
			if open <= 0 {
				return fmt.Errorf("nothing was open when the host was killed")
			}
			r.summary = fmt.Sprintf("%d were open when the host was killed", open)
			if err := r.host.kill(); err != nil {
				return err
			}
			r.out.be(flaky) // whom it was held for is no more
			return r.host.start()
		}},
	}
	work := make(chan *hook)
	var failed atomic.Pointer[error]
	var wait sync.WaitGroup
	for range senders {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for h := range work {
				if err := r.sender.insist(h); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		}()
	}
	began := time.Now()
	for i, e := range events {
		// What was sent before has arrived, so each event has to lose its own; and every worker has something.
		before := i * chunk
		if err := r.until("nothing is open", func() (bool, error) {
			return r.sender.acknowledged() == before && r.out.count() == before+1, r.again() // and the one that was signed twice
		}); err != nil {
			return fmt.Errorf("before %s: %w", e.name, err)
		}
		r.out.be(held)
		fed := make(chan struct{})
		go func() {
			defer close(fed)
			for k := range chunk {
				h := newHook("load", i*chunk+k)
				r.hooks = append(r.hooks, h)
				work <- h
			}
		}()
		err := r.until("a third of the hooks is acknowledged", func() (bool, error) { return r.sender.acknowledged() >= before+chunk/3, nil })
		if err == nil {
			err = e.do() // and the senders go on
		}
		r.out.be(flaky)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		<-fed
	}
	close(work)
	wait.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	if err := r.arrived(); err != nil {
		return err
	}
	requests, failures := r.out.requests()
	fmt.Printf("load         %d hooks of %d senders in %.1f s, %d answered as duplicates; the outside has failed %d of %d requests; %s\n",
		len(events)*chunk, senders, time.Since(began).Seconds(), r.sender.duplicates.Load(), failures, requests, r.summary)
	return nil
}

// bound sends more than there is room for.
func (r *run) bound() error {
	r.out.be(held)
	var mu sync.Mutex
	var refused []*hook
	var failed error
	var wait sync.WaitGroup
	for s := range 10 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for k := range 15 {
				h := newHook("bound", s*15+k)
				status, v, after, err := r.sender.do(h.request())
				mu.Lock()
				r.hooks = append(r.hooks, h)
				switch {
				case err == nil && status == 202:
					h.job = v.Job
				case err == nil && (status == 503 || status == 429) && after != "":
					refused = append(refused, h)
				default:
					failed = fmt.Errorf("beyond the bound: %d, Retry-After %q, %v", status, after, err)
				}
				mu.Unlock()
			}
		}()
	}
	wait.Wait()
	r.out.be(well)
	switch {
	case failed != nil:
		return failed
	case len(refused) < 150-open:
		return fmt.Errorf("%d of 150 hooks were refused, and there is room for %d", len(refused), open)
	}
	for _, h := range refused {
		if err := r.sender.insist(h); err != nil {
			return err
		}
	}
	fmt.Printf("bound        %d of 150 hooks were told to come again, and did\n", len(refused))
	return r.arrived()
}

// outage has the destination down until all is a dead letter, and has the operator send that again.
func (r *run) outage() error {
	const hooks = 30
	r.out.be(down)
	var lost []*hook
	for k := range hooks {
		h := newHook("outage", k)
		if err := r.sender.insist(h); err != nil {
			return err
		}
		r.hooks, lost = append(r.hooks, h), append(lost, h)
	}
	all := func() (bool, error) {
		list, err := r.sender.dead()
		return list.Total == hooks, err
	}
	if err := r.until("all are dead letters", all); err != nil {
		return err
	}
	if status, err := r.sender.stranger("/dead"); err != nil || status != 401 {
		return fmt.Errorf("a stranger sees the dead letters: %d, %v", status, err)
	}
	if err := r.host.kill(); err != nil {
		return err
	}
	r.out.be(well)
	if err := r.host.start(); err != nil {
		return err
	}
	if err := r.until("all dead letters are there again", all); err != nil {
		return err
	}
	r.given = lost[0]
	for i, h := range lost {
		if state, err := r.sender.state(h.job); err != nil || state != "dead" {
			return fmt.Errorf("%s is %q, not dead: %v", h.id, state, err)
		}
		// It is known, although it is dead.
		if status, _, _, err := r.sender.do(h.request()); err != nil || status != 200 {
			return fmt.Errorf("%s once more: %d, %v", h.id, status, err)
		}
		method, path, want := "POST", "/dead/"+h.job+"/retry", 202
		if i == 0 {
			method, path, want = "DELETE", "/dead/"+h.job, 200
		}
		for _, want := range []int{want, 404} {
			if status, err := r.sender.operator(method, path, nil); err != nil || status != want {
				return fmt.Errorf("%s %s: %d, %v, want %d", method, path, status, err, want)
			}
		}
	}
	if err := r.arrived(); err != nil {
		return err
	}
	fmt.Printf("outage       %d hooks became dead letters, were there after a kill -9, and have arrived when they were sent again; one was given up\n", hooks-1)
	return nil
}
