package gateway

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service/gateway/middleware"
	"github.com/wasmactors/wasmactors/internal/printable"
)

// problem is why a request does not get its normal answer; the zero value is none. It is
// reported in the format of RFC 9457.
type problem struct {
	status int
	text   string
	report string        // of a crash
	retry  time.Duration // 503, 429: when to come again; 0: not said
	cause  error         // for the log
}

// statusGone is logged for clients that have disconnected before the answer.
const statusGone = middleware.StatusGone

// refuse answers with a problem.
func (x *exchange) refuse(p problem) {
	h := x.w.Header()
	if x.w.status != 0 { // the answer has begun: it can only break off
		panic(http.ErrAbortHandler)
	}
	x.note = p.text
	if p.report != "" {
		x.note = "report " + p.report
		h.Set("X-Crash-Report", p.report)
	}
	if p.cause != nil && p.status >= 500 {
		x.g.log.LogAttrs(x.r.Context(), slog.LevelWarn, "a request has failed", slog.String("id", x.id), slog.Int("status", p.status),
			slog.String("path", x.r.URL.Path), slog.String("why", printable.Line(p.cause.Error(), 500)))
	}
	if p.status == statusGone {
		x.w.status, x.aborted = statusGone, true
		return
	}
	if p.retry > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(max(p.retry.Seconds(), 1))), 10))
	}
	h.Del("Etag")
	h.Del("Content-Encoding")
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	b := append(make([]byte, 0, 160), `{"status":`...)
	b = strconv.AppendInt(b, int64(p.status), 10)
	b = append(b, `,"title":`...)
	b = appendJSON(b, http.StatusText(p.status))
	if p.text != "" {
		b = appendJSON(append(b, `,"detail":`...), p.text)
	}
	b = appendJSON(append(b, `,"id":`...), x.id)
	if p.report != "" {
		b = appendJSON(append(b, `,"report":`...), p.report)
	}
	b = append(b, "}\n"...)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	x.w.WriteHeader(p.status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(b)
	}
}

// appendJSON appends a text as a JSON string.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c < ' ':
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, string(c)...)
		}
	}
	return append(b, '"')
}

// problemOf is what an ask has ended with, as HTTP has it. What a guest says in a failure
// is for the log.
func (g *Gateway) problemOf(err error, to host.Ref) problem {
	p := problem{status: http.StatusInternalServerError, text: "internal error", cause: err}
	later := func(text string, retry time.Duration) problem {
		return problem{status: http.StatusServiceUnavailable, text: text, retry: retry, cause: err}
	}
	var failed *host.TurnError
	var answer *host.ReplyError
	switch {
	case errors.As(err, &answer):
		return problemOfReply(answer.Reason)
	case errors.As(err, &failed):
		return problem{status: http.StatusBadGateway, text: "the actor has crashed", report: failed.ID, cause: err}
	case errors.Is(err, host.ErrEnded):
		return problem{status: http.StatusBadGateway, text: "the actor has ended before it has answered", cause: err}
	case errors.Is(err, host.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return g.late(to, err)
	case errors.Is(err, host.ErrMailboxFull):
		return later("the actor is busy", time.Second)
	case errors.Is(err, host.ErrRestarting):
		retry, _ := g.restarting(to)
		return later("the actor is about to be restarted", retry)
	case errors.Is(err, host.ErrTooLarge):
		return problem{status: http.StatusRequestEntityTooLarge, text: "the request is larger than the actor can take", cause: err}
	case errors.Is(err, host.ErrBadName):
		return problem{status: http.StatusNotFound, text: "there is no such page"}
	case errors.Is(err, host.ErrTooManyChildren), errors.Is(err, host.ErrLimit), errors.Is(err, host.ErrNameTaken):
		return later("there is no room for another actor", time.Second)
	case errors.Is(err, host.ErrClosed):
		return later("the server is about to stop", time.Second)
	case errors.Is(err, host.ErrStopped), errors.Is(err, host.ErrUnknown):
		return later("the actor is not there", time.Second)
	}
	return p
}

// late is the answer to a request that was not answered in time: 503 if the actor waits for its restart or its start, else
// 504.
func (g *Gateway) late(to host.Ref, err error) problem {
	if retry, waits := g.restarting(to); waits {
		return problem{status: http.StatusServiceUnavailable, text: "the actor is about to be started", retry: retry, cause: err}
	}
	return problem{status: http.StatusGatewayTimeout, text: "no answer in time", cause: err}
}

// restarting reports whether an actor is between two incarnations, or has not begun, and
// after which time to come again.
func (g *Gateway) restarting(to host.Ref) (retry time.Duration, waits bool) {
	info, err := g.sys.View().Info(to)
	if err != nil {
		return time.Second, false
	}
	switch info.State {
	case host.StateDelayed, host.StateStarting, host.StateStarved, host.StateSuspended, host.StatePaused:
		return max(info.Due, time.Second), true
	}
	return time.Second, false
}

// statusOf are the statuses of the codes that services and guests answer errors with; see
// service.Code.
var statusOf = map[string]int{
	"denied": http.StatusForbidden, "bad_request": http.StatusBadRequest, "not_found": http.StatusNotFound,
	"exists": http.StatusConflict, "conflict": http.StatusConflict, "too_large": http.StatusRequestEntityTooLarge,
	"quota": http.StatusInsufficientStorage, "busy": http.StatusServiceUnavailable, "rate_limited": http.StatusTooManyRequests,
	"unavailable": http.StatusServiceUnavailable, "timeout": http.StatusGatewayTimeout, "cancelled": http.StatusServiceUnavailable,
	"read_only": http.StatusForbidden, "failed": http.StatusBadGateway, "internal": http.StatusInternalServerError,
	"keyed": http.StatusServiceUnavailable, // a keeper cannot start the actor of a key now
}

// problemOfReply is an answer that is an error: CODE: text, as services have it, or any text.
func problemOfReply(reason string) problem {
	code, text, ok := strings.Cut(reason, ": ")
	status, known := statusOf[code]
	if !ok || !known {
		return problem{status: http.StatusInternalServerError, text: printable.Line(reason, 500)}
	}
	p := problem{status: status, text: printable.Line(text, 500)}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		p.retry = time.Second
	}
	return p
}

// access logs a request that was served.
func (x *exchange) access() {
	if !x.g.cfg.Access || x.g.cfg.Log == nil {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("method", x.r.Method), slog.String("path", printable.Line(x.r.URL.Path, 300)), slog.Int("status", x.w.status),
		slog.Int64("bytes", x.w.bytes), slog.Duration("took", x.g.clock.Now().Sub(x.begun)), slog.String("remote", x.remoteText()), slog.String("id", x.id))
	if x.route != nil {
		attrs = append(attrs, slog.String("route", x.route.Pattern))
	}
	if x.who != nil {
		attrs = append(attrs, slog.String("who", printable.Line(x.who.Name, 100)))
	}
	if x.note != "" {
		attrs = append(attrs, slog.String("note", x.note))
	}
	x.g.log.LogAttrs(x.r.Context(), slog.LevelInfo, "http", attrs...)
}
