package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// canvas writes SVG. Numbers are rounded to a tenth, so that the last bits of
// arithmetic do not show.
type canvas struct{ b bytes.Buffer }

func num(x float64) string {
	s := strconv.FormatFloat(x, 'f', 1, 64)
	if s = strings.TrimSuffix(s, ".0"); s == "-0" {
		return "0"
	}
	return s
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

func (c *canvas) raw(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

func (c *canvas) rect(x, y, w, h float64, attrs string) {
	c.raw(`<rect x="%s" y="%s" width="%s" height="%s" %s/>`, num(x), num(y), num(w), num(h), attrs)
}

func (c *canvas) line(x1, y1, x2, y2 float64, attrs string) {
	c.raw(`<line x1="%s" y1="%s" x2="%s" y2="%s" %s/>`, num(x1), num(y1), num(x2), num(y2), attrs)
}

func (c *canvas) circle(x, y, r float64, attrs string) {
	c.raw(`<circle cx="%s" cy="%s" r="%s" %s/>`, num(x), num(y), num(r), attrs)
}

// text writes a line; class is one of the style sheet's.
func (c *canvas) text(x, y float64, class, attrs, s string) {
	c.raw(`<text x="%s" y="%s" class="%s" %s>%s</text>`, num(x), num(y), class, attrs, escape(s))
}

// xy is a place on the canvas.
type xy struct{ x, y float64 }

func places(at []xy) string {
	var parts []string
	for _, p := range at {
		parts = append(parts, num(p.x)+","+num(p.y))
	}
	return strings.Join(parts, " ")
}

func (c *canvas) polyline(at []xy, attrs string) {
	c.raw(`<polyline points="%s" fill="none" %s/>`, places(at), attrs)
}

func (c *canvas) polygon(at []xy, attrs string) {
	c.raw(`<polygon points="%s" %s/>`, places(at), attrs)
}
