package httpclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/wasmactors/wasmactors/host/service"
)

// Grant is what an actor may request: its own keys are the first rule, Rules are others.
// Zero fields mean the defaults.
type Grant struct {
	Hosts   []string `manifest:"hosts" doc:"where requests may go: [scheme://]host[:port], https by default. *.example.com matches the names below it, * every host. A port may be *" reach:"connect"`
	Methods []string `manifest:"methods" doc:"methods that may be used; default GET and HEAD; * is all" reach:"none"`
	Paths   []string `manifest:"paths" doc:"patterns of paths: * and ? within a segment, ** at the end for all that is below; default: all paths" reach:"none"`
	Headers []string `manifest:"headers" doc:"headers that may be set besides harmless ones such as accept and content-type, as patterns: authorization, x-*" reach:"none"`
	Private []string `manifest:"private" doc:"addresses and networks that may be reached although they are not public: 10.1.0.0/16, ::1, or loopback, private, link-local, shared" reach:"connect"`
	Rules   []Rule   `manifest:"rules" doc:"further sets of requests that are granted; a request must fit one of them whole"`

	Redirects   int           `manifest:"redirects" doc:"how many redirects are followed, each checked like a request of its own; default none" min:"0" max:"20"`
	MaxRequest  service.Size  `manifest:"max-request" doc:"bytes of a request's body; default 1 MiB" min:"1"`
	MaxResponse service.Size  `manifest:"max-response" doc:"bytes of an answer's body; default 16 MiB" min:"1"`
	MaxHeaders  service.Size  `manifest:"max-headers" doc:"bytes of an answer's headers; default 16 KiB" min:"1024" max:"1048576"`
	Inline      service.Size  `manifest:"inline" doc:"bytes of an answer's body that come with it; larger ones come as a stream; default 32 KiB" min:"1" max:"4194304"`
	Connect     time.Duration `manifest:"connect-timeout" doc:"how long connecting may take, with the name's resolution and TLS each; default 10s"`
	Header      time.Duration `manifest:"header-timeout" doc:"how long it may take from a request to the headers of its answer; default: as long as the request"`
	Idle        time.Duration `manifest:"idle-timeout" doc:"how long a body may stand still; default 30s"`
	Body        time.Duration `manifest:"body-timeout" doc:"how long a body that is a stream may take in all; default 15m"`
	Streams     int           `manifest:"streams" doc:"bodies at a time that are streams; default 16" min:"1" max:"10000"`
	PerHost     int           `manifest:"connections-per-host" doc:"connections to a host at a time; default 16" min:"1" max:"1000"`
	Trace       bool          `manifest:"trace" doc:"requests carry the trace that they belong to (traceparent, tracestate)"`

	Breaker service.BreakerGrant `manifest:"breaker" doc:"gives a server that fails a rest"`
}

// Settings are the service's.
type Settings struct {
	Connections int           `manifest:"connections" doc:"connections at a time, of all grants together; default 512" min:"1" max:"100000"`
	Pooled      time.Duration `manifest:"pooled" doc:"how long a connection that nobody uses is kept; default 90s"`
	Roots       string        `manifest:"roots" doc:"file with certificates (PEM) of authorities that are trusted in addition to the system's" reach:"read"`
	Proxy       string        `manifest:"proxy" doc:"HTTP proxy that all connections go through: http://[user:password@]host:port, or https" reach:"connect"`
	Direct      []string      `manifest:"direct" doc:"addresses and networks that are reached without the proxy, written as under private" reach:"connect"`
	NAT64       []string      `manifest:"nat64" doc:"prefixes by which this network translates to IPv4, in addition to 64:ff9b::/96: their addresses are judged by the IPv4 address within" reach:"connect"`
	UserAgent   string        `manifest:"user-agent" doc:"of requests that set none; default wasmactors" reach:"none"`
}

// Defaults of [Grant] and [Settings].
const (
	DefaultMaxRequest  = 1 << 20
	DefaultMaxResponse = 16 << 20
	DefaultMaxHeaders  = 16 << 10
	DefaultInline      = 32 << 10
	DefaultConnect     = 10 * time.Second
	DefaultIdle        = 30 * time.Second
	DefaultBody        = 15 * time.Minute
	DefaultStreams     = 16
	DefaultPerHost     = 16
	DefaultConnections = 512
	DefaultPooled      = 90 * time.Second
	DefaultUserAgent   = "wasmactors"
)

// withDefaults is a copy whose bounds are set.
func (g *Grant) withDefaults() Grant {
	c := *g
	or(&c.MaxRequest, DefaultMaxRequest)
	or(&c.MaxResponse, DefaultMaxResponse)
	or(&c.MaxHeaders, DefaultMaxHeaders)
	or(&c.Inline, DefaultInline)
	or(&c.Connect, DefaultConnect)
	or(&c.Idle, DefaultIdle)
	or(&c.Body, DefaultBody)
	or(&c.Streams, DefaultStreams)
	or(&c.PerHost, DefaultPerHost)
	return c
}

func or[T int | service.Size | time.Duration](v *T, fallback T) {
	if *v <= 0 {
		*v = fallback
	}
}

// compile reads what a grant permits.
func (g *Grant) compile() (*permits, error) {
	p := &permits{}
	own := Rule{g.Hosts, g.Methods, g.Paths, g.Headers, g.Private}
	if len(own.Hosts) > 0 || len(g.Rules) == 0 {
		r, err := own.compile()
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, r)
	} else if len(own.Methods)+len(own.Paths)+len(own.Headers)+len(own.Private) > 0 {
		return nil, service.At("hosts", errors.New("methods, paths, headers and private need hosts beside them: name some, or move the keys into rules"))
	}
	for i := range g.Rules {
		r, err := g.Rules[i].compile()
		if err != nil {
			return nil, service.At(fmt.Sprintf("rules[%d]", i), err)
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

func checkGrant(g *Grant) error {
	_, err := g.compile()
	return err
}
