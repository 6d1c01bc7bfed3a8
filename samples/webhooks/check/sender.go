package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// keys are the senders' secrets, by source.
var keys = map[string][]byte{
	"shop": []byte("0123456789abcdef0123456789abcdef"),
	"bank": []byte("fedcba9876543210fedcba9876543210"),
}

func secret(source string) string { return "whsec_" + base64.StdEncoding.EncodeToString(keys[source]) }

// hook is one that a sender has to get rid of.
type hook struct {
	source, id, body string
	again            int    // how often it is sent besides
	job              string // when it was acknowledged
	done             bool   // the queue says that it is delivered
}

func newHook(kind string, n int) *hook {
	h := &hook{source: "shop", id: fmt.Sprintf("msg_%s_%d", kind, n)}
	if n%3 == 1 && kind != "forged" {
		h.source = "bank"
	}
	h.body = fmt.Sprintf(`{"type":"order.paid","data":{"order":%d,"note":%q}}`, n, strings.Repeat(kind, 1+n*7%900))
	if kind == "load" {
		h.again = []int{0, 2, 0, 1}[n%4]
	}
	return h
}

// request is a hook as it is sent.
type request struct {
	method, path, source, body string
	header                     map[string]string
}

func (h *hook) request() *request {
	q := &request{method: "POST", path: "/hooks/" + h.source, source: h.source, body: h.body, header: map[string]string{"webhook-id": h.id, "content-type": "application/json"}}
	q.at(time.Now())
	return q
}

// at signs it as of a time.
func (q *request) at(t time.Time) {
	q.header["webhook-timestamp"] = stamp(t)
	q.header["webhook-signature"] = sign(q.source, q)
}

func stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// sign is the signature of Standard Webhooks.
func sign(source string, q *request) string {
	mac := hmac.New(sha256.New, keys[source])
	fmt.Fprintf(mac, "%s.%s.%s", q.header["webhook-id"], q.header["webhook-timestamp"], q.body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sender sends hooks, as a service does that people have given an address to.
type sender struct {
	ctx        context.Context
	host       *host
	client     *http.Client
	acked      atomic.Int64
	duplicates atomic.Int64
}

func newSender(ctx context.Context, h *host) *sender {
	return &sender{ctx: ctx, host: h, client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

func (s *sender) acknowledged() int { return int(s.acked.Load()) }

// verdict is what a hook is answered with.
type verdict struct{ Job, Outcome string }

func (s *sender) do(q *request) (status int, v verdict, retryAfter string, err error) {
	r, err := http.NewRequestWithContext(s.ctx, q.method, s.host.url+q.path, strings.NewReader(q.body))
	if err != nil {
		return 0, v, "", err
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	res, err := s.client.Do(r)
	if err != nil {
		return 0, v, "", err
	}
	defer res.Body.Close()
	if res.StatusCode == 200 || res.StatusCode == 202 {
		if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
			return 0, v, "", err
		}
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, v, res.Header.Get("Retry-After"), nil
}

// insist sends a hook until it is acknowledged, a few times at once and afterwards if it is one of those.
func (s *sender) insist(h *hook) error {
	type answer struct {
		status int
		job    string
		err    error
	}
	answers := make(chan answer, 2)
	for range 1 + h.again/2 {
		go func() {
			status, job, err := s.once(h)
			answers <- answer{status, job, err}
		}()
	}
	kept := 0
	for range 1 + h.again/2 {
		a := <-answers
		if a.err != nil {
			return a.err
		}
		if h.job != "" && a.job != h.job {
			return fmt.Errorf("%s is the job %s, and %s", h.id, h.job, a.job)
		}
		h.job = a.job
		if a.status == 202 {
			kept++
		}
	}
	if kept > 1 {
		return fmt.Errorf("%s was kept %d times", h.id, kept)
	}
	s.acked.Add(1)
	if h.again == 1 {
		status, job, err := s.once(h)
		if err != nil || status != 200 || job != h.job {
			return fmt.Errorf("%s once more: %d, %s, %v", h.id, status, job, err)
		}
	}
	return nil
}

// once sends a hook until there is an answer that is not one of trouble: the connection may be cut, and crashes are 502.
func (s *sender) once(h *hook) (status int, job string, err error) {
	for range 500 {
		status, v, after, err := s.do(h.request())
		switch {
		case s.ctx.Err() != nil:
			return 0, "", err
		case err != nil:
		case status == 202 || status == 200:
			if status == 200 {
				s.duplicates.Add(1)
			}
			return status, v.Job, nil
		case (status == 503 || status == 429) && after == "":
			return 0, "", fmt.Errorf("%s: %d without Retry-After", h.id, status)
		case status != 503 && status != 429 && status != 502 && status != 504:
			return 0, "", fmt.Errorf("%s: %d", h.id, status)
		}
		time.Sleep(50 * time.Millisecond) // Retry-After is in seconds, and the check has few
	}
	return 0, "", fmt.Errorf("%s: nobody takes it", h.id)
}

// operator asks what only operators may.
func (s *sender) operator(method, path string, answer any) (status int, err error) {
	r, err := http.NewRequestWithContext(s.ctx, method, s.host.url+path, nil)
	if err != nil {
		return 0, err
	}
	r.SetBasicAuth("operator", password)
	res, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if answer != nil && res.StatusCode == 200 {
		err = json.NewDecoder(res.Body).Decode(answer)
	}
	return res.StatusCode, err
}

func (s *sender) stranger(path string) (status int, err error) {
	res, err := s.client.Get(s.host.url + path)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, nil
}

// letters are the dead letters.
type letters struct {
	Total int
	Dead  []struct{ Job, State, Problem string }
}

func (s *sender) dead() (list letters, err error) {
	status, err := s.operator("GET", "/dead", &list)
	if err == nil && status != 200 && status != 503 {
		err = fmt.Errorf("the dead letters: %d", status)
	}
	if err == nil && status == 503 { // the queue is reading the store
		list.Total = -1
	}
	return list, err
}

func (s *sender) state(job string) (string, error) {
	var v struct{ State string }
	status, err := s.operator("GET", "/jobs/"+job, &v)
	if err == nil && status != 200 && status != 503 {
		err = fmt.Errorf("the job %s: %d", job, status)
	}
	return v.State, err
}
