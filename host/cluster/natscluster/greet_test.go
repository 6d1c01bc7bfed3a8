package natscluster

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// A keeper answers who greets it, and on inboxes only: nobody has it publish where nodes take packets.
func TestGreetings(t *testing.T) {
	all := opened(t, founded(t, 1, 2), &events{})
	keeper, node := all[0].id, all[1]
	if !node.links.greeted(within(t, 5*time.Second), keeper.Node) {
		t.Error("a keeper that is there does not answer")
	}
	if node.links.greeted(within(t, time.Second), "nobody") {
		t.Error("a keeper that is not there answers")
	}
	heard := make(chan *nats.Msg, 8)
	for _, subject := range []string{"elsewhere", node.id.subjectLinks("x")} {
		if _, err := node.traffic.ChanSubscribe(subject, heard); err != nil {
			t.Fatal(err)
		}
		if err := node.traffic.PublishRequest(node.id.subjectGreet(keeper.Node), subject, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !node.links.greeted(within(t, 5*time.Second), keeper.Node) { // behind those
		t.Error("it does not answer any more")
	}
	if len(heard) > 0 {
		t.Errorf("it answers on %s", (<-heard).Subject)
	}
}
