package main

import (
	"fmt"
	"slices"
	"strings"
)

// names are the supervisors of the sample.
var names = []string{"xebia", "rxjava", "zaqar-linear", "zaqar-arithmetic", "zaqar-geometric", "zaqar-exponential", "actor-ts", "akka"}

// colours are Okabe and Ito's, which the colour-blind can tell apart.
var colours = map[string]string{
	"xebia": "#0072b2", "rxjava": "#d55e00", "zaqar-linear": "#8a5a00", "zaqar-arithmetic": "#e69f00",
	"zaqar-geometric": "#56b4e9", "zaqar-exponential": "#111111", "actor-ts": "#009e73", "akka": "#b8508c",
}

const style = `<style>
text { font-family: "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #222 }
.title { font-size: 22px; font-weight: bold }
.lead { font-size: 14px; fill: #555 }
.head { font-size: 15px; font-weight: bold }
.formula { font-size: 12.5px; fill: #444 }
.tick { font-size: 12px; fill: #555 }
.axis-title { font-size: 13px; fill: #444 }
.note { font-size: 12.5px; fill: #666 }
.label { font-size: 12.5px; font-weight: bold }
.value { font-size: 12.5px }
.grid { stroke: #e2e2e2; stroke-width: 1 }
.axis { stroke: #888; stroke-width: 1 }
.over { fill: #f0f0f0 }
</style>`

const (
	width, height = 1100., 736.
	across, down  = 290., 220. // of a panel's plane
)

// picture draws five small charts with the same axes, and the sums.
func picture(folder string) ([]byte, error) {
	all, err := curves(folder)
	if err != nil {
		return nil, err
	}
	c := &canvas{}
	c.raw(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-labelledby="t d">`, num(width), num(height), num(width), num(height))
	c.raw(`<title id="t">The delays before restarts, in the styles of five sources</title>`)
	c.raw(`<desc id="d">Five charts of the delay against the number of the failure, and a chart of the sums over ten failures.</desc>`)
	c.raw("%s", style)
	c.rect(0, 0, width, height, `fill="#fff"`)
	c.text(24, 38, "title", "", "How long a supervisor waits before it restarts its client")
	c.text(24, 62, "lead", "", "The delay after the nth failure in a row, with the options of bundle.yaml. Dots: the mean; bands: the range of the jitter; rings: the slots.")

	place := func(column, row int) panel {
		return panel{c, 100 + float64(column)*(across+52), 134 + float64(row)*(down+106), across, down}
	}
	one := func(column, row int, name, head, formula string) {
		p := place(column, row)
		p.heading(head, formula, colours[name])
		p.over(all[name].gives)
		p.axes(column == 0, row == 1 || column == 2)
		p.draw(all[name], colours[name], "")
		p.ends(all[name])
	}
	one(0, 0, "xebia", "Xebia: slotted", "min × (2ᵉ − 1) with e one of 0 … n; ceiling at 10")
	one(1, 0, "rxjava", "RxJava: quadratic", "min × n², × [0.85, 1.15)")
	zaqar(place(2, 0), all)
	one(0, 1, "actor-ts", "actor-ts: exponential", "min × 2ⁿ⁻¹ up to max, × [0.8, 1.2)")
	one(1, 1, "akka", "Akka: exponential", "min × 2ⁿ⁻¹ up to max, × [1, 1.2)")
	sums(place(2, 1), all)
	c.raw(`</svg>`)
	return c.b.Bytes(), nil
}

func (p panel) heading(head, formula, colour string) {
	p.text(p.x, p.y-28, "head", fmt.Sprintf(`style="fill:%s"`, colour), head)
	p.text(p.x, p.y-10, "formula", "", formula)
}

// dots let the line below show.
const dots = ` stroke-dasharray="2 6"`

// zaqar draws the four curves of Zaqar, of which two are the same.
func zaqar(p panel, all map[string]curve) {
	p.heading("Zaqar: four curves, no jitter", "from min to max in num steps", "#222")
	p.over(all["zaqar-linear"].gives)
	p.axes(false, true)
	for _, name := range []string{"zaqar-linear", "zaqar-arithmetic", "zaqar-geometric"} {
		p.draw(all[name], colours[name], "")
	}
	p.draw(all["zaqar-exponential"], colours["zaqar-exponential"], dots)
	for i, name := range []string{"zaqar-linear", "zaqar-arithmetic", "zaqar-geometric", "zaqar-exponential"} {
		at := xy{p.at(3.4, 1).x, p.at(1, 9).y + 19*float64(i)}
		dash, text := "", strings.TrimPrefix(name, "zaqar-")
		if name == "zaqar-exponential" {
			dash, text = dots, text+", the same"
		}
		p.polyline([]xy{{at.x, at.y}, {at.x + 28, at.y}}, fmt.Sprintf(`stroke="%s" stroke-width="2.5"%s`, colours[name], dash))
		p.text(at.x+35, at.y+4, "value", "", text)
	}
	p.ends(all["zaqar-arithmetic"])
}

// sums draws what a client has waited in all, over ten failures.
func sums(p panel, all map[string]curve) {
	const failures = 10
	p.heading("In all: ten failures", "bars: mean; whiskers: range", "#222")
	order := slices.Clone(names)
	slices.SortStableFunc(order, func(a, b string) int {
		return int(1000 * (all[a].total(failures).mean - all[b].total(failures).mean))
	})
	most := 0.
	for _, name := range names {
		most = max(most, all[name].total(failures).most)
	}
	left, room := p.x+86, p.w-86-54 // names before, values behind
	scale := func(ms float64) float64 { return left + room*ms/most }
	for s := 0.; s*1000 <= most; s += 0.5 {
		p.line(scale(s*1000), p.y, scale(s*1000), p.y+p.h, `class="grid"`)
		p.text(scale(s*1000), p.y+p.h+16, "tick", `text-anchor="middle"`, fmt.Sprintf("%g", s))
	}
	p.text(left+room/2, p.y+p.h+35, "axis-title", `text-anchor="middle"`, "sum of the delays, in seconds")
	step := p.h / float64(len(order))
	for i, name := range order {
		t := all[name].total(failures)
		y := p.y + step*float64(i)
		p.text(left-8, y+step/2+4, "value", `text-anchor="end"`, name)
		p.rect(left, y+5, scale(t.mean)-left, step-10, fmt.Sprintf(`fill="%s"`, colours[name]))
		if t.most-t.least > 1 {
			mid := y + step/2
			p.line(scale(t.least), mid, scale(t.most), mid, `stroke="#222" stroke-width="1.5"`)
			p.line(scale(t.least), mid-4, scale(t.least), mid+4, `stroke="#222" stroke-width="1.5"`)
			p.line(scale(t.most), mid-4, scale(t.most), mid+4, `stroke="#222" stroke-width="1.5"`)
		}
		p.text(scale(t.most)+7, y+step/2+4, "value", "", duration(t.mean))
	}
	p.line(left, p.y, left, p.y+p.h, `class="axis"`)
}
