package main

//go:generate go run github.com/wasmactors/wasmactors/guest-sdk/gen -type crawl,summary,site,visit,visited,hello,page

// crawl asks the frontier to read all pages that can be reached from the seeds.
type crawl struct {
	Seeds   []string `cbor:"seeds,required"`
	Most    int64    `cbor:"most,omitempty"`     // pages that are asked for; 10000 if it is 0
	PauseMS int64    `cbor:"pause_ms,omitempty"` // between requests of one host, unless its robots.txt asks for more
	Agent   string   `cbor:"agent,omitempty"`    // name of the crawler
}

// summary is the answer when nothing is left to read.
type summary struct {
	Hosts     int64 `cbor:"hosts"`
	Read      int64 `cbor:"read"`
	Moved     int64 `cbor:"moved"`     // redirects, whose targets are pages of their own
	Forbidden int64 `cbor:"forbidden"` // by robots.txt
	Failed    int64 `cbor:"failed"`
	Skipped   int64 `cbor:"skipped"` // beyond the bound
}

// site is what a host's actor is started with.
type site struct {
	Origin  string `cbor:"origin"` // http://example.com:8080
	PauseMS int64  `cbor:"pause_ms"`
	Agent   string `cbor:"agent"`
}

// visit asks a host's actor to read a page.
type visit struct {
	URL   string `cbor:"url,required"`
	Epoch uint64 `cbor:"epoch,omitempty"` // the incarnation that it is for
}

// visited is what has become of it.
type visited struct {
	URL     string   `cbor:"url,required"`
	Outcome string   `cbor:"outcome,required"` // read, moved, forbidden or failed
	Links   []string `cbor:"links,omitempty"`
}

// hello says that a host's actor has begun anew, and knows of no visits any more.
type hello struct {
	Hello uint64 `cbor:"hello,required"` // its incarnation
}

// page is what is published of each page, on the topic pages. and the host.
type page struct {
	URL   string `cbor:"url,required"`
	Title string `cbor:"title"`
	Bytes int64  `cbor:"bytes"`
}
