package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/abi"
	"github.com/wasmactors/wasmactors/guest-sdk/actor"
	"github.com/wasmactors/wasmactors/guest-sdk/schedule"
)

func init() {
	actor.Register("schedule-runner", func() actor.Actor { return &runner{} })
}

// runner answers runs, and does as it is told: a text of an order and its arguments, by blanks. Its
// state is lost when it restarts; what it has run is in the log of the test.
type runner struct {
	runs []string
	fail int // runs that fail before one is answered
}

func (x *runner) Receive(ctx *actor.Context, msg *actor.Message) error {
	if run, ok := schedule.RunOf(msg); ok {
		return x.run(ctx, msg, run)
	}
	if msg.Kind() != actor.KindMessage {
		return actor.ErrUnhandled
	}
	to, correlation := msg.Sender(), msg.Correlation()
	answer := func(ctx *actor.Context, text string, err error) error {
		if err != nil {
			return ctx.AnswerError(to, correlation, err.Error())
		}
		return ctx.Answer(to, correlation, actor.Text(text))
	}
	words := split(msg.Text())
	switch words[0] {
	case "runs":
		all := ""
		for _, r := range x.runs {
			all += r + "\n"
		}
		return answer(ctx, all, nil)
	case "fail":
		x.fail, _ = strconv.Atoi(words[1])
		return ctx.Reply(nil)
	case "cron": // NAME PAYLOAD EXPRESSION...
		e := schedule.Entry{Name: words[1], Payload: actor.Text(words[2]), Zone: "Europe/Berlin"}
		for _, w := range words[3:] {
			e.Cron += w + " "
		}
		schedule.Set(ctx, e, func(ctx *actor.Context, s schedule.State, err error) error {
			return answer(ctx, strconv.FormatBool(s.Changed)+" "+s.Next.Format(time.RFC3339), err)
		})
	case "every": // NAME SECONDS
		n, _ := strconv.Atoi(words[2])
		schedule.SetNew(ctx, schedule.Entry{Name: words[1], Every: time.Duration(n) * time.Second, Missed: schedule.Skip}, func(ctx *actor.Context, s schedule.State, err error) error {
			return answer(ctx, s.Next.Format(time.RFC3339), err)
		})
	case "at": // NAME SECONDS from now
		n, _ := strconv.Atoi(words[2])
		schedule.Set(ctx, schedule.Entry{Name: words[1], At: ctx.Now().Add(time.Duration(n) * time.Second), Delivery: schedule.Tell}, func(ctx *actor.Context, s schedule.State, err error) error {
			return answer(ctx, s.Next.Format(time.RFC3339), err)
		})
	case "to": // PATH SECONDS from now
		n, _ := strconv.Atoi(words[2])
		schedule.Set(ctx, schedule.Entry{Name: "to-" + words[1][strings.LastIndexByte(words[1], '/')+1:], To: words[1], At: ctx.Now().Add(time.Duration(n) * time.Second), Delivery: schedule.Tell}, func(ctx *actor.Context, s schedule.State, err error) error {
			return answer(ctx, s.Next.Format(time.RFC3339), err)
		})
	case "cancel":
		schedule.Cancel(ctx, words[1], func(ctx *actor.Context, found bool, err error) error {
			return answer(ctx, strconv.FormatBool(found), err)
		})
	case "get":
		schedule.Get(ctx, words[1], func(ctx *actor.Context, s schedule.Status, err error) error {
			return answer(ctx, s.Name+" "+s.Cron+s.Every.String()+" to "+s.To+" runs "+strconv.FormatUint(s.Runs, 10)+" retries "+strconv.FormatUint(s.Retries, 10), err)
		})
	case "list":
		schedule.List(ctx, "", func(ctx *actor.Context, entries []schedule.Status, more bool, err error) error {
			text := ""
			for _, e := range entries {
				text += e.Name
				if e.ReadOnly {
					text += "!"
				}
				text += " "
			}
			return answer(ctx, text, err)
		})
	default:
		return errors.New("an order that nobody knows")
	}
	return nil
}

func (x *runner) run(ctx *actor.Context, msg *actor.Message, run schedule.Run) error {
	payload := abi.NewReader(run.Payload)
	text := run.ID + " attempt " + strconv.Itoa(run.Attempt)
	if payload.Peek() == abi.TypeText {
		text += " " + payload.Text()
	}
	x.runs = append(x.runs, text)
	ctx.Info("run " + text)
	if x.fail > 0 {
		x.fail--
		return ctx.ReplyError("not now")
	}
	if run.Entry == "crash" && run.Attempt == 1 {
		panic("the first attempt crashes")
	}
	if msg.Correlation() == 0 {
		return nil
	}
	return ctx.Reply(nil)
}

func split(s string) []string {
	out := []string{""}
	for i := range len(s) {
		if s[i] == ' ' {
			out = append(out, "")
		} else {
			out[len(out)-1] += s[i : i+1]
		}
	}
	return out
}
