package main

import (
	"net/url"
	"strings"
)

// Bounds of what is taken from a page, so that it fits a message.
const (
	mostLinks   = 300
	longestLink = 1000
	linkBytes   = 40_000
	longestName = 200
)

// links finds the title of a page and where its links lead: absolute URLs of http and https without
// fragments, each once, in their order.
func links(base *url.URL, html string) (title string, found []string) {
	seen, bytes := map[string]bool{}, 0
	for len(html) > 0 && len(found) < mostLinks {
		start := strings.IndexByte(html, '<')
		if start < 0 {
			break
		}
		html = html[start+1:]
		if rest, ok := strings.CutPrefix(html, "!--"); ok {
			_, html, _ = strings.Cut(rest, "-->")
			continue
		}
		end := strings.IndexByte(html, '>')
		if end < 0 {
			break
		}
		tag := html[:end]
		html = html[end+1:]
		switch name := tagName(tag); name {
		case "title":
			text, _, _ := strings.Cut(html, "<")
			title = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
			title = strings.ToValidUTF8(title[:min(len(title), longestName)], "")
		case "script", "style":
			if at := strings.Index(html, "</"+name); at >= 0 {
				html = html[at:]
			}
		case "a":
			link, ok := resolve(base, attribute(tag, "href"))
			if !ok || seen[link] || bytes+len(link) > linkBytes {
				continue
			}
			seen[link] = true
			bytes += len(link)
			found = append(found, link)
		}
	}
	return title, found
}

func tagName(tag string) string {
	end := strings.IndexAny(tag, " \t\r\n/")
	if end < 0 {
		end = len(tag)
	}
	return strings.ToLower(tag[:end])
}

// attribute is the value of an attribute of a tag, "" if it has none.
func attribute(tag, name string) string {
	for rest := tag; ; {
		i := indexFold(rest, name)
		if i < 0 {
			return ""
		}
		before := i > 0 && strings.ContainsRune(" \t\r\n\"'", rune(rest[i-1]))
		rest = rest[i+len(name):]
		value, ok := strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), "=")
		if !before || !ok {
			continue
		}
		value = strings.TrimLeft(value, " \t\r\n")
		if value == "" {
			return ""
		}
		if quote := value[:1]; quote == "\"" || quote == "'" {
			value, _, _ = strings.Cut(value[1:], quote)
		} else if end := strings.IndexAny(value, " \t\r\n"); end >= 0 {
			value = value[:end]
		}
		return strings.ReplaceAll(value, "&amp;", "&")
	}
}

// indexFold is strings.Index whatever the case. strings.ToLower would move what stands behind
// bytes that are no UTF-8.
func indexFold(s, name string) int {
	for i := 0; i+len(name) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(name)], name) {
			return i
		}
	}
	return -1
}

// resolve makes a link absolute, in one form for all that mean the same page.
func resolve(base *url.URL, link string) (string, bool) {
	if link == "" || len(link) > longestLink {
		return "", false
	}
	u, err := base.Parse(strings.TrimSpace(link))
	if err != nil {
		return "", false
	}
	return normal(u)
}

// normal is the form of a URL that pages are known by.
func normal(u *url.URL) (string, bool) {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", false
	}
	n := *u
	n.Host = strings.ToLower(n.Host)
	n.Fragment, n.RawFragment = "", ""
	if n.Path == "" {
		n.Path = "/"
	}
	text := n.String()
	return text, len(text) <= longestLink
}
