package main

import (
	"fmt"
	"strings"
	"time"
)

// web starts the sites and says what a crawl of them has to be like. It begins at the first.
func web() ([]*site, summary) {
	plain := &site{name: "plain", pause: pause, pages: map[string]string{}}
	shop := &site{
		name: "shop", pause: 120 * time.Millisecond, pages: map[string]string{},
		robots: "User-agent: greedy\nDisallow: /\n\nUser-agent: Sample-Crawler\nDisallow: /private/\nAllow: /private/open$\nDisallow: /*?session=\nCrawl-delay: 0.12\n\nUser-agent: *\nDisallow: /\n",
		never:  []string{"/private/1", "/private/2", "/private/open?x", "/list?session=1"},
	}
	shut := &site{name: "shut", pause: pause, robots: "User-agent: *\nDisallow: /", pages: map[string]string{"/": "x"}, never: []string{"/", "/a", "/b"}}
	down := &site{name: "down", pause: pause, robots: "down", pages: map[string]string{"/": "x"}, never: []string{"/"}, asked: map[string]int{"/robots.txt": 4}}
	flaky := &site{name: "flaky", pause: pause, pages: map[string]string{}, asked: map[string]int{"/once": 3}}
	sites := []*site{plain, shop, shut, down, flaky}
	for _, s := range sites {
		s.start()
	}

	// 40 pages that link to each other in every way that means the same, and to all sites.
	for i := range 40 {
		next, far := (i+1)%40, (i*7)%40
		plain.pages[path(i)] = page(fmt.Sprint("Page ", i), "../p/"+fmt.Sprint(next), fmt.Sprintf("%s#part", path(far)), plain.host()+path(next), "mailto:somebody@example.com")
		plain.read = append(plain.read, path(i))
	}
	// The host's name in capitals, a missing page, one without end, and a circle of redirects.
	plain.pages["/"] = page("Welcome", path(0), strings.ToUpper(shop.host()[:4])+shop.host()[4:]+"/", shut.host()+"/", shut.host()+"/a", shut.host()+"/b", down.host()+"/",
		flaky.host()+"/once", flaky.host()+"/never", "/missing", "/endless", "/circle", "http://192.0.2.1/", closed()+"/")
	plain.pages["/endless"] = "endless"
	plain.pages["/circle"] = "> /circle/1"
	plain.pages["/circle/1"] = "> /circle"
	plain.read = append(plain.read, "/", "/missing", "/endless", "/circle", "/circle/1")

	shop.pages["/"] = page("Tea and coffee", "/private/1", "/private/2", "/private/open", "/private/open?x", "/list?session=1", "/list?page=1", "/open/tea")
	shop.pages["/private/open"] = page("Open")
	shop.pages["/list?page=1"] = page("List", "/list?page=2&amp;sort=up")
	shop.pages["/list?page=2&sort=up"] = page("List", "/list?page=1")
	// It comes in parts, as it does not fit a message; the link is at its end.
	shop.pages["/open/tea"] = strings.Replace(page("TEA", plain.host()+"/", "/open/end"), "<body>", "<body>"+strings.Repeat("<p>Much text.</p>\n", 8000), 1)
	shop.pages["/open/end"] = page("The end")
	shop.read = []string{"/", "/private/open", "/list?page=1", "/list?page=2&sort=up", "/open/tea", "/open/end"}

	flaky.pages["/once"] = "flaky " + page("At last")
	flaky.read = []string{"/once", "/never"}

	return sites, summary{
		Hosts: 7, Read: 41 + 6 + 1, Moved: 2,
		// Of shop, shut and down; of an address that is not granted, and of a server that is not there, as
		// nobody can say what their robots.txt allows.
		Forbidden: 4 + 3 + 1 + 2,
		Failed:    3, // missing, endless and never
	}
}

func path(i int) string { return fmt.Sprint("/p/", i) }

// page is one with links.
func page(title string, links ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><html><head><title>%s</title></head><body><!-- <a href='/comment'> -->\n", title)
	for _, l := range links {
		fmt.Fprintf(&b, "<p><a class=\"x\" href=\"%s\">a link</a></p>\n", l)
	}
	return b.String() + "<script>var s = '<a href=\"/script\">'</script></body></html>"
}
