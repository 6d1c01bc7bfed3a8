package service

import (
	"errors"
	"fmt"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Error{
		"not_found: no such key":         {NotFound, "no such key"},
		"denied: a: b":                   {Denied, "a: b"},
		"denied: ":                       {Denied, ""},
		"later_code: from a newer host":  {"later_code", "from a newer host"},
		"":                               {Unavailable, ""},
		"denied":                         {Unavailable, "denied"},
		"denied:x":                       {Unavailable, "denied:x"},
		": x":                            {Unavailable, ": x"},
		"the actor has stopped":          {Unavailable, "the actor has stopped"},
		"Denied: with a capital letter":  {Unavailable, "Denied: with a capital letter"},
		"guest panic: not one of a code": {Unavailable, "guest panic: not one of a code"},
		"host: no such actor":            {Unavailable, "no such actor"},
		"host: the mailbox is full":      {Busy, "the mailbox is full"},
	} {
		if got := *parse(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestErrorIs(t *testing.T) {
	err := error(&Error{Denied, "x"})
	for _, c := range []struct {
		target error
		want   bool
	}{{ErrDenied, true}, {ErrNotFound, false}, {&Error{Denied, "x"}, true}, {&Error{Denied, "y"}, false}, {errors.New("denied: x"), false}} {
		if got := errors.Is(err, c.target); got != c.want {
			t.Errorf("%v: %v", c.target, got)
		}
	}
	for want, err := range map[Code]error{Denied: err, NotFound: fmt.Errorf("x: %w", ErrNotFound), "": errors.New("denied: x")} {
		if got := CodeOf(err); got != want {
			t.Errorf("%v: %q", err, got)
		}
	}
	if CodeOf(nil) != "" {
		t.Error("nil has a code")
	}
	if err.Error() != "denied: x" || ErrDenied.Error() != "denied" {
		t.Errorf("%v, %v", err, ErrDenied)
	}
}

func TestRetry(t *testing.T) {
	for c, want := range map[Code]bool{Denied: false, BadRequest: false, NotFound: false, Exists: false, Conflict: false, TooLarge: false, Quota: false,
		Busy: true, RateLimited: true, Unavailable: true, Timeout: true, Cancelled: false, ReadOnly: false, Failed: false, Internal: false, "other": false} {
		if c.Retry() != want {
			t.Errorf("%s: %v", c, c.Retry())
		}
	}
}
