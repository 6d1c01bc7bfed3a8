package config

import (
	"context"
	"slices"
	"strings"

	"github.com/wasmactors/wasmactors/host"
	"github.com/wasmactors/wasmactors/host/service"
	"github.com/wasmactors/wasmactors/internal/glob"
)

type (
	keyArgs struct {
		Key string `cbor:"key"`
	}
	listArgs struct {
		Prefix string `cbor:"prefix,omitempty"`
		After  string `cbor:"after,omitempty"`
		Limit  int    `cbor:"limit,omitempty"`
	}
	pair struct {
		_     struct{} `cbor:",toarray"`
		Key   string
		Value cborValue
	}
	listAnswer struct {
		Values  []pair `cbor:"values"`
		More    bool   `cbor:"more"`
		Version uint64 `cbor:"version"`
	}
	watchArgs struct {
		Keys []string `cbor:"keys"`
	}
	watchAnswer struct {
		Version uint64 `cbor:"version"`
	}
)

// cborValue is encoded as it is.
type cborValue value

// MarshalCBOR implements cbor.Marshaler.
func (v cborValue) MarshalCBOR() ([]byte, error) { return v, nil }

// ServeNow implements service.Inline: what is in memory.
func (p *provider) ServeNow(r *service.Request[Grant]) (answer any, err error, ok bool) {
	switch r.Op {
	case "get":
		answer, err = p.get(r)
	case "list":
		answer, err = p.list(r)
	case "watch":
		answer, err = p.watching(r)
	case "unwatch":
		if err = r.Decode(&struct{}{}); err == nil {
			p.mu.Lock()
			delete(p.watchers, r.Sender)
			p.mu.Unlock()
		}
	default:
		return nil, nil, false
	}
	return answer, err, true
}

// Serve implements service.Provider: secrets, which may have to be fetched.
func (p *provider) Serve(ctx context.Context, r *service.Request[Grant]) (any, error) {
	if r.Op != "secret" {
		return nil, r.Unknown()
	}
	key, err := keyOf(r)
	if err != nil {
		return nil, err
	}
	if !glob.MatchAny(r.Grant.Secrets, key) {
		return nil, service.Deny("secrets", "the secret %s", key)
	}
	x, ok := p.settings.Secrets[key]
	if !ok {
		return nil, service.Errorf(service.NotFound, "there is no secret %s; services.config.secrets in the manifest says which there are", key)
	}
	return p.secret(ctx, key, x)
}

func keyOf(r *service.Request[Grant]) (string, error) {
	var in keyArgs
	if err := r.Decode(&in); err != nil {
		return "", err
	}
	if !validKey(in.Key) {
		return "", service.Errorf(service.BadRequest, "%.80q is not a key, such as db.host", in.Key)
	}
	return in.Key, nil
}

func (p *provider) get(r *service.Request[Grant]) (any, error) {
	key, err := keyOf(r)
	if err != nil {
		return nil, err
	}
	if !glob.MatchAny(r.Grant.Keys, key) {
		return nil, service.Deny("keys", "the key %s", key)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.values[key]
	if !ok {
		return nil, service.Errorf(service.NotFound, "there is no value for %s", key)
	}
	return host.Raw(v), nil
}

// list returns the keys that the sender may read, in order.
func (p *provider) list(r *service.Request[Grant]) (any, error) {
	in := listArgs{Limit: MaxList}
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.Limit < 1 || in.Limit > MaxList || len(in.Prefix) > MaxKey || len(in.After) > MaxKey {
		return nil, service.Errorf(service.BadRequest, "limit is 1 to %d, prefix and after have at most %d bytes", MaxList, MaxKey)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := listAnswer{Values: []pair{}, Version: p.version}
	at, found := slices.BinarySearch(p.sorted, max(in.After, in.Prefix))
	if found && in.After >= in.Prefix && in.After != "" {
		at++
	}
	size := 0
	for _, key := range p.sorted[at:] {
		if !strings.HasPrefix(key, in.Prefix) {
			break
		}
		if !glob.MatchAny(r.Grant.Keys, key) {
			continue
		}
		if size += len(key) + len(p.values[key]); len(out.Values) == in.Limit || len(out.Values) > 0 && size > answerBytes {
			out.More = true
			break
		}
		out.Values = append(out.Values, pair{Key: key, Value: cborValue(p.values[key])})
	}
	return out, nil
}

// watching registers the sender as a watcher; this replaces what it watched before.
func (p *provider) watching(r *service.Request[Grant]) (any, error) {
	var in watchArgs
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if len(in.Keys) == 0 || len(in.Keys) > MaxPatterns {
		return nil, service.Errorf(service.BadRequest, "%d patterns of keys, 1 to %d may be watched", len(in.Keys), MaxPatterns)
	}
	for _, pattern := range in.Keys {
		if !validPattern(pattern) {
			return nil, service.Errorf(service.BadRequest, "%.80q is not a pattern of keys, such as db.*", pattern)
		}
	}
	if len(r.Grant.Keys) == 0 {
		return nil, service.Deny("keys", "to watch keys")
	}
	if !p.room(r) {
		p.forgetEnded()
		if !p.room(r) {
			return nil, service.Errorf(service.Quota, "%d actors of the grant watch, or %d in all, which is the limit", MaxWatchers, mostWatch)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers[r.Sender] = &watcher{slices.Clone(in.Keys), r.Grant.Keys, r.GrantID()}
	return watchAnswer{p.version}, nil
}

// room reports whether there is room for the sender as a watcher.
func (p *provider) room(r *service.Request[Grant]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers[r.Sender] != nil {
		return true
	}
	of := 0
	for _, w := range p.watchers {
		if w.grant == r.GrantID() {
			of++
		}
	}
	return of < MaxWatchers && len(p.watchers) < mostWatch
}
