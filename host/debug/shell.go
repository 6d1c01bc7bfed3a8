package debug

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Command is a command of the debugger.
type Command struct {
	Names []string
	Args  string
	Help  string
	do    func(d *Debugger, ctx context.Context, args []string, r *Result) error
}

// Commands are all commands.
func Commands() []Command {
	return []Command{
		{[]string{"forward", "f"}, "[N]", "go N places on (1)", (*Debugger).doForward},
		{[]string{"back", "b"}, "[N]", "go N places back (1)", (*Debugger).doBack},
		{[]string{"goto", "g"}, "PLACE", "go to the first place that is not before TURN, TURN:FUEL, TURN:end or :FUEL; or to start or failure", (*Debugger).doGoto},
		{[]string{"turn", "t"}, "[N]", "go to the begin of the Nth turn from here (1; negative: back)", (*Debugger).doTurn},
		{[]string{"call", "c"}, "NAME", "go to the next call of a function", (*Debugger).doCall},
		{[]string{"log", "l"}, "", "go to behind the next line of the log", (*Debugger).doLog},
		{[]string{"where", "w"}, "", "show the place and the innermost call", (*Debugger).doWhere},
		{[]string{"stack", "s"}, "", "show the calls under way", (*Debugger).doStack},
		{[]string{"arguments", "args"}, "", "show the calls under way with their arguments, as the interpreter has them", (*Debugger).doArguments},
		{[]string{"globals"}, "", "show the guest's mutable globals", (*Debugger).doGlobals},
		{[]string{"memory", "m"}, "ADDRESS[:LENGTH]", "show memory; an address is a number, a symbol, or either + a number", (*Debugger).doMemory},
		{[]string{"message"}, "", "show the message of this turn", (*Debugger).doMessage},
		{[]string{"commands"}, "", "show what the turn has asked for so far", (*Debugger).doCommands},
		{[]string{"diff"}, "PLACE [PLACE]", "show where the memory differs between two places, or from here", (*Debugger).doDiff},
		{[]string{"watch"}, "ADDRESS[:LENGTH]", "find the last write to memory before this place, and go there", (*Debugger).doWatch},
		{[]string{"help", "h"}, "", "show this list", func(_ *Debugger, _ context.Context, _ []string, r *Result) error { r.Help = Commands(); return nil }},
	}
}

// Do carries out a line: a command and its arguments. What follows # is a comment. The result is nil for an empty line. After an
// error the debugger is where it was, unless the error says otherwise.
func (d *Debugger) Do(ctx context.Context, line string) (*Result, error) {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, nil
	}
	all := Commands()
	i := slices.IndexFunc(all, func(c Command) bool { return slices.Contains(c.Names, words[0]) })
	if i < 0 {
		return nil, fmt.Errorf("there is no command %q: see help", clip(words[0]))
	}
	r := &Result{Command: all[i].Names[0]}
	was := d.at
	if err := ctx.Err(); err != nil { // while it runs that is looked at now and then
		return nil, fmt.Errorf("%s: %w", r.Command, err)
	}
	if err := all[i].do(d, ctx, words[1:], r); err != nil {
		d.at = was
		return nil, fmt.Errorf("%s: %w", all[i].Names[0], err)
	}
	r.At = d.at
	return r, nil
}

func clip(s string) string { return s[:min(len(s), 80)] }

// number reads an optional number.
func number(args []string, low, most int64) (int64, error) {
	if len(args) == 0 {
		return 1, nil
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || n < low || n > most || len(args) > 1 {
		return 0, fmt.Errorf("%q is no number from %d to %d", clip(strings.Join(args, " ")), low, most)
	}
	return n, nil
}

func one(args []string, what string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("it takes one argument: %s", what)
	}
	return args[0], nil
}

func none(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("it takes no arguments, not %q", clip(args[0]))
	}
	return nil
}

// mostSteps bounds forward, back and turn.
const mostSteps = 1_000_000

func (d *Debugger) doForward(ctx context.Context, args []string, r *Result) error {
	n, err := number(args, 1, mostSteps)
	if err == nil {
		err = d.forward(ctx, n)
	}
	return d.arrived(err, r)
}

func (d *Debugger) doBack(ctx context.Context, args []string, r *Result) error {
	n, err := number(args, 1, mostSteps)
	if err == nil {
		err = d.backward(ctx, int(n))
	}
	return d.arrived(err, r)
}

func (d *Debugger) doGoto(ctx context.Context, args []string, r *Result) error {
	text, err := one(args, "a place")
	if err != nil {
		return err
	}
	p, err := d.parse(text)
	if err == nil {
		err = d.seek(ctx, p)
	}
	return d.arrived(err, r)
}

// parse reads a place.
func (d *Debugger) parse(text string) (Place, error) {
	switch text {
	case "start":
		return Place{Turn: d.firstTurn(), Before: true}, nil
	case "failure", "end":
		return Place{Turn: d.lastTurn(), End: true}, nil
	}
	p, err := parsePlace(text, d.at)
	if err == nil && (p.Turn < d.firstTurn() || p.Turn > d.lastTurn()) {
		return p, fmt.Errorf("turn %d is not in the file, which has turns %d to %d", p.Turn, d.firstTurn(), d.lastTurn())
	}
	return p, err
}

func (d *Debugger) doTurn(ctx context.Context, args []string, r *Result) error {
	n, err := number(args, -mostSteps, mostSteps)
	if err != nil {
		return err
	}
	turn := d.at.Turn + uint64(n)
	switch first, last := d.firstTurn(), d.lastTurn(); {
	case n < 0 && (uint64(-n) > d.at.Turn || turn < first):
		turn = first
	case n > 0 && turn > last:
		return fmt.Errorf("the last turn of the file is %d", last)
	}
	return d.arrived(d.seek(ctx, Place{Turn: turn}), r)
}

func (d *Debugger) doWhere(ctx context.Context, args []string, r *Result) error {
	err := none(args)
	if err == nil {
		err = d.ensure(ctx)
	}
	return d.arrived(err, r)
}

func (d *Debugger) doStack(ctx context.Context, args []string, r *Result) error {
	err := none(args)
	if err == nil {
		err = d.ensure(ctx)
	}
	if err != nil {
		return err
	}
	r.Stack = d.stack(mostFrames)
	r.Trace = d.trace()
	return nil
}

// arrived fills in where a command has led to.
func (d *Debugger) arrived(err error, r *Result) error {
	if err != nil {
		return err
	}
	if f := d.stack(8); len(f) > 0 {
		r.Frame = &f[0]
		if len(f) > 1 {
			r.Caller = &f[1]
		}
	}
	if v := d.endView(); v != nil && v.outcome.Failure != nil {
		r.Failure = v.outcome.Failure.Error()
	}
	return nil
}
