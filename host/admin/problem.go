package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/observe"
	"github.com/wasmactors/wasmactors/host/rerun"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// Problem is why a request was not carried out.
type Problem struct {
	Status  int    `json:"-"`       // of HTTP
	Code    string `json:"code"`    // for programs, such as "no_such_actor"
	Message string `json:"message"` // for people
	Hint    string `json:"hint,omitempty"`
}

func (p *Problem) Error() string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + "; " + p.Hint
}

// ErrorBody is the body of an error answer.
type ErrorBody struct {
	Error Problem `json:"error"`
}

func bad(code, message, hint string) *Problem {
	return &Problem{http.StatusBadRequest, code, message, hint}
}

const seeTree = "wasmactors tree lists the actors"

// known maps errors of the host to problems.
var known = []struct {
	err    error
	status int
	code   string
	hint   string
}{
	{observe.ErrInvalid, http.StatusBadRequest, "invalid", ""},
	{observe.ErrNoActor, http.StatusNotFound, "no_such_actor", seeTree},
	{observe.ErrNoReport, http.StatusNotFound, "no_such_report", "wasmactors crashes lists those that are kept"},
	{observe.ErrClosed, http.StatusServiceUnavailable, "ended", ""},
	{observe.ErrBusy, http.StatusTooManyRequests, "busy", "try again when they have ended"},
	{rerun.ErrNoActor, http.StatusNotFound, "no_such_actor", seeTree},
	{rerun.ErrTime, http.StatusBadRequest, "no_such_time", "GET /v1/replay has the begin and the end"},
	{rerun.ErrMoving, http.StatusTooManyRequests, "busy", "try again when it is there"},
	{host.ErrUnknown, http.StatusNotFound, "no_such_actor", seeTree},
	{host.ErrStopped, http.StatusGone, "stopped", ""},
	{host.ErrClosed, http.StatusServiceUnavailable, "ended", "the bundle has ended or is about to"},
	{host.ErrMailboxFull, http.StatusConflict, "mailbox_full", "try again later, or raise limits.mailbox"},
	{host.ErrRestarting, http.StatusConflict, "restarting", "try again when its delay is over"},
	{host.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large", ""},
	{host.ErrTimeout, http.StatusGatewayTimeout, "timeout", ""},
	{host.ErrBadDirective, http.StatusConflict, "bad_directive", "only a suspended actor waits for a decision"},
	{host.ErrDenied, http.StatusForbidden, "denied", ""},
}

// problemOf is the problem for an error.
func problemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &Problem{http.StatusRequestEntityTooLarge, "too_large", "the body has more than " + strconv.FormatInt(large.Limit, 10) + " bytes", ""}
	}
	text := printable.Line(bare(err), 1000)
	for _, k := range known {
		if errors.Is(err, k.err) {
			return &Problem{k.status, k.code, text, k.hint}
		}
	}
	if errors.Is(err, context.Canceled) {
		return &Problem{http.StatusServiceUnavailable, "ended", "the server ends", ""}
	}
	return &Problem{http.StatusBadRequest, "refused", text, ""}
}

// bare is an error's text without the names of packages.
func bare(err error) string {
	text := err.Error()
	for _, name := range []string{"observe: invalid: ", "observe: ", "host: "} {
		text = strings.TrimPrefix(text, name)
	}
	return text
}

// write answers with the problem.
func (p *Problem) write(w http.ResponseWriter) {
	body, _ := json.Marshal(ErrorBody{*p})
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="wasmactors"`)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
