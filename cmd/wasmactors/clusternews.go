package main

import (
	"time"

	"github.com/wasmactors/wasmactors/host/cluster"
)

// news shows the events of a cluster in a goroutine of its own: a node must not wait for a terminal, or it loses its lease. Events
// that come faster than they are shown are left out.
type news struct {
	show  func(cluster.Event)
	queue chan cluster.Event
	over  chan struct{}
	done  chan struct{}
}

// mostNews bounds the events that wait.
const mostNews = 256

func newNews(show func(cluster.Event)) *news {
	n := &news{show, make(chan cluster.Event, mostNews), make(chan struct{}), make(chan struct{})}
	go n.run()
	return n
}

func (n *news) add(e cluster.Event) {
	select {
	case n.queue <- e:
	default:
	}
}

func (n *news) run() {
	defer close(n.done)
	for {
		select {
		case e := <-n.queue:
			n.show(e)
			continue
		default:
		}
		select {
		case e := <-n.queue:
			n.show(e)
		case <-n.over:
			return
		}
	}
}

// close waits until all is shown, a second at most. It is called once.
func (n *news) close() {
	close(n.over)
	select {
	case <-n.done:
	case <-time.After(time.Second):
	}
}
