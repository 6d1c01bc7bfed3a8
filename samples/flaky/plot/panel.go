package main

import (
	"fmt"
	"math"
)

// panel is a chart of delays against the number of the failure. All panels have the
// same axes.
type panel struct {
	*canvas
	x, y, w, h float64 // of the plane, without labels
}

// The vertical axis: logarithmic from 1 ms to 1 s, below it linear down to none.
const (
	decades = 3
	below   = 30. // what is left for delays of less than 1 ms
	bottom  = 9.  // from none down to the edge
)

func (p panel) at(n float64, delay float64) xy {
	x := p.x + p.w*(n-0.5)/shown
	height := p.h - below
	if delay < 1 {
		return xy{x, p.y + height + (below-bottom)*(1-delay)}
	}
	return xy{x, p.y + height - height*math.Log10(delay)/decades}
}

// axes draws the grid and its labels; the outer ones only where they are not those of
// a neighbour.
func (p panel) axes(left, under bool) {
	for d := range decades + 1 {
		v := math.Pow(10, float64(d))
		at := p.at(1, v)
		p.line(p.x, at.y, p.x+p.w, at.y, `class="grid"`)
		if left {
			p.text(p.x-7, at.y+4, "tick", `text-anchor="end"`, duration(v))
		}
		for m := 2.; m < 10 && d < decades; m++ {
			y := p.at(1, m*v).y
			p.line(p.x-3, y, p.x, y, `class="axis"`)
		}
	}
	p.line(p.x, p.at(1, 0).y, p.x+p.w, p.at(1, 0).y, `class="grid"`)
	p.line(p.x, p.y+p.h, p.x+p.w, p.y+p.h, `class="axis"`)
	p.line(p.x, p.y, p.x, p.y+p.h, `class="axis"`)
	if left {
		p.text(p.x-7, p.at(1, 0).y+4, "tick", `text-anchor="end"`, "0")
		p.text(p.x-66, p.y+p.h/2, "axis-title", fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 %s %s)"`, num(p.x-66), num(p.y+p.h/2)), "delay before the restart")
	}
	for n := 1; n <= shown; n++ {
		x := p.at(float64(n), 1).x
		p.line(x, p.y+p.h, x, p.y+p.h+3, `class="axis"`)
		p.text(x, p.y+p.h+16, "tick", `text-anchor="middle"`, fmt.Sprint(n))
	}
	if under {
		p.text(p.x+p.w/2, p.y+p.h+35, "axis-title", `text-anchor="middle"`, "number of the failure")
	}
}

// over shades what comes after a supervisor has given up.
func (p panel) over(gives int) {
	if gives == 0 || gives >= shown {
		return
	}
	x := p.at(float64(gives)+0.5, 1).x
	p.rect(x, p.y, p.x+p.w-x, p.h, `class="over"`)
	mid := (x + p.x + p.w) / 2
	p.text(mid+4, p.y+p.h/2, "note", fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 %s %s)"`, num(mid+4), num(p.y+p.h/2)),
		fmt.Sprintf("gives up after %d", gives))
}

// draw adds a curve: its range, its mean, and where there are few values these.
func (p panel) draw(c curve, colour, dash string) {
	var low, high, mean []xy
	for i, d := range c.points {
		n := float64(i + 1)
		low, high, mean = append(low, p.at(n, d.least)), append(high, p.at(n, d.most)), append(mean, p.at(n, d.mean))
	}
	if len(c.points[0].values) > 1 {
		p.values(c.points, colour)
	} else {
		band := append([]xy{}, high...)
		for i := len(low) - 1; i >= 0; i-- {
			band = append(band, low[i])
		}
		p.polygon(band, fmt.Sprintf(`fill="%s" fill-opacity="0.22" stroke="%s" stroke-opacity="0.45" stroke-width="0.8"`, colour, colour))
	}
	p.polyline(mean, fmt.Sprintf(`stroke="%s" stroke-width="2" stroke-linejoin="round"%s`, colour, dash))
	for _, m := range mean {
		p.circle(m.x, m.y, 3, fmt.Sprintf(`fill="%s"`, colour))
	}
}

// values draws each delay that can be as a ring, and a bar from the least to the
// largest.
func (p panel) values(points []point, colour string) {
	for i, d := range points {
		low, high := p.at(float64(i+1), d.least), p.at(float64(i+1), d.most)
		p.line(low.x, low.y, high.x, high.y, fmt.Sprintf(`stroke="%s" stroke-opacity="0.22" stroke-width="9" stroke-linecap="round"`, colour))
		for _, v := range d.values {
			at := p.at(float64(i+1), v)
			p.circle(at.x, at.y, 2.2, fmt.Sprintf(`fill="#fff" stroke="%s" stroke-width="1"`, colour))
		}
	}
}

// ends labels the first delay of a curve and the largest.
func (p panel) ends(c curve) {
	top := 0
	for i, d := range c.points {
		if d.mean > c.points[top].mean*1.001 {
			top = i
		}
	}
	if first := c.points[0]; first.least > 0 {
		at := p.at(1, first.least)
		p.text(at.x+6, at.y+15, "value", "", reach(first))
	}
	at := p.at(float64(top+1), c.points[top].most)
	p.text(at.x, at.y-9, "value", `text-anchor="middle"`, reach(c.points[top]))
}

// reach is the range of a delay in words.
func reach(d point) string {
	if d.most-d.least < 1e-6 {
		return duration(d.mean)
	}
	return fmt.Sprintf("%.3g to %s", d.least, duration(d.most))
}

// duration is a number of milliseconds for a person.
func duration(ms float64) string {
	switch {
	case ms >= 9950:
		return fmt.Sprintf("%.0f s", ms/1000)
	case ms >= 1000:
		return fmt.Sprintf("%.3g s", ms/1000)
	}
	return fmt.Sprintf("%.3g ms", ms)
}
