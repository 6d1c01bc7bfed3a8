package admin

import (
	"net/http"
	"slices"

	"github.com/wasmactors/wasmactors/host/observe"
)

// Parameters that several routes share.
var (
	selecting = []param{
		{name: "path", kind: textsParam, about: "a glob on the path: /user/pool-*, /user/shop/** for all below"},
		{name: "type", kind: textsParam, about: "a glob on the type"},
		{name: "state", kind: textsParam, about: "a state, such as suspended"},
		{name: "ref", kind: textsParam, about: "the ref of an actor, 16 hexadecimal digits"},
	}
	sorting = []param{
		{name: "sort", about: "path, type, state, mailbox, oldest, turns, fuel, held, restarts, crashes or since"},
		{name: "desc", kind: flagParam, about: "the largest first"},
	}
	paging = []param{
		{name: "offset", kind: countParam, about: "skip this many"},
		{name: "limit", kind: countParam, about: "at most this many; 0: the default"},
	}
)

func params(lists ...[]param) (all []param) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

const (
	mediaJSON  = "application/json"
	mediaLines = "application/x-ndjson"
	mediaSSE   = "text/event-stream"
)

// table is all that a server serves, the dashboard's files aside.
func table() []*route {
	path := param{name: "path", needed: true, about: "the path of an actor, such as /user/shop"}
	verb := func(name, about string) *route {
		return &route{method: http.MethodPost, path: "/v1/" + name, needs: full, about: about, body: Command{}, answer: observe.Outcome{},
			serve: func(s *Server, c *call) error { return s.command(c, name) }}
	}
	return append(slices.Concat(keysRoutes(), clusterRoutes(), replayRoutes()), []*route{
		{method: http.MethodGet, path: "/v1/server", still: true, needs: reader, about: "The server itself: where it listens, and what this caller may do.", answer: About{}, serve: (*Server).about},
		{method: http.MethodGet, path: "/v1/system", still: true, needs: reader, about: "The system as a whole, with totals by type.", answer: observe.System{}, serve: (*Server).system},
		{method: http.MethodGet, path: "/v1/history", needs: reader, about: "How the system has developed: totals at times in the past, a day at most.", answer: observe.History{},
			params: []param{{name: "seconds", kind: secondsParam, about: "how far back; an hour if it is missing"}}, serve: (*Server).history},
		{method: http.MethodGet, path: "/v1/latencies", needs: reader, about: "How long turns, requests from outside and requests of services took: histograms since the start.", answer: observe.Latencies{}, serve: (*Server).latencies},
		{method: http.MethodGet, path: "/v1/actors", still: true, needs: reader, about: "A list of actors: chosen, sorted, a page of it.", answer: observe.Page{},
			params: params(selecting, []param{{name: "search", about: "a part of the path or of the type"}}, sorting, paging), serve: (*Server).actors},
		{method: http.MethodGet, path: "/v1/tree", still: true, needs: reader, about: "An actor and what is below it, with sums of each subtree.", answer: observe.TreeNode{},
			params: params([]param{{name: "under", about: "the path of its root; /user if it is missing"}, {name: "depth", kind: countParam, about: "levels below it; 0: the default"},
				{name: "limit", kind: countParam, about: "children of each node; 0: the default"}, {name: "offset", kind: countParam, about: "skip this many children of the root"}}, sorting), serve: (*Server).tree},
		{method: http.MethodGet, path: "/v1/actor", still: true, needs: reader, about: "One actor in full.", answer: observe.Detail{}, params: []param{path}, serve: (*Server).actor},
		{method: http.MethodGet, path: "/v1/events", needs: reader, about: "Past events, and with follow new ones, one a line. A line whose event is \"dropped\" says how many were lost because they were not read in time, the last line, \"end\", why the stream ends.",
			params: params([]param{{name: "follow", kind: flagParam, about: "continue with new events"}}, eventParams(), []param{{name: "after", kind: countParam, about: "past events: after the event with this number"}}),
			media:  []string{mediaLines, mediaSSE}, stream: true, answer: observe.Event{}, serve: (*Server).events},
		{method: http.MethodGet, path: "/v1/crashes", needs: reader, about: "Crash reports that are kept, newest first, a line each, and their causes.", answer: observe.CrashPage{},
			params: params([]param{{name: "path", kind: textsParam, about: "a glob on the actor's path"}, {name: "type", kind: textsParam, about: "a glob on the actor's type"},
				{name: "kind", kind: textsParam, about: "a glob on the kind of failure, such as trap"}, {name: "cause", kind: textsParam, about: "a glob on the cause, or on the reason"},
				{name: "since", kind: timeParam, about: "not older than this time (RFC 3339)"}}, paging), serve: (*Server).crashes},
		{method: http.MethodGet, path: "/v1/crashes/report", needs: reader, about: "One crash report in full.", answer: observe.CrashReport{},
			params: []param{{name: "id", needed: true, about: "the report's id, as in the header X-Crash-Report"}}, serve: (*Server).crash},
		{method: http.MethodGet, path: "/v1/dead-letters", needs: reader, about: "Messages that were not delivered, the last ones that are kept.", answer: observe.DeadPage{},
			params: params([]param{{name: "to", kind: textsParam, about: "a glob on the recipient's path"}, {name: "from", kind: textsParam, about: "a glob on the sender's path"},
				{name: "reason", kind: textsParam, about: "why it was not delivered"}, {name: "id", kind: textsParam, about: "the number of a dead letter"}}, paging), serve: (*Server).deadLetters},
		{method: http.MethodGet, path: "/v1/trace", still: true, needs: reader, about: "The messages that an actor gets and sends, from now on, one a line; it ends as the stream of events does, and with the actor. Of a recording: those after the time that is shown, at once.",
			params: []param{path, {name: "messages", kind: countParam, about: "end after this many messages"}, {name: "seconds", kind: secondsParam, about: "end after this time"}, {name: "payload", kind: countParam, about: "keep this many bytes of each payload"}},
			media:  []string{mediaLines, mediaSSE}, stream: true, answer: observe.TraceRecord{}, serve: (*Server).trace},
		{method: http.MethodGet, path: "/v1/flow", needs: reader, about: "Messages by sender and receiver, sampled for some seconds.", answer: observe.Flow{},
			params: []param{{name: "seconds", kind: secondsParam, about: "how long to look; 1 if it is missing"}}, serve: (*Server).flow},
		{method: http.MethodGet, path: "/v1/profile", needs: reader, about: "Where the guests' fuel goes, sampled for some seconds, in the format of pprof.", media: []string{"application/octet-stream"},
			params: params([]param{{name: "seconds", kind: secondsParam, about: "how long to look; 5 if it is missing"}}, selecting), serve: (*Server).profile},
		{method: http.MethodGet, path: "/v1/store", needs: full, about: "The store of durable actors, and what it has of each. All of the log is read for it, so a token that can only read does not do; /v1/system has the figures.", answer: Stored{}, serve: (*Server).stored},
		{method: http.MethodGet, path: "/v1/store/events", needs: full, about: "What actors that keep events have stored, one a line: of one actor, with one tag, or all; with follow also what comes. The last line is \"end\".",
			params: []param{{name: "id", about: "the path of an actor, as /user/account/ada"}, {name: "tag", about: "a tag"}, {name: "from", kind: countParam, about: "the number (id) or offset (tag) to begin with"},
				{name: "follow", kind: flagParam, about: "continue with new events; needs id or tag"}},
			media: []string{mediaLines, mediaSSE}, stream: true, answer: StoredEvent{}, serve: (*Server).storedEvents},

		{method: http.MethodPost, path: "/v1/send", needs: full, about: "Sends a message to all actors that are chosen; one that does not accept it is told.", body: Mail{}, large: true, answer: observe.Outcome{}, serve: (*Server).send},
		{method: http.MethodPost, path: "/v1/ask", needs: full, about: "Sends a message to one actor and waits for the answer.", body: Question{}, large: true, answer: Answer{}, serve: (*Server).ask},
		verb("stop", "Stops actors after their current turn, children first."),
		verb("kill", "Stops actors at once: a guest's turn that runs ends and has done nothing."),
		verb("restart", "Gives actors a fresh incarnation, at once."),
		verb("pause", "Lets messages wait until unpause."),
		verb("unpause", "Goes on with the messages that have waited."),
		verb("crash", "Lets actors fail as if a turn had, so that their supervisors decide."),
		verb("decide", "Decides about suspended actors."),
		verb("reset-backoff", "Forgets the failures that delays and restart limits count."),
		{method: http.MethodPost, path: "/v1/reload", needs: full, about: "Reads the bundle again and changes what runs, or with restart starts all of it anew. If the new version does not load, nothing has changed.", body: Reload{}, answer: Reloaded{}, serve: (*Server).reload},
		{method: http.MethodPost, path: "/v1/upgrade", needs: full, about: "Exchanges the code of living actors and keeps their state: of a module whose new code is sent, or of all that have changed. A line for each step, then the report. If the caller goes away before, actors that can go back do.", body: Upgrade{}, module: true,
			media: []string{mediaLines, mediaSSE}, stream: true, answer: UpgradeLine{}, serve: (*Server).upgrade},
		{method: http.MethodPost, path: "/v1/store/checkpoint", needs: full, about: "Has the state of all durable actors written, so that a start repeats only what comes after, and gives back the space of what came before.", answer: observe.Store{}, serve: (*Server).checkpoint},
		{method: http.MethodPost, path: "/v1/shutdown", needs: full, about: "Begins the orderly end of all that runs, as Ctrl-C does.", answer: Ending{}, serve: (*Server).endAll},
		{method: http.MethodPost, path: "/v1/dead-letters/redeliver", needs: full, about: "Sends dead letters again.", body: Redelivery{}, answer: observe.Outcome{}, serve: (*Server).redeliver},

		{method: http.MethodPost, path: "/v1/session", still: true, needs: reader, about: "Exchanges a token for a cookie and a key, for a page of this server. Both are needed: the key as the header " + SessionKey + ".", answer: Session{}, serve: (*Server).beginSession},
		{method: http.MethodDelete, path: "/v1/session", still: true, needs: reader, about: "Ends the session.", serve: (*Server).endSession},
		{method: http.MethodGet, path: "/v1/openapi.json", still: true, needs: reader, about: "This description.", media: []string{mediaJSON}, serve: (*Server).openAPI},
		{method: http.MethodGet, path: "/metrics", needs: reader, about: "Figures for Prometheus, if they are on.", media: []string{"text/plain"}, serve: (*Server).scrape},
		{method: http.MethodGet, path: "/healthz", still: true, about: "200 while the system runs.", answer: Health{}, serve: (*Server).healthy},
		{method: http.MethodGet, path: "/readyz", still: true, about: "200 when every top-level actor has begun and every service serves, until the system ends; in a cluster while the node may act for half of its lease.", answer: Health{}, serve: (*Server).ready},
	}...)
}

func routeTable() map[string]map[string]*route {
	m := map[string]map[string]*route{}
	for _, r := range table() {
		if m[r.path] == nil {
			m[r.path] = map[string]*route{}
		}
		m[r.path][r.method] = r
	}
	return m
}
