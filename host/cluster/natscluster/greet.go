package natscluster

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// greetTime bounds how long an opening node waits for keepers that do not answer: they may be down.
const greetTime = 2 * time.Second

func (d *Description) subjectGreet(keeper string) string {
	return d.subject() + ".greet." + hexName(keeper)
}

// answerGreetings answers who asks whether this keeper's links are there. It is called after these have subscribed.
func (l *links) answerGreetings() error {
	if _, ok := l.id.Keeps(); !ok {
		return nil
	}
	sub, err := l.nc.Subscribe(l.id.subjectGreet(l.id.Node), func(m *nats.Msg) {
		if strings.HasPrefix(m.Reply, inboxes) { // on inboxes only, as all that keepers answer
			_ = m.Respond(nil)
		}
	})
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(1024, 1<<20)
}

// greet waits until the links of this node and of each keeper reach each other, or greetTime is over. What servers know of each other's
// subscriptions travels between them in the same order as messages: who has been answered over a connection between two servers
// is known at the other end, and knows what subscribed there before. Without it the first packets of a node may find nobody.
func (l *links) greet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	silent := slices.DeleteFunc(slices.Clone(l.id.Keepers), func(k Keeper) bool { return k.Name == l.id.Node })
	for len(silent) > 0 && ctx.Err() == nil {
		if silent = slices.DeleteFunc(silent, func(k Keeper) bool { return l.greeted(ctx, k.Name) }); len(silent) == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnect / 10):
		}
	}
}

func (l *links) greeted(ctx context.Context, keeper string) bool {
	once, cancel := context.WithTimeout(ctx, reconnect)
	defer cancel()
	_, err := l.nc.RequestWithContext(once, l.id.subjectGreet(keeper), nil)
	return err == nil
}
