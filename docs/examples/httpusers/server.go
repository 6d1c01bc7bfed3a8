package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/wasmactors/wasmactors/host"
)

// server answers requests by asking actors, one for each user.
type server struct {
	sys     *host.System
	user    host.Props
	timeout time.Duration // of a request
}

// handler has GET and POST /users/{name}/notes.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{name}/notes", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, "") })
	mux.HandleFunc("POST /users/{name}/notes", func(w http.ResponseWriter, r *http.Request) {
		note, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		s.answer(w, r, string(note))
	})
	return mux
}

func (s *server) answer(w http.ResponseWriter, r *http.Request, note string) {
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout)
	defer cancel()
	notes, err := s.ask(ctx, r.PathValue("name"), note)
	if err != nil {
		code, text := status(err)
		if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, text, code)
		return
	}
	_, _ = io.WriteString(w, notes+"\n")
}

// ask asks the actor of a user, which is started if there is none. One that has just ended
// because it was idle has not seen the question, so it is asked again.
func (s *server) ask(ctx context.Context, name, note string) (notes string, err error) {
	for range 3 {
		ref, _, err := s.sys.GetOrSpawn(ctx, name, s.user)
		if err != nil {
			return "", err
		}
		notes, err = host.AskAs[string](ctx, s.sys, ref, note)
		if !errors.Is(err, host.ErrStopped) && !errors.Is(err, host.ErrUnknown) {
			return notes, err
		}
	}
	return "", host.ErrStopped
}

// status is what HTTP calls an error, and what a stranger may read of it. What a guest
// says in a failure belongs into the log.
func status(err error) (code int, text string) {
	var failed *host.TurnError
	var answer *host.ReplyError
	switch {
	case errors.As(err, &answer): // the actor has answered with an error
		return http.StatusUnprocessableEntity, answer.Reason
	case errors.As(err, &failed): // its turn has failed; its supervisor decides what follows
		return http.StatusBadGateway, "the request has failed"
	case errors.Is(err, host.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "no answer in time"
	case errors.Is(err, host.ErrMailboxFull): // this user asks too much
		return http.StatusTooManyRequests, "too many requests"
	case errors.Is(err, host.ErrTooManyChildren), errors.Is(err, host.ErrStopped), errors.Is(err, host.ErrClosed), errors.Is(err, host.ErrRestarting):
		return http.StatusServiceUnavailable, "try again later"
	case errors.Is(err, host.ErrBadName):
		return http.StatusNotFound, "not a user's name"
	}
	return http.StatusInternalServerError, "internal error"
}
