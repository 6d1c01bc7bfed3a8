package admin

import (
	"context"
	"time"

	"github.com/wasmactors/wasmactors/host/observe"
)

// model is what a server renders: an *observe.Observer, or what stands for one in tests.
type model interface {
	System() observe.System
	Actors(observe.Query) (observe.Page, error)
	Tree(observe.TreeQuery) (observe.TreeNode, error)
	Actor(path string) (observe.Detail, error)
	Events(observe.EventQuery) (*observe.Stream[observe.Event], error)
	Crashes(observe.CrashQuery) (observe.CrashPage, error)
	CrashReport(id string) (observe.CrashReport, error)
	History(d time.Duration) (observe.History, error)
	Latencies() observe.Latencies
	DeadLetters(observe.DeadQuery) (observe.DeadPage, error)
	Trace(path string, o observe.TraceOptions) (*observe.Stream[observe.TraceRecord], error)
	Flow(ctx context.Context, d time.Duration) (observe.Flow, error)
	Profile(ctx context.Context, d time.Duration, sel observe.Select) (*observe.Profile, error)
	Do(observe.Verb) (observe.Outcome, error)
	Redeliver(q observe.DeadQuery, dryRun bool) (observe.Outcome, error)
}
